import { fetched, node } from "../support/clients.js"
import { onClients } from "./onClients.js"

onClients([node, fetched])
