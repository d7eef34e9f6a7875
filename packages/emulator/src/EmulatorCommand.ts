/**
 * The emulator as a command: `store-api-emulator`, and `store-api emulator` of `@store-api/cli`.
 *
 * @since 1.0.0
 */
import * as FileSystem from "@effect/platform/FileSystem"
import * as NodeFileSystem from "@effect/platform-node/NodeFileSystem"
import * as Config from "effect/Config"
import * as Console from "effect/Console"
import * as DateTime from "effect/DateTime"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Num from "effect/Number"
import * as Option from "effect/Option"
import * as Redacted from "effect/Redacted"
import { type Client, demoClient } from "./Client.js"
import * as Emulator from "./Emulator.js"
import { EmulatorError } from "./EmulatorError.js"
import type { ClientAuthentication } from "./EmulatorOptions.js"
import type { RecordedRequest } from "./RecordedRequest.js"
import * as Scenario from "./Scenario.js"

/**
 * The flags of the command by name, with their values as they were typed.
 *
 * @see run
 *
 * @since 1.0.0
 * @category models
 */
export interface Flags {
  /** The TCP port; default: a free one. */
  readonly port?: string | undefined
  /** The lifetime of a token, `500ms`, `2s`, `5m`, `1h` or as Effect writes it; default and at most 60 minutes. */
  readonly "token-life"?: string | undefined
  /** The path of the token endpoint; default: `/v1/oauth/accesstoken`. */
  readonly "token-path"?: string | undefined
  /** How clients authenticate: `specification` (default), or `client_secret_post`, `client_secret_basic` or both. */
  readonly "client-authentication"?: ReadonlyArray<string> | undefined
  /** A client id. Its secret is the `Config` `STORE_API_CLIENT_SECRET`. Default: `demoClient`. */
  readonly "client-id"?: string | undefined
  /** The names of scenarios, in the order in which requests meet them; default: none. */
  readonly scenario?: ReadonlyArray<string> | undefined
  /** Whether to print the names of all scenarios and stop; default false. */
  readonly list?: boolean | undefined
  /** The file to write the variables to, which only this user can read; default: none. */
  readonly dotenv?: string | undefined
  /** The same as `dotenv`. Node also takes a flag of this name for itself, and exits if the file does not exist. */
  readonly "env-file"?: string | undefined
  /** Whether to accept a charset and fields in any order at the token endpoint; default false. */
  readonly lenient?: boolean | undefined
  /** Whether to speak https; default false. The certificate is in a file that is removed when the command stops. */
  readonly tls?: boolean | undefined
}

/**
 * Starts an emulator, prints the variables for an application, then one line per request, to the `Console`. Runs until
 * it is interrupted, and remembers no request. Fails with an `EmulatorError` whose `option` is the flag or the
 * variable.
 *
 * @example
 * ```ts
 * import { NodeRuntime } from "@effect/platform-node"
 * import { EmulatorCommand } from "@store-api/emulator"
 *
 * NodeRuntime.runMain(
 *   EmulatorCommand.run({ port: "4010", "token-life": "2s", scenario: ["token/429-without-retry-after"] })
 * )
 * ```
 *
 * @since 1.0.0
 * @category constructors
 */
export const run = (flags: Flags): Effect.Effect<void, EmulatorError> =>
  Effect.gen(function*() {
    if (flags.list === true) return yield* Console.log(Scenario.names.map(described).join("\n"))
    const scripts = yield* Effect.forEach(flags.scenario ?? [], (name) => scriptOf(name, flags.tls === true))
    const client = yield* clientOf(flags["client-id"])
    // The emulator refuses any other name.
    const methods = (flags["client-authentication"] ?? []) as ReadonlyArray<ClientAuthentication>
    const emulator = yield* Emulator.make({
      clients: [client],
      // A value that is not a number fails like a port out of range.
      port: flags.port === undefined ? undefined : Option.getOrElse(Num.parse(flags.port), () => NaN),
      tokenLife: yield* lifeOf(flags["token-life"]),
      tokenPath: flags["token-path"],
      clientAuthentication: methods.length > 0 ? methods : undefined,
      lenient: flags.lenient,
      tls: flags.tls
    }).pipe(Effect.provideService(Emulator.Observer, printing))
    yield* Effect.forEach(scripts, emulator.fail)
    const variables = variablesOf(emulator.url, client, yield* Effect.forEach(Option.toArray(emulator.ca), caFile))
    for (const flag of ["dotenv", "env-file"] as const) {
      const path = flags[flag]
      if (path !== undefined) yield* writeVariables(`--${flag}`, path, variables)
    }
    yield* Console.log(greeting(emulator.url, client, variables))
    yield* Console.log("")
    return yield* Effect.never
  }).pipe(
    Effect.scoped,
    Effect.provide(NodeFileSystem.layer),
    Effect.mapError((error) => new EmulatorError({ ...error, option: names[error.option] ?? error.option }))
  )

/** What the command calls the options of the emulator. */
const names: Readonly<Record<string, string>> = {
  "clients[0].clientId": "--client-id",
  "clients[0].clientSecret": "STORE_API_CLIENT_SECRET",
  port: "--port",
  tokenLife: "--token-life",
  tokenPath: "--token-path",
  clientAuthentication: "--client-authentication"
}

const invalid = (option: string, problem: string) =>
  Effect.fail(new EmulatorError({ reason: "InvalidOption", option, problem }))

const described = (name: Scenario.Name) => `${name.padEnd(44)}${Scenario.all[name].expected}`

const scriptOf = (name: string, tls: boolean) => {
  const known = Scenario.names.find((known) => known === name)
  if (known === undefined) return invalid("--scenario", "must be a name that --list prints")
  return Scenario.all[known].tls && !tls
    ? invalid("--scenario", `${known} needs --tls`)
    : Effect.succeed(Scenario.get(known))
}

/** The variable usually holds a production secret, so it is read only for a client that was named. */
const clientOf = (clientId: string | undefined): Effect.Effect<Client> =>
  clientId === undefined
    ? Effect.succeed(demoClient)
    : Config.redacted("STORE_API_CLIENT_SECRET").pipe(
      Config.withDefault(demoClient.clientSecret),
      Effect.map((clientSecret) => ({ clientId, clientSecret })),
      Effect.orDie
    )

const units = { ms: "millis", s: "seconds", m: "minutes", h: "hours" }

const lifeOf = (text = "60m") => {
  const long = text.replace(
    /^([\d.]+) ?(ms|s|m|h)$/,
    (_, count: string, unit: keyof typeof units) => `${count} ${units[unit]}`
  )
  return Option.match(Duration.decodeUnknown(long), {
    onNone: () => invalid("--token-life", "must be a time such as 500ms, 2s, 5m or 1h, of at most 60m"),
    onSome: Effect.succeed
  })
}

/** Where other Node processes read the certificate. */
const caFile = (pem: string) =>
  Effect.gen(function*() {
    const fs = yield* FileSystem.FileSystem
    const path = `${yield* fs.makeTempDirectoryScoped({ prefix: "store-api-" })}/ca.pem`
    yield* fs.writeFileString(path, pem)
    return path
  }).pipe(Effect.mapError(() =>
    new EmulatorError({
      reason: "CannotListen",
      option: "--tls",
      problem: "needs a folder for temporary files that this user may write to"
    })
  ))

/** Without a secret of the user. */
const variablesOf = (url: string, { clientId, clientSecret }: Client, caFiles: ReadonlyArray<string>) => [
  ["STORE_API_AUTH_URL", url],
  ["STORE_API_URL", url],
  ["STORE_API_CLIENT_ID", clientId],
  ...(clientSecret === demoClient.clientSecret ? [["STORE_API_CLIENT_SECRET", Redacted.value(clientSecret)]] : []),
  ...caFiles.map((path) => ["NODE_EXTRA_CA_CERTS", path])
]

const quoted = (value: string | undefined = "") => `'${value.replaceAll("'", "'\\''")}'`

const greeting = (url: string, { clientSecret }: Client, variables: ReadonlyArray<ReadonlyArray<string>>) =>
  [
    `The emulator listens on ${url}. Press Ctrl+C to stop it.`,
    "For the shell of your application:",
    "",
    ...variables.map(([name, value]) => `export ${name ?? ""}=${quoted(value)}`),
    ...(clientSecret === demoClient.clientSecret
      ? []
      : ["# STORE_API_CLIENT_SECRET: as it is set for the emulator; it is not printed"])
  ].join("\n")

/** In a new file, so that its mode counts. */
const envFileMark = "# Written by store-api-emulator"

const writeVariables = (option: string, path: string, variables: ReadonlyArray<ReadonlyArray<string>>) =>
  Effect.gen(function*() {
    const fs = yield* FileSystem.FileSystem
    // Replaces only an empty file, or one that an emulator wrote: a .env may hold real credentials.
    const former = yield* Effect.option(fs.readFileString(path))
    if (Option.exists(former, (text) => text === "" || text.startsWith(envFileMark))) yield* fs.remove(path)
    const text = `${envFileMark}, which replaces this file.\n` +
      variables.map(([name, value]) => `${name ?? ""}=${inDotenv(value)}\n`).join("")
    yield* fs.writeFileString(path, text, { mode: 0o600, flag: "wx" })
  }).pipe(Effect.mapError(() =>
    new EmulatorError({
      reason: "InvalidOption",
      option,
      problem: "must be a new file in a folder that exists, an empty file, or one that an emulator wrote"
    })
  ))

/** In quotes that the value does not contain. In double quotes, Node replaces `\n`. */
const inDotenv = (value = "") => {
  const quote = ["'", "`"].find((quote) => !value.includes(quote)) ?? "\""
  return `${quote}${value}${quote}`
}

/** A process that runs for days prints requests, without their queries, and remembers none. */
const printing = {
  keep: 0,
  onEnd: ({ method, reason, status, url }: RecordedRequest) =>
    Effect.flatMap(DateTime.now, (now) =>
      Console.log([
        DateTime.formatIso(now).slice(11, 19),
        method,
        url.replace(/[?].*$/s, "?…"),
        Option.getOrElse(status, () => "ended without a response"),
        ...Option.toArray(reason)
      ].join(" ")))
}
