/** Starts the command `store-api-emulator`, which is `store-api emulator` in its own package. */
import { main } from "./commandLine.js"
import { emulatorCommands } from "./commands/emulator/command.js"
import { runMain } from "./runMain.js"

const lineOf = (words: string) => words.replace(/^emulator/, "store-api-emulator")

runMain((args) => main(emulatorCommands, ["emulator", ...args], lineOf))
