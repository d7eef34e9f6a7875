/** The commands of `store-api emulator`. The bundle of `store-api-emulator` has no others. */
import { type Command, command, type Commands, load } from "../../Command.js"
import type { Values } from "../../flags.js"
import { failFlags, startFlags, steerFlags } from "./flags.js"

const steer = (action: string, given: Partial<Values<typeof failFlags>>, argument: string) =>
  load(() => import("./steer.js"), ({ steer }) => steer(action, given, argument))

/** A command that steers a running emulator. */
const steering = (action: string, about: Pick<Command, "text" | "args">, example = action) =>
  command(steerFlags, {
    ...about,
    examples: [`emulator ${example}`, `emulator ${example} --port 4010`],
    run: (given, argument) => steer(action, given, argument)
  })

export const emulatorCommands: Commands = {
  emulator: command(startFlags, {
    text: "Start the token service and an API on this machine",
    more: "Reads STORE_API_CLIENT_SECRET only with --client-id.",
    examples: [
      "emulator --port 4010 --token-life 2m",
      "emulator --dotenv .env --scenario token/401-rfc"
    ],
    run: (given) => load(() => import("./start.js"), ({ start }) => start(given))
  }),
  "emulator fail": command(failFlags, {
    text: "Make the next requests fail",
    args: "<scenario>",
    examples: ["emulator fail token/503-json --times 3", "emulator fail api/403 --port 4010"],
    run: (given, scenario) => steer("fail", given, scenario)
  }),
  "emulator clear": steering("clear", { text: "Remove the remaining faults" }),
  "emulator revoke": steering("revoke", {
    text: "Revoke a token by its number, or all tokens",
    args: "[token]"
  }),
  "emulator requests": steering("requests", { text: "Show the last requests" }),
  "emulator tokens": steering("tokens", { text: "Show the tokens and when they expire" })
}
