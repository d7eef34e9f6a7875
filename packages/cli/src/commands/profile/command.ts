import { type Commands, defineCommand, load } from "../../Command.js"
import { noFlags } from "../../flags.js"
import { addFlags } from "./flags.js"

export const profileCommands: Commands = {
  "profile": {
    text: "Save and select settings by name",
    flags: noFlags,
    examples: ["profile add books", "call /orders --profile books"]
  },
  "profile add": defineCommand(addFlags, {
    text: "Save the settings under a name, or as the default",
    args: "[name]",
    more:
      "Asks for what flags, environment and .env leave open, and verifies all by requesting a token. " +
      "The profile `default` applies if none of these gives a setting.",
    examples: [
      "profile add --auth-url https://auth.example --client-id me",
      "profile add books --dotenv books.env"
    ],
    run: (flagValues, _, [name]) =>
      load(() => import("./add.js"), ({ add }) => add(flagValues, name))
  }),
  "profile show": defineCommand(noFlags, {
    text: "Show a profile without its secret",
    args: "[name]",
    examples: ["profile show", "profile show books"],
    run: (_, __, [name]) => load(() => import("./saved.js"), ({ show }) => show(name))
  }),
  "profile list": defineCommand(noFlags, {
    text: "List the saved profiles",
    examples: ["profile list", "profile list | xargs -n 1 store-api status --profile"],
    run: () => load(() => import("./saved.js"), ({ list }) => list)
  }),
  "profile remove": defineCommand(noFlags, {
    text: "Remove a saved profile",
    args: "<name>",
    examples: ["profile remove books", "profile remove books && store-api profile list"],
    run: (_, name) => load(() => import("./saved.js"), ({ remove }) => remove(name))
  })
}
