/** Starts the command `store-api`. */
import { main } from "./commandLine.js"
import { commands } from "./commands.js"
import { runMain } from "./runMain.js"

runMain((args) => main(commands, args))
