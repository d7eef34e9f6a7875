/** Starts the command `store-api-emulator`, which is `store-api emulator` in its own package. */
import { emulatorCommands } from "./commands/emulator/command.js"
import { runMain } from "./runMain.js"

runMain(emulatorCommands, "emulator")
