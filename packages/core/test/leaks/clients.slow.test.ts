import { onEveryScenario } from "./support/onEveryScenario.js"

onEveryScenario("fetch")
onEveryScenario("node:http")
