import { undici } from "../support/clients.js"
import { onClients } from "./onClients.js"

onClients([undici])
