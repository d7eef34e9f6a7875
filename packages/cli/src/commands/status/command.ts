import { defineCommand, load } from "../../Command.js"
import { statusFlags } from "./flags.js"

export const statusCommand = defineCommand(statusFlags, {
  text: "Show the cached token; exit with code 5 if there is none",
  more:
    "Sends nothing. It needs the client secret, because cached tokens are encrypted with it.",
  examples: ["status", "status --json --profile books"],
  run: (flagValues) =>
    load(() => import("./status.js"), ({ printStatus }) => printStatus(flagValues))
})
