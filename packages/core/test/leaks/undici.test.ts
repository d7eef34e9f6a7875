import { undici } from "../support/clients.js"
import { onEveryScenario } from "./support/onEveryScenario.js"

onEveryScenario(undici, "first")
