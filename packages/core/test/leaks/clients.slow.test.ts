import { onEveryScenario } from "./support/onEveryScenario.js"

// The clients differ in how they report each kind of failure.
onEveryScenario("undici", "others")
onEveryScenario("fetch", "first")
onEveryScenario("node:http", "first")
