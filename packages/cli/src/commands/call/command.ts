import { defineCommand, load } from "../../Command.js"
import { callFlags } from "./flags.js"

export const callCommand = defineCommand(callFlags, {
  text: "Call the API with a token",
  args: "<path>",
  more: "Pretty-prints JSON on a terminal, and passes the body unchanged to a pipe or a file.",
  examples: ["call '/orders?page=2' --include", "call /orders -d @order.json --fail"],
  run: (flagValues, path) =>
    load(() => import("./call.js"), ({ call }) => call(flagValues, path))
})
