import { onEveryScenario } from "./support/onEveryScenario.js"

onEveryScenario("fetch")
