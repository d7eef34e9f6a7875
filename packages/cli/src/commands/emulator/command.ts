/** The commands of `store-api emulator`. The bundle of `store-api-emulator` has no others. */
import { type Command, type Commands, defineCommand, load } from "../../Command.js"
import type { Values } from "../../flags.js"
import { failFlags, startFlags, steerFlags } from "./flags.js"

const steer = (
  action: string,
  flagValues: Partial<Values<typeof failFlags>>,
  argument: string
) => load(() => import("./steer.js"), ({ steer }) => steer(action, flagValues, argument))

/** A command that steers a running emulator. */
const defineSteering = (
  action: string,
  description: Pick<Command, "text" | "args">,
  example = action
) =>
  defineCommand(steerFlags, {
    ...description,
    examples: [`emulator ${example}`, `emulator ${example} --port 4010`],
    run: (flagValues, argument) => steer(action, flagValues, argument)
  })

export const emulatorCommands: Commands = {
  emulator: defineCommand(startFlags, {
    text: "Start the token service and an API on this machine",
    more: "Reads STORE_API_CLIENT_SECRET only with --client-id.",
    examples: [
      "emulator --port 4010 --token-life 2m",
      "emulator --dotenv .env --scenario token/401-rfc"
    ],
    run: (flagValues) => load(() => import("./start.js"), ({ start }) => start(flagValues))
  }),
  "emulator fail": defineCommand(failFlags, {
    text: "Make the next requests fail",
    args: "<scenario>",
    examples: ["emulator fail token/503-json --times 3", "emulator fail api/403 --port 4010"],
    run: (flagValues, scenario) => steer("fail", flagValues, scenario)
  }),
  "emulator clear": defineSteering("clear", { text: "Remove the remaining faults" }),
  "emulator revoke": defineSteering("revoke", {
    text: "Revoke a token by its number, or all tokens",
    args: "[token]"
  }),
  "emulator requests": defineSteering("requests", { text: "Show the last requests" }),
  "emulator tokens": defineSteering("tokens", { text: "Show the tokens and when they expire" })
}
