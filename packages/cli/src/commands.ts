/** The commands. Other programs wait for `token`, so the larger modules of other commands are loaded when they run. */
import { command, type Commands, load } from "./Command.js"
import { logout, run, status, token } from "./commands/token.js"
import { emulatorCommands } from "./emulatorCommands.js"
import * as flags from "./flags.js"

export const commands: Commands = {
  token: command(flags.token, {
    text: "Print an access token for another program",
    examples: ["token --format json", "token --format header | curl -H @- $STORE_API_URL/orders"],
    run: token
  }),
  call: command(flags.call, {
    text: "Call the API with a token",
    args: "<path>",
    more: "Pretty-prints JSON on a terminal, and passes the body unchanged to a pipe or a file.",
    examples: ["call '/orders?page=2' --include", "call /orders -d @order.json --fail"],
    run: (given, path) => load(() => import("./commands/call.js"), ({ run }) => run(given, path))
  }),
  check: command(flags.check, {
    text: "Find out why there is no token",
    args: "[path]",
    more: "Tries each step to a token and, with a path, to the API. Its token is neither cached nor printed.",
    examples: ["check", "check /orders --json"],
    run: (given, path) => load(() => import("./commands/check.js"), ({ run }) => run(given, path))
  }),
  run: command(flags.run, {
    text: "Run a command with a token in STORE_API_ACCESS_TOKEN",
    args: "<command...>",
    more: "Write -- before the command, to keep its flags apart. Passes signals to it and returns its exit code.",
    examples: ["run -- npm test", "run --profile books -- node import.js"],
    run: (given, _, args) => run(given, args)
  }),
  status: command(flags.check, {
    text: "Show the cached token; exit with code 5 if there is none",
    more: "Sends nothing. It needs the client secret, because cached tokens are encrypted with it.",
    examples: ["status", "status --json --profile books"],
    run: status
  }),
  logout: command(flags.common, {
    text: "Remove the cached token",
    more: "The service is not told, so a copy of the token stays valid until it expires.",
    examples: ["logout", "logout --profile books"],
    run: logout
  }),
  profile: {
    text: "Save and select settings by name",
    flags: flags.none,
    examples: ["profile add books", "call /orders --profile books"]
  },
  "profile add": command(flags.profileAdd, {
    text: "Save the settings under a name, or as the default",
    args: "[name]",
    more: "Asks for what flags, environment and .env leave open, and verifies all by requesting a token. " +
      "The profile `default` applies if none of these gives a setting.",
    examples: ["profile add --auth-url https://auth.example --client-id me", "profile add books --dotenv books.env"],
    run: (given, _, [name]) => load(() => import("./commands/profile.js"), ({ add }) => add(given, name))
  }),
  "profile show": command(flags.none, {
    text: "Show a profile without its secret",
    args: "[name]",
    examples: ["profile show", "profile show books"],
    run: (_, __, [name]) => load(() => import("./commands/profile.js"), ({ show }) => show(name))
  }),
  "profile list": command(flags.none, {
    text: "List the saved profiles",
    examples: ["profile list", "profile list | xargs -n 1 store-api status --profile"],
    run: () => load(() => import("./commands/profile.js"), ({ list }) => list)
  }),
  "profile remove": command(flags.none, {
    text: "Remove a saved profile",
    args: "<name>",
    examples: ["profile remove books", "profile remove books && store-api profile list"],
    run: (_, name) => load(() => import("./commands/profile.js"), ({ remove }) => remove(name))
  }),
  ...emulatorCommands,
  completion: command(flags.none, {
    text: "Print a completion script for bash, zsh or fish",
    args: "<shell>",
    examples: ["completion bash >> ~/.bash_completion", "completion zsh > ~/.zfunc/_store-api"],
    run: (_, shell) => load(() => import("./commands/completion.js"), ({ script }) => script(shell))
  })
}
