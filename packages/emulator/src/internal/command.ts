/** The command `store-api-emulator`: reads its line. */
import { parseArgs } from "node:util"
import * as Console from "effect/Console"
import * as Effect from "effect/Effect"
import { demoClient } from "../Client.js"
import * as EmulatorCommand from "../EmulatorCommand.js"
import { EmulatorError } from "../EmulatorError.js"

const help = `Usage: store-api-emulator [options]

Start the token service of the store API and a protected API on this machine.

Options:
  --port <number>       Port to listen on. Default: a free one
  --token-life <time>   Lifetime of a token: 500ms, 2s, 5m. Default: 60m
  --token-path <path>   Path of the token endpoint. Default:
                        /v1/oauth/accesstoken
  --client-authentication <method>
                        specification (default), client_secret_post or
                        client_secret_basic; may be repeated for the last two
  --client-id <id>      Client of your own. Default: ${demoClient.clientId}
  --scenario <name>     Faults for the next requests; may be repeated
  --dotenv <path>       Write the variables to this file
  --env-file <path>     The same, for a file that exists
  --lenient             Accept a charset and fields in any order
  --list                List the scenarios
  --tls                 Use https, with a certificate for this run
  --help                Print this text

With --client-id the client secret is STORE_API_CLIENT_SECRET, or an invented
one if that is not set. A secret is never a flag, because others on the machine
can read flags.

Examples:
  $ store-api-emulator --port 4010 --token-life 2m
  $ store-api-emulator --scenario token/401-rfc --lenient`

export const flags = {
  port: { type: "string" },
  "token-life": { type: "string" },
  "token-path": { type: "string" },
  "client-authentication": { type: "string", multiple: true },
  "client-id": { type: "string" },
  scenario: { type: "string", multiple: true },
  dotenv: { type: "string" },
  "env-file": { type: "string" },
  lenient: { type: "boolean" },
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
