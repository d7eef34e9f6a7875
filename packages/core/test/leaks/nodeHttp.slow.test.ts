import { onEveryScenario } from "./support/onEveryScenario.js"

onEveryScenario("node:http")
