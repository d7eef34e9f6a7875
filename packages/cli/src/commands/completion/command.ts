import { defineCommand, load } from "../../Command.js"
import { noFlags } from "../../flags.js"

export const completionCommand = defineCommand(noFlags, {
  text: "Print a completion script for bash, zsh or fish",
  args: "<shell>",
  examples: ["completion bash >> ~/.bash_completion", "completion zsh > ~/.zfunc/_store-api"],
  run: (_, shell) =>
    load(() => import("./scripts.js"), ({ printScript }) => printScript(shell))
})
