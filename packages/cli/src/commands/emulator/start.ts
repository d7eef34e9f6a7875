/** `store-api emulator`: a token service and an API on this machine. */
import * as FileSystem from "@effect/platform/FileSystem"
import { type Client, demoClient } from "@store-api/emulator/Client"
import * as Emulator from "@store-api/emulator/Emulator"
import type { EmulatorError } from "@store-api/emulator/EmulatorError"
import {
  ApiResponse,
  type ClientAuthentication,
  steeringPath
} from "@store-api/emulator/EmulatorOptions"
import { IssuedToken } from "@store-api/emulator/IssuedToken"
import * as Scenario from "@store-api/emulator/Scenario"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Redacted from "effect/Redacted"
import * as Schema from "effect/Schema"
import { type CommandError, configurationError, usageError } from "../../CommandError.js"
import { assignment, isNotFound, write } from "../../files.js"
import { timeOf, type Values } from "../../flags.js"
import { Host } from "../../Host.js"
import * as output from "../../output.js"
import { sources } from "../../settings/sources.js"
import type { startFlags } from "./flags.js"

type FlagValues = Values<typeof startFlags>

/** Runs until it is interrupted. */
export const start = (flagValues: FlagValues) =>
  Effect.gen(function*() {
    if (flagValues.list) return yield* output.line(scenarioList)
    const scenarios = yield* Effect.forEach(flagValues.scenario, (name) =>
      findScenario(name, flagValues))
    const client = clientOf(flagValues["client-id"], (yield* Host).process.env[secretVariable])
    const publicKey = yield* publicKeyOf(flagValues["public-key"])
    const methods = flagValues["client-authentication"]
    const save = yield* saverOf(flagValues.state)
    const emulator = yield* Emulator.make({
      clients: [{ ...client, publicKey }],
      port: flagValues.port === "" ? NaN : Number(flagValues.port ?? 0),
      tokenLife: yield* timeOf("--token-life", flagValues["token-life"] ?? "60m"),
      tokenPath: flagValues["token-path"],
      clientAuthentication: methods.length > 0 ? methods : undefined,
      dpop: flagValues.dpop,
      responses: yield* contentOf(
        "--responses",
        flagValues.responses,
        ApiResponse,
        "responses"
      ),
      tokens: yield* contentOf("--state", flagValues.state, IssuedToken, "tokens"),
      lenient: flagValues.lenient,
      tls: flagValues.tls,
      steering: true
    }).pipe(
      Effect.provideService(Emulator.Observer, {
        // A process that runs for days keeps few requests, without their bodies.
        keep: 200,
        onLine: (text, json) =>
          Effect.ignore(output.line(flagValues.log === "json" ? json : text)),
        onTokens: (tokens) =>
          Effect.catchAll(save(tokens), ({ message }) =>
            output.problem(message))
      }),
      Effect.catchTag("EmulatorError", explain)
    )
    yield* Effect.mapError(Effect.forEach(scenarios, (name) => emulator.fail(name)), explain)
    yield* save(emulator.tokens)
    const needsSecret = methods.length === 0 ||
      methods.some((method) => !secretless.includes(method))
    const variables = variablesOf(
      emulator.url,
      client,
      needsSecret,
      yield* Effect.forEach(Option.toArray(emulator.ca), caFile)
    )
    if (flagValues.dotenv !== undefined) yield* writeDotenv(flagValues.dotenv, variables)
    yield* output.line(formatGreeting(flagValues.log, emulator.url, variables, needsSecret))
    return yield* Effect.never
  }).pipe(Effect.scoped)

const scenarioList = Scenario.names.map((name) =>
  `${name.padEnd(44)}${Scenario.describeOutcome(Scenario.all[name].outcome)}`
).join("\n")

const findScenario = (
  name: string,
  flagValues: FlagValues
): Effect.Effect<Scenario.Name, CommandError> => {
  const scenario = Scenario.names.find((candidate) => candidate === name)
  if (scenario === undefined) {
    return usageError("--scenario must be a name that --list prints.")
  }
  const given: Readonly<Record<string, unknown>> = flagValues
  const missingFlags = Object.entries(Scenario.all[scenario].options).flatMap(
    ([option, value]) => {
      const flag = flagOf(option)
      if ([given[flag]].flat().includes(value)) return []
      return [value === true ? `--${flag}` : `--${flag} ${value}`]
    }
  )
  return missingFlags.length > 0
    ? usageError(`--scenario ${scenario} needs ${missingFlags.join(" and ")}.`)
    : Effect.succeed(scenario)
}

/** Returns the name of the flag for an option of the emulator, such as `token-life`. */
const flagOf = (option: string) =>
  option.replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`)

const { variable: secretVariable } = sources.clientSecret

/** The variable usually holds a production secret, so it is only for a client that was named. */
const clientOf = (clientId: string | undefined, secret: string | undefined): Client =>
  clientId === undefined
    ? demoClient
    : {
      clientId,
      clientSecret: secret === undefined ? demoClient.clientSecret : Redacted.make(secret)
    }

/** The text of the file with the client's public key. */
const publicKeyOf = (file: string | undefined) =>
  file === undefined ? Effect.succeed(undefined) : textOf(file).pipe(
    Effect.mapError(() => usageError("--public-key must be a file that can be read."))
  )

/** Names the flag or the variable instead of the option. */
const explain = ({ option, problem, reason }: EmulatorError) => {
  if (option === "clients[0].clientSecret") {
    return configurationError(`${secretVariable} ${problem}.`)
  }
  const flag = flagOf(option.replace("clients[0].", ""))
  return (reason === "InvalidOption" ? usageError : configurationError)(
    `--${flag} ${problem}.`
  )
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
      Effect.mapError(() =>
        usageError(`${flag} must be a JSON file with an array of ${what}.`)
      )
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
    configurationError("--tls needs a folder for temporary files that it may write to.")
  ))

/** The methods for which an application needs no secret. */
const secretless: ReadonlyArray<ClientAuthentication> = ["private_key_jwt", "none"]

/** Leaves out a secret of the user, and one that is not needed. */
const variablesOf = (
  url: string,
  { clientId, clientSecret }: Client,
  needsSecret: boolean,
  [caFile]: ReadonlyArray<string>
) => ({
  STORE_API_AUTH_URL: url,
  STORE_API_URL: url,
  STORE_API_CLIENT_ID: clientId,
  ...(needsSecret && clientSecret === demoClient.clientSecret &&
    { STORE_API_CLIENT_SECRET: Redacted.value(clientSecret) }),
  ...(caFile !== undefined && { NODE_EXTRA_CA_CERTS: caFile })
})

type ShellVariables = ReturnType<typeof variablesOf>

/** The first line of a file that may be replaced. */
const dotenvMark = "# Written by store-api-emulator"

/** Replaces only an empty file, or one that an emulator wrote, because a .env may hold real credentials. */
const writeDotenv = (file: string, variables: ShellVariables) =>
  Effect.gen(function*() {
    const former = yield* Effect.orElseSucceed(textOf(file), () => "not readable")
    if (former !== "" && !former.startsWith(dotenvMark)) {
      return yield* usageError(
        "--dotenv must be a new file, an empty one, or one that an emulator wrote."
      )
    }
    const lines = yield* Effect.forEach(Object.entries(variables), (entry) =>
      assignment(...entry))
    yield* write(
      (yield* Host).pathOf(file),
      `${dotenvMark}, which replaces this file.\n${lines.join("")}`
    )
  })

const formatGreeting = (
  log: FlagValues["log"],
  url: string,
  variables: ShellVariables,
  needsSecret: boolean
) => {
  const page = `http://127.0.0.1:${new URL(url).port}${steeringPath}`
  if (log === "json") {
    return JSON.stringify({ event: "listening", url, page, variables })
  }
  return [
    `The emulator listens on ${url}. Press Ctrl+C to stop it.`,
    `Watch and steer it at ${page}`,
    "For the shell of your application:",
    "",
    ...Object.entries(variables).map(([name, value]) =>
      `export ${name}='${value.replaceAll("'", "'\\''")}'`
    ),
    ...(needsSecret && !(secretVariable in variables)
      ? [`# ${secretVariable} is not printed: use the one that the emulator has`]
      : []),
    ""
  ].join("\n")
}
