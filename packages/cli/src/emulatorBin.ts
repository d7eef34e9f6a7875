/** Starts the command `store-api-emulator`, which is `store-api emulator` in a package of its own. */
import { emulatorCommands } from "./emulatorCommands.js"
import { runMain } from "./runMain.js"

runMain(emulatorCommands, "emulator")
