import { NodeHttpClient } from "@effect/platform-node"
import { overSockets } from "../support/overSockets.js"

overSockets("undici", NodeHttpClient.layerUndici)
