import { command, load } from "../../Command.js"
import { common } from "../../flags.js"

export const logoutCommand = command(common, {
  text: "Remove the cached token",
  more: "The service is not told, so a copy of the token stays valid until it expires.",
  examples: ["logout", "logout --profile books"],
  run: (given) => load(() => import("./logout.js"), ({ logOut }) => logOut(given))
})
