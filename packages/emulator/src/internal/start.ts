/** Starts an emulator for the command. */
import { renameSync, rmSync, writeFileSync } from "node:fs"
import * as FileSystem from "@effect/platform/FileSystem"
import * as NodeFileSystem from "@effect/platform-node/NodeFileSystem"
import * as Config from "effect/Config"
import * as Console from "effect/Console"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Num from "effect/Number"
import * as Option from "effect/Option"
import * as Redacted from "effect/Redacted"
import * as Schema from "effect/Schema"
import { type Client, demoClient } from "../Client.js"
import * as Emulator from "../Emulator.js"
import type { EmulatorError } from "../EmulatorError.js"
import type { ClientAuthentication } from "../EmulatorOptions.js"
import type { IssuedToken } from "../IssuedToken.js"
import * as Scenario from "../Scenario.js"
import { problemOfName } from "./faultQueue.js"
import type { Flags } from "./flags.js"
import { unusable } from "./settings.js"
import { logJson, logLine, prefix } from "./steering.js"

export const start = (flags: Flags): Effect.Effect<void, EmulatorError> =>
  Effect.gen(function*() {
    if (flags.list === true) return yield* Console.log(scenarioList)
    const names = yield* Effect.forEach(flags.scenario ?? [], (name) => scenarioOf(name, flags.tls))
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
      responses: yield* contentOf("--responses", flags.responses, Responses, "with an array of responses"),
      tokens: yield* contentOf("--state", flags.state, SavedTokens, "that an emulator wrote, or a new one"),
      lenient: flags.lenient,
      tls: flags.tls,
      steering: true
    }).pipe(Effect.provideService(Emulator.Observer, yield* observerOf(flags)))
    yield* Effect.forEach(names, (name) => emulator.fail(name))
    if (flags.state !== undefined) yield* save(flags.state, yield* emulator.tokens)
    const variables = variablesOf(emulator.url, client, yield* Effect.forEach(Option.toArray(emulator.ca), caFile))
    yield* writeVariables("--dotenv", flags.dotenv, variables)
    yield* writeVariables("--env-file", flags["env-file"], variables)
    yield* Console.log(greeting(flags.log, emulator.url, variables))
    return yield* Effect.never
  }).pipe(
    Effect.scoped,
    Effect.provide(NodeFileSystem.layer),
    Effect.mapError(({ option, problem, reason }) =>
      unusable(names[option] ?? option.replace(/^responses/, "--responses"), problem, reason)
    )
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

const scenarioList = Scenario.names.map((name) => `${name.padEnd(44)}${Scenario.all[name].expected}`).join("\n")

const scenarioOf = (name: string, tls = false) => {
  const problem = problemOfName(name, tls)
  return problem === undefined ? Effect.succeed(name as Scenario.Name) : Effect.fail(unusable("--scenario", problem))
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
    onNone: () => Effect.fail(unusable("--token-life", "must be a time such as 500ms, 2s, 5m or 1h, of at most 60m")),
    onSome: Effect.succeed
  })
}

const Responses = Schema.Array(Schema.Struct({
  method: Schema.optional(Schema.String),
  path: Schema.String,
  status: Schema.optional(Schema.Number),
  headers: Schema.optional(Schema.Record({ key: Schema.String, value: Schema.String })),
  body: Schema.optional(Schema.Unknown)
}))

const SavedTokens = Schema.Array(Schema.Struct({
  id: Schema.Number,
  value: Schema.Redacted(Schema.String),
  clientId: Schema.String,
  scope: Schema.String,
  issuedAt: Schema.DateTimeUtc,
  expiresAt: Schema.DateTimeUtc,
  revokedAt: Schema.OptionFromNullOr(Schema.DateTimeUtc)
}))

/** The content of a file. Only that of the state may be absent. */
const contentOf = <A, I>(
  option: string,
  path: string | undefined,
  schema: Schema.Schema<ReadonlyArray<A>, I>,
  what: string
) =>
  Effect.gen(function*() {
    if (path === undefined) return []
    const fs = yield* FileSystem.FileSystem
    const isNew = option === "--state" && !(yield* fs.exists(path))
    return isNew ? [] : yield* Schema.decode(Schema.parseJson(schema))(yield* fs.readFileString(path))
  }).pipe(Effect.mapError(() => unusable(option, `must be a JSON file ${what}`)))

/** Replaces the file in one step. This is synchronous, so that an older state cannot replace a newer one. */
const save = (path: string, tokens: ReadonlyArray<IssuedToken>) =>
  Effect.try({
    try: () => {
      rmSync(`${path}.new`, { force: true })
      const text = Schema.encodeSync(Schema.parseJson(SavedTokens))(tokens)
      writeFileSync(`${path}.new`, text, { mode: 0o600, flag: "wx" })
      renameSync(`${path}.new`, path)
    },
    catch: () => unusable("--state", "must be a file in a folder that this user may write to")
  })

/** A process that runs for days keeps few requests, without their bodies. */
const observerOf = ({ log = "text", state }: Flags) => {
  if (log !== "text" && log !== "json") return Effect.fail(unusable("--log", "must be text or json"))
  const print = (entry: Parameters<typeof logLine>[0]) => Console.log((log === "json" ? logJson : logLine)(entry))
  const onTokens = state === undefined
    ? undefined
    : (tokens: ReadonlyArray<IssuedToken>) =>
      Effect.catchAll(save(state, tokens), ({ message }) => Console.error(message))
  return Effect.succeed({ keep: 200, onStart: print, onEnd: print, onConnection: print, onTokens })
}

/** Where other Node processes read the certificate. */
const caFile = (pem: string) =>
  Effect.gen(function*() {
    const fs = yield* FileSystem.FileSystem
    const path = `${yield* fs.makeTempDirectoryScoped({ prefix: "store-api-" })}/ca.pem`
    yield* fs.writeFileString(path, pem)
    return path
  }).pipe(
    Effect.mapError(() => unusable("--tls", "needs a folder for temporary files that it may write to", "CannotListen"))
  )

/** Leaves out a secret of the user. */
const variablesOf = (url: string, { clientId, clientSecret }: Client, [caFile]: ReadonlyArray<string>) => ({
  ...{ STORE_API_AUTH_URL: url, STORE_API_URL: url, STORE_API_CLIENT_ID: clientId },
  ...(clientSecret === demoClient.clientSecret && { STORE_API_CLIENT_SECRET: Redacted.value(clientSecret) }),
  ...(caFile !== undefined && { NODE_EXTRA_CA_CERTS: caFile })
})

type Variables = ReturnType<typeof variablesOf>

const quoted = (value: string) => `'${value.replaceAll("'", "'\\''")}'`

const greeting = (log: string | undefined, url: string, variables: Variables) => {
  const page = `http://127.0.0.1:${new URL(url).port}${prefix}`
  return log === "json"
    ? JSON.stringify({ event: "listening", url, page, variables })
    : [
      `The emulator listens on ${url}. Press Ctrl+C to stop it.`,
      `Watch and steer it at ${page}`,
      "For the shell of your application:",
      "",
      ...Object.entries(variables).map(([name, value]) => `export ${name}=${quoted(value)}`),
      ...("STORE_API_CLIENT_SECRET" in variables
        ? []
        : ["# STORE_API_CLIENT_SECRET is not printed: use the one that the emulator has"]),
      ""
    ].join("\n")
}

/** The first line of a file that may be replaced. */
const envFileMark = "# Written by store-api-emulator"

const writeVariables = (option: string, path: string | undefined, variables: Variables) =>
  Effect.gen(function*() {
    if (path === undefined) return
    const fs = yield* FileSystem.FileSystem
    // Replaces only an empty file, or one that an emulator wrote, because a .env may hold real credentials. The file
    // is created anew, so that its mode applies.
    const former = yield* Effect.option(fs.readFileString(path))
    if (Option.exists(former, (text) => text === "" || text.startsWith(envFileMark))) yield* fs.remove(path)
    const text = `${envFileMark}, which replaces this file.\n` +
      Object.entries(variables).map(([name, value]) => `${name}=${inDotenv(value)}\n`).join("")
    yield* fs.writeFileString(path, text, { mode: 0o600, flag: "wx" })
  }).pipe(
    Effect.mapError(() =>
      unusable(option, "must be a new file in a folder that exists, an empty file, or one that an emulator wrote")
    )
  )

/** In quotes that the value does not contain. In double quotes, Node replaces `\n`. */
const inDotenv = (value: string) => {
  const quote = ["'", "`"].find((quote) => !value.includes(quote)) ?? "\""
  return `${quote}${value}${quote}`
}
