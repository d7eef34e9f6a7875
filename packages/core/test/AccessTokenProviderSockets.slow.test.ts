import { FetchHttpClient } from "@effect/platform"
import { NodeHttpClient } from "@effect/platform-node"
import { overSockets } from "./support/overSockets.js"

overSockets("node:http", NodeHttpClient.layer)
overSockets("fetch", FetchHttpClient.layer)
