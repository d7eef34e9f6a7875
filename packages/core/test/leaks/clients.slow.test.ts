import { fetched, node, undici } from "../support/clients.js"
import { onEveryScenario } from "./onEveryScenario.js"

// The clients differ in how they report each kind of failure.
onEveryScenario(undici, "others")
onEveryScenario(fetched, "first")
onEveryScenario(node, "first")
