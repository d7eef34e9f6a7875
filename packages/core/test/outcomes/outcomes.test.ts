import { undici } from "./clients.js"
import { onClients } from "./onClients.js"

onClients([undici])
