/** The commands. Other programs wait for `token`, so the modules of other commands are loaded when they run. */
import type { Commands } from "./Command.js"
import { callCommand } from "./commands/call/command.js"
import { checkCommand } from "./commands/check/command.js"
import { completionCommand } from "./commands/completion/command.js"
import { emulatorCommands } from "./commands/emulator/command.js"
import { logoutCommand } from "./commands/logout/command.js"
import { profileCommands } from "./commands/profile/command.js"
import { runCommand } from "./commands/run/command.js"
import { statusCommand } from "./commands/status/command.js"
import { tokenCommand } from "./commands/token/command.js"

export const commands: Commands = {
  token: tokenCommand,
  call: callCommand,
  check: checkCommand,
  run: runCommand,
  status: statusCommand,
  logout: logoutCommand,
  ...profileCommands,
  ...emulatorCommands,
  completion: completionCommand
}
