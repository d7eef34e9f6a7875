/** `store-api emulator`: a token service and an API on this machine. */
import * as FileSystem from "@effect/platform/FileSystem"
import { type Client, demoClient } from "@store-api/emulator/Client"
import * as Emulator from "@store-api/emulator/Emulator"
import type { EmulatorError } from "@store-api/emulator/EmulatorError"
import { ApiResponse, steeringPath } from "@store-api/emulator/EmulatorOptions"
import { IssuedToken } from "@store-api/emulator/IssuedToken"
import * as Scenario from "@store-api/emulator/Scenario"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Redacted from "effect/Redacted"
import * as Schema from "effect/Schema"
import { configuration, type Fault, usage } from "../../Fault.js"
import { assignment, isNotFound, write } from "../../files.js"
import { timeOf, type Values } from "../../flags.js"
import { Host } from "../../Host.js"
import * as output from "../../output.js"
import { sources } from "../../settings/sources.js"
import type { startFlags } from "./flags.js"

type Given = Values<typeof startFlags>

/** Runs until it is interrupted. */
export const start = (given: Given) =>
  Effect.gen(function*() {
    if (given.list) return yield* output.line(scenarioList)
    const scenarios = yield* Effect.forEach(given.scenario, (name) =>
      scenarioOf(name, given.tls))
    const client = clientOf(given["client-id"], (yield* Host).process.env[secretVariable])
    const methods = given["client-authentication"]
    const save = yield* saverOf(given.state)
    const emulator = yield* Emulator.make({
      clients: [client],
      port: given.port === "" ? NaN : Number(given.port ?? 0),
      tokenLife: yield* timeOf("--token-life", given["token-life"] ?? "60m"),
      tokenPath: given["token-path"],
      clientAuthentication: methods.length > 0 ? methods : undefined,
      responses: yield* contentOf("--responses", given.responses, ApiResponse, "responses"),
      tokens: yield* contentOf("--state", given.state, IssuedToken, "tokens"),
      lenient: given.lenient,
      tls: given.tls,
      steering: true
    }).pipe(
      Effect.provideService(Emulator.Observer, {
        // A process that runs for days keeps few requests, without their bodies.
        keep: 200,
        onLine: (text, json) =>
          Effect.ignore(output.line(given.log === "json" ? json : text)),
        onTokens: (tokens) =>
          Effect.catchAll(save(tokens), ({ message }) => output.problem(message))
      }),
      Effect.catchTag("EmulatorError", explain)
    )
    yield* Effect.mapError(Effect.forEach(scenarios, (name) => emulator.fail(name)), explain)
    yield* save(emulator.tokens)
    const exported = variablesOf(
      emulator.url,
      client,
      yield* Effect.forEach(Option.toArray(emulator.ca), caFile)
    )
    if (given.dotenv !== undefined) yield* writeDotenv(given.dotenv, exported)
    yield* output.line(greeting(given.log, emulator.url, exported))
    return yield* Effect.never
  }).pipe(Effect.scoped)

const scenarioList = Scenario.names.map((name) =>
  `${name.padEnd(44)}${Scenario.describeOutcome(Scenario.all[name].outcome)}`
).join("\n")

const scenarioOf = (name: string, tls: boolean): Effect.Effect<Scenario.Name, Fault> => {
  const known = Scenario.names.find((known) => known === name)
  if (known === undefined) return usage("--scenario must be a name that --list prints.")
  return Scenario.all[known].tls && !tls
    ? usage(`--scenario ${known} needs --tls.`)
    : Effect.succeed(known)
}

const { variable: secretVariable } = sources.clientSecret

/** The variable usually holds a production secret, so it is only for a client that was named. */
const clientOf = (clientId: string | undefined, secret: string | undefined): Client =>
  clientId === undefined
    ? demoClient
    : {
      clientId,
      clientSecret: secret === undefined ? demoClient.clientSecret : Redacted.make(secret)
    }

/** Names the flag or the variable instead of the option. */
const explain = ({ option, problem, reason }: EmulatorError) => {
  if (option === "clients[0].clientSecret") {
    return configuration(`${secretVariable} ${problem}.`)
  }
  const flag = option.replace("clients[0].", "").replace(
    /[A-Z]/g,
    (letter) => `-${letter.toLowerCase()}`
  )
  return (reason === "InvalidOption" ? usage : configuration)(`--${flag} ${problem}.`)
}

/** The array in a JSON file. Only the file of the state may be absent. */
const contentOf = <A, I>(
  flag: string,
  file: string | undefined,
  schema: Schema.Schema<A, I>,
  what: string
) =>
  (file === undefined ? Effect.succeed("[]") : textOf(file, flag === "--state" ? "[]" : ""))
    .pipe(
      Effect.flatMap(Schema.decode(Schema.parseJson(Schema.Array(schema)))),
      Effect.mapError(() => usage(`${flag} must be a JSON file with an array of ${what}.`))
    )

/** The text of a file, or another one if there is none. */
const textOf = (file: string, absent = "") =>
  Effect.gen(function*() {
    const fs = yield* FileSystem.FileSystem
    const path = (yield* Host).pathOf(file)
    return yield* Effect.catchIf(fs.readFileString(path), isNotFound, () =>
      Effect.succeed(absent))
  })

const encodeTokens = Schema.encode(Schema.parseJson(Schema.Array(IssuedToken)))

/** Writes one state after the other, so that an older one cannot replace a newer one. */
const saverOf = (file: string | undefined) =>
  Effect.gen(function*() {
    const fs = yield* FileSystem.FileSystem
    const { pathOf } = yield* Host
    const lock = yield* Effect.makeSemaphore(1)
    return (tokens: Effect.Effect<ReadonlyArray<IssuedToken>>) =>
      file === undefined ?
        Effect.void :
        Effect.orDie(Effect.flatMap(tokens, encodeTokens)).pipe(
          Effect.flatMap((text) => write(pathOf(file), text)),
          lock.withPermits(1),
          Effect.uninterruptible,
          Effect.provideService(FileSystem.FileSystem, fs)
        )
  })

/** Where other Node processes read the certificate. */
const caFile = (pem: string) =>
  Effect.gen(function*() {
    const fs = yield* FileSystem.FileSystem
    const path = `${yield* fs.makeTempDirectoryScoped({ prefix: "store-api-" })}/ca.pem`
    yield* fs.writeFileString(path, pem)
    return path
  }).pipe(Effect.mapError(() =>
    configuration("--tls needs a folder for temporary files that it may write to.")
  ))

/** Leaves out a secret of the user. */
const variablesOf = (
  url: string,
  { clientId, clientSecret }: Client,
  [caFile]: ReadonlyArray<string>
) => ({
  STORE_API_AUTH_URL: url,
  STORE_API_URL: url,
  STORE_API_CLIENT_ID: clientId,
  ...(clientSecret === demoClient.clientSecret &&
    { STORE_API_CLIENT_SECRET: Redacted.value(clientSecret) }),
  ...(caFile !== undefined && { NODE_EXTRA_CA_CERTS: caFile })
})

type Exported = ReturnType<typeof variablesOf>

/** The first line of a file that may be replaced. */
const dotenvMark = "# Written by store-api-emulator"

/** Replaces only an empty file, or one that an emulator wrote, because a .env may hold real credentials. */
const writeDotenv = (file: string, exported: Exported) =>
  Effect.gen(function*() {
    const former = yield* Effect.orElseSucceed(textOf(file), () => "not readable")
    if (former !== "" && !former.startsWith(dotenvMark)) {
      return yield* usage(
        "--dotenv must be a new file, an empty one, or one that an emulator wrote."
      )
    }
    const lines = yield* Effect.forEach(Object.entries(exported), (entry) =>
      assignment(...entry))
    yield* write(
      (yield* Host).pathOf(file),
      `${dotenvMark}, which replaces this file.\n${lines.join("")}`
    )
  })

const greeting = (log: Given["log"], url: string, exported: Exported) => {
  const page = `http://127.0.0.1:${new URL(url).port}${steeringPath}`
  if (log === "json") {
    return JSON.stringify({ event: "listening", url, page, variables: exported })
  }
  return [
    `The emulator listens on ${url}. Press Ctrl+C to stop it.`,
    `Watch and steer it at ${page}`,
    "For the shell of your application:",
    "",
    ...Object.entries(exported).map(([name, value]) =>
      `export ${name}='${value.replaceAll("'", "'\\''")}'`
    ),
    ...(secretVariable in exported
      ? []
      : [`# ${secretVariable} is not printed: use the one that the emulator has`]),
    ""
  ].join("\n")
}
