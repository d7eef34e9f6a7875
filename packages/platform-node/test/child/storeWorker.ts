/** A process that is a worker on token stores in folders. */
import { serve } from "../support/serve.js"
import { perform } from "../support/storeWorker.js"

serve(perform)
