/** The command `store-api-emulator`: an emulator until it is told to stop. */
import { parseArgs } from "node:util"
import * as Config from "effect/Config"
import * as Console from "effect/Console"
import * as Data from "effect/Data"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Redacted from "effect/Redacted"
import { type Client, demoClient } from "../Client.js"
import * as Emulator from "../Emulator.js"
import type { EmulatorError } from "../EmulatorError.js"
import type { RecordedRequest } from "../RecordedRequest.js"

const help = `store-api-emulator: the store API suite's access-token service and a protected API, on this machine

  --port <number>       the port to listen on; default: a free one
  --token-life <time>   how long a token is good, such as 500ms, 2s, 5m; default and at most: 60m
  --client-id <id>      the client that may have tokens; default: ${demoClient.clientId}
  --help                this text

The secret of the client is read from the variable STORE_API_CLIENT_SECRET; without it, an invented one is used and
printed. A secret is never a flag: others on the machine can read those.`

class UsageError extends Data.TaggedError("UsageError")<{ readonly message: string }> {}

const flags = {
  port: { type: "string" },
  "token-life": { type: "string" },
  "client-id": { type: "string" },
  help: { type: "boolean" }
} as const

/** The values of the flags that were given; a flag without value has an empty one. */
type Flags = Partial<Record<keyof typeof flags, string>>

const wrong = (message: string) => Effect.fail(new UsageError({ message: `${message}; see --help.` }))

/** The emulator speaks of its options; here they came from flags, and from a variable. */
const inFlags = ({ message, reason }: EmulatorError) =>
  new UsageError({
    message: reason === "InvalidOption"
      ? message
        .replace("`clientId`", "`--client-id`")
        .replace("`clientSecret`", "`STORE_API_CLIENT_SECRET`")
        .replace("`port`", "`--port`")
        .replace("`tokenLife`", "`--token-life`")
      : message.replace(/(choose .*)[.]$/, "$1 with `--port`.")
  })

const isFlag = (name: string): name is keyof typeof flags => Object.hasOwn(flags, name)

/** Node only takes the line apart: its own messages run over several sentences and repeat what was typed. */
const readFlags = (args: ReadonlyArray<string>) =>
  Effect.gen(function*() {
    const { tokens } = parseArgs({ args: [...args], options: flags, strict: false, tokens: true })
    const found: Flags = {}
    for (const token of tokens) {
      if (token.kind !== "option") return yield* wrong("Only flags are understood")
      if (!isFlag(token.name)) return yield* wrong(`There is no flag ${token.rawName}`)
      if (flags[token.name].type === "string" && !token.value) return yield* wrong(`${token.rawName} needs a value`)
      found[token.name] = token.value ?? ""
    }
    return found
  })

const toOptions = (found: Flags, secret: Option.Option<Redacted.Redacted>) =>
  Effect.gen(function*() {
    const client: Client = {
      ...demoClient,
      clientId: found["client-id"] ?? demoClient.clientId,
      clientSecret: Option.getOrElse(secret, () => demoClient.clientSecret)
    }
    if (found.port !== undefined && !/^\d{1,5}$/.test(found.port)) {
      return yield* wrong("--port must be a whole number from 0 to 65535")
    }
    const tokenLife = Option.map(Option.fromNullable(found["token-life"]), parseDuration)
    if (Option.isSome(tokenLife) && Option.isNone(tokenLife.value)) {
      return yield* wrong("--token-life must be a time such as 500ms, 2s or 5m")
    }
    const options = {
      clients: [client],
      port: Number(found.port ?? 0),
      tokenLife: Option.getOrUndefined(Option.flatten(tokenLife))
    } satisfies Emulator.Options
    return { options, client }
  })

const quoted = (value: string) => `'${value.replaceAll("'", "'\\''")}'`

const isDemoSecret = (client: Client) => Redacted.value(client.clientSecret) === Redacted.value(demoClient.clientSecret)

const greeting = (url: string, client: Client) =>
  [
    `The emulator listens on ${url}; stop it with Ctrl+C. For the shell of your application:`,
    "",
    `export STORE_API_AUTH_URL=${quoted(url)}`,
    `export STORE_API_URL=${quoted(url)}`,
    `export STORE_API_CLIENT_ID=${quoted(client.clientId)}`,
    isDemoSecret(client)
      ? `export STORE_API_CLIENT_SECRET=${quoted(Redacted.value(client.clientSecret))}`
      : "# STORE_API_CLIENT_SECRET: the one that is set where the emulator was started; it is not printed",
    ""
  ].join("\n")

/** The path alone: a query may hold anything. */
const line = ({ method, status, url }: RecordedRequest) =>
  `${method} ${url.replace(/[?].*$/s, "?…")} ${Option.getOrElse(status, () => "ended without an answer")}`

const observing = {
  // Nobody can ask this process for its requests.
  keep: 0,
  onEnd: (request: RecordedRequest) => Console.log(line(request))
}

/** Runs until it is interrupted; fails with one sentence. */
export const run = (args: ReadonlyArray<string>) =>
  Effect.gen(function*() {
    const found = yield* readFlags(args)
    if (found.help !== undefined) return yield* Console.log(help)
    const secret = yield* Config.option(Config.redacted("STORE_API_CLIENT_SECRET"))
    const { client, options } = yield* toOptions(found, secret)
    const emulator = yield* Emulator.make(options).pipe(
      Effect.provideService(Emulator.Observer, observing),
      Effect.mapError(inFlags)
    )
    yield* Console.log(greeting(emulator.url, client))
    return yield* Effect.never
  }).pipe(Effect.scoped)

const units = {
  ms: Duration.millis,
  millis: Duration.millis,
  s: Duration.seconds,
  second: Duration.seconds,
  seconds: Duration.seconds,
  m: Duration.minutes,
  minute: Duration.minutes,
  minutes: Duration.minutes,
  h: Duration.hours,
  hour: Duration.hours,
  hours: Duration.hours
}

const isUnit = (text: string): text is keyof typeof units => Object.hasOwn(units, text)

/** Reads a length of time as it is typed: `500ms`, `2s`, `5m`, `1h`, or the long form `2 seconds`. */
const parseDuration = (text: string): Option.Option<Duration.Duration> => {
  const [, amount = "", unit = ""] = /^(\d+(?:\.\d+)?) ?([a-z]+)$/.exec(text) ?? []
  return isUnit(unit) ? Option.some(units[unit](Number(amount))) : Option.none()
}
