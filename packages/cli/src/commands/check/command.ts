import { defineCommand, load } from "../../Command.js"
import { checkFlags } from "./flags.js"

export const checkCommand = defineCommand(checkFlags, {
  text: "Find out why there is no token",
  args: "[path]",
  more:
    "Tries each step to a token and, with a path, to the API. Its token is neither cached nor printed.",
  examples: ["check", "check /orders --json"],
  run: (flagValues, path) =>
    load(() => import("./check.js"), ({ check }) => check(flagValues, path))
})
