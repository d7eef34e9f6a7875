/** A process that is one member of a fleet over a database. */
import { SqlTokenStore } from "@store-api/sql"
import { run } from "@store-api/testing/member"
import { clientAt } from "../support/clients.js"

run((url) => SqlTokenStore.layerLazy(clientAt(url)))
