import { fetched, node } from "./clients.js"
import { onClients } from "./onClients.js"

onClients([node, fetched])
