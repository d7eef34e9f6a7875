import { Effect } from "effect"
import { storeRaces } from "./support/storeRaces.js"
import { perform } from "./support/storeWorker.js"

storeRaces("fibers", Effect.succeed(Array.from({ length: 5 }, () => ({ ask: perform }))), 8)
