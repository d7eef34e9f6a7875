import { defineCommand, load } from "../../Command.js"
import { runFlags } from "./flags.js"

export const runCommand = defineCommand(runFlags, {
  text: "Run a command with a token in STORE_API_ACCESS_TOKEN",
  args: "<command...>",
  more:
    "Write -- before the command, to keep its flags apart. Passes signals to it and returns its exit code.",
  examples: ["run -- npm test", "run --profile books -- node import.js"],
  run: (flagValues, _, args) =>
    load(() => import("./run.js"), ({ runProgram }) => runProgram(flagValues, args))
})
