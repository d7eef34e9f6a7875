import { onEveryScenario } from "./support/onEveryScenario.js"

onEveryScenario("undici")
onEveryScenario("fetch")
onEveryScenario("node:http")
