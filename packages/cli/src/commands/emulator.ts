/** `store-api emulator`: the access-token service and a protected API on this machine, with faults by name. */
import * as FileSystem from "@effect/platform/FileSystem"
import type { Client } from "@store-api/emulator/Client"
import * as Emulator from "@store-api/emulator/Emulator"
import type { RecordedRequest } from "@store-api/emulator/RecordedRequest"
import * as Scenario from "@store-api/emulator/Scenario"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Redacted from "effect/Redacted"
import { configuration, usage } from "../Fault.js"
import type * as flags from "../flags.js"
import { Host } from "../Host.js"
import * as output from "../output.js"

type Given = flags.Values<typeof flags.emulator>

export const run = (given: Given) =>
  Effect.gen(function*() {
    if (given.list) return yield* listScenarios
    const scenarios = yield* Effect.forEach(given.scenario, named)
    const overTls = scenarios.find((scenario) => scenario.tls)
    if (overTls !== undefined && !given.tls) return yield* usage("This scenario needs --tls.")
    const client = clientOf(given, (yield* Host).process.env["STORE_API_CLIENT_SECRET"])
    const emulator = yield* Emulator.make({
      clients: [client],
      port: yield* numberOf(given.port),
      tokenLife: yield* lifeOf(given["token-life"]),
      tls: given.tls
    }).pipe(
      Effect.provideServiceEffect(Emulator.Observer, printing),
      Effect.mapError(({ message }) => configuration(message))
    )
    yield* Effect.forEach(scenarios, ({ script }) => emulator.fail(script))
    yield* output.line(greeting(emulator.url, client, yield* caFile(emulator.ca)))
    return yield* Effect.never
  }).pipe(Effect.scoped)

const listScenarios = Effect.forEach(
  Scenario.names,
  (name) => output.line(`${name.padEnd(44)}${Scenario.all[name].expected}`),
  { discard: true }
)

const named = (name: string) => {
  const known = Scenario.names.find((known) => known === name)
  return known === undefined
    ? Effect.fail(usage(`There is no scenario ${name}: see store-api emulator --list.`))
    : Effect.succeed(Scenario.all[known])
}

/**
 * The invented client, unless another is asked for: only that one's secret comes from the environment, which usually holds
 * the secret of a real service.
 */
const clientOf = (given: Given, secret: string | undefined): Client =>
  Option.match(given["client-id"], {
    onNone: () => Emulator.demoClient,
    onSome: (clientId) => ({
      clientId,
      clientSecret: Option.match(Option.fromNullable(secret), {
        onNone: () => Emulator.demoClient.clientSecret,
        onSome: Redacted.make
      })
    })
  })

const numberOf = (port: Option.Option<string>) =>
  Option.match(port, {
    onNone: () => Effect.succeed(0),
    onSome: (text) =>
      /^\d{1,5}$/.test(text) ? Effect.succeed(Number(text)) : Effect.fail(usage("--port must be a whole number."))
  })

const units = { ms: 1, s: 1000, m: 60_000, h: 3_600_000 } as const

const lifeOf = (life: Option.Option<string>) =>
  Option.match(life, {
    onNone: () => Effect.succeed(undefined),
    onSome: (text) => {
      const [, count, unit] = /^(\d{1,8})\s*(ms|s|m|h)$/.exec(text) ?? []
      return count === undefined || unit === undefined
        ? Effect.fail(usage("--token-life must be a time such as 500ms, 2s, 5m or 1h, of at most 60m."))
        : Effect.succeed(Number(count) * units[unit as keyof typeof units])
    }
  })

/** Where other processes of Node read the certificate; gone with the emulator. */
const caFile = (ca: Option.Option<string>) =>
  Option.match(ca, {
    onNone: () => Effect.succeedNone,
    onSome: (pem) =>
      Effect.gen(function*() {
        const fs = yield* FileSystem.FileSystem
        const path = `${yield* fs.makeTempDirectoryScoped({ prefix: "store-api-" })}/ca.pem`
        yield* fs.writeFileString(path, pem)
        return Option.some(path)
      }).pipe(
        Effect.mapError(() => configuration("The certificate cannot be written to the folder for temporary files."))
      )
  })

const quoted = (value: string): string => `'${value.replaceAll("'", "'\\''")}'`

const greeting = (
  url: string,
  client: Client,
  ca: Option.Option<string>
): string =>
  [
    `The emulator listens on ${url}; stop it with Ctrl+C. For the shell of your application:`,
    "",
    `export STORE_API_AUTH_URL=${quoted(url)}`,
    `export STORE_API_URL=${quoted(url)}`,
    `export STORE_API_CLIENT_ID=${quoted(client.clientId)}`,
    client.clientSecret === Emulator.demoClient.clientSecret
      ? `export STORE_API_CLIENT_SECRET=${quoted(Redacted.value(client.clientSecret))}`
      : "# STORE_API_CLIENT_SECRET: the one that is set where the emulator was started; it is not printed",
    ...Option.toArray(ca).map((path) => `export NODE_EXTRA_CA_CERTS=${quoted(path)}`),
    ""
  ].join("\n")

/** A process that runs for days prints requests and remembers none. */
const printing = Effect.map(Host, (host) => ({
  keep: 0,
  onEnd: ({ method, status, url }: RecordedRequest) =>
    Option.match(status, {
      onNone: () => Effect.void,
      onSome: (status) =>
        output.line(`${method} ${url.replace(/[?].*$/s, "?…")} ${status}`).pipe(
          Effect.ignore,
          Effect.provideService(Host, host)
        )
    })
}))
