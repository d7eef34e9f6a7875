/** Starts the command `store-api`. */
import { commands } from "./commands.js"
import { runMain } from "./runMain.js"

runMain(commands)
