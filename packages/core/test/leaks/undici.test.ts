import { onEveryScenario } from "./support/onEveryScenario.js"

onEveryScenario("undici", "first")
