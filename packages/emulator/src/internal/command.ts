/** The command `store-api-emulator`: reads its line. */
import { parseArgs } from "node:util"
import * as Console from "effect/Console"
import * as Effect from "effect/Effect"
import { demoClient } from "../Client.js"
import * as EmulatorCommand from "../EmulatorCommand.js"
import { EmulatorError } from "../EmulatorError.js"

const help = `store-api-emulator: the store API suite's access-token service and a protected API, on this machine

  --port <number>       the port to listen on; default: a free one
  --token-life <time>   the lifetime of a token, such as 500ms, 2s, 5m; default and at most: 60m
  --client-id <id>      a client of your own; default: ${demoClient.clientId}, with an invented secret
  --scenario <name>     faults for the next requests; may be given again
  --list                prints the scenarios
  --tls                 speaks https, with a certificate made for this run
  --help                prints this text

With --client-id, the client secret is read from the variable STORE_API_CLIENT_SECRET; without that variable it is the
invented one. A secret is never a flag: others on the machine can read those.`

export const flags = {
  port: { type: "string" },
  "token-life": { type: "string" },
  "client-id": { type: "string" },
  scenario: { type: "string", multiple: true },
  list: { type: "boolean" },
  tls: { type: "boolean" },
  help: { type: "boolean" }
} as const

interface Flags extends EmulatorCommand.Flags {
  readonly help?: boolean
}

const unusable = (option: string, problem: string) =>
  Effect.fail(new EmulatorError({ reason: "InvalidOption", option, problem: `${problem}; see --help` }))

const isFlag = (name: string): name is keyof typeof flags => Object.hasOwn(flags, name)

/** Node only splits the line: its own messages have several sentences and repeat what was typed. */
const readFlags = (args: ReadonlyArray<string>) =>
  Effect.gen(function*() {
    const { tokens, values } = parseArgs({ args: [...args], options: flags, strict: false, tokens: true })
    for (const token of tokens) {
      if (token.kind !== "option") return yield* unusable("The line", "must consist of flags")
      if (!isFlag(token.name)) return yield* unusable(token.rawName, "is not a flag")
      if (flags[token.name].type === "boolean") {
        if (token.value !== undefined) return yield* unusable(token.rawName, "takes no value")
      } else if (!token.value) return yield* unusable(token.rawName, "needs a value")
    }
    return values as Flags // each has the type of its flag, see above
  })

/** Runs until it is interrupted; fails with one sentence. */
export const run = (args: ReadonlyArray<string>): Effect.Effect<void, EmulatorError> =>
  Effect.flatMap(
    readFlags(args),
    ({ help: asked, ...values }) => asked === true ? Console.log(help) : EmulatorCommand.run(values)
  )
