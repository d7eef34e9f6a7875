import { defineCommand } from "../../Command.js"
import { tokenFlags } from "./flags.js"
import { printToken } from "./token.js"

// Other programs wait for the token, so this module is not loaded later than the others.
export const tokenCommand = defineCommand(tokenFlags, {
  text: "Print an access token for another program",
  examples: [
    "token --format json",
    "token --format header | curl -H @- $STORE_API_URL/orders"
  ],
  run: printToken
})
