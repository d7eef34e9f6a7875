import { defineCommand, load } from "../../Command.js"
import { commonFlags } from "../../flags.js"

export const logoutCommand = defineCommand(commonFlags, {
  text: "Remove the cached token",
  more: "The service is not told, so a copy of the token stays valid until it expires.",
  examples: ["logout", "logout --profile books"],
  run: (flagValues) => load(() => import("./logout.js"), ({ logOut }) => logOut(flagValues))
})
