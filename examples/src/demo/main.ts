/** The two demos: one with the emulator, one with the real service. */
import { AccessTokenProvider, AuthorizedHttpClient } from "@store-api/core"
import { Emulator } from "@store-api/emulator"
import { NodeStoreAuth } from "@store-api/platform-node"
import {
  Clock,
  Config,
  Console,
  DateTime,
  Duration,
  Effect,
  Layer,
  Option,
  Stream
} from "effect"
import { checked, DemoError, isConfigured, sentence } from "./environment.js"
import * as show from "./show.js"
import * as timeline from "./timeline.js"

/** Gets a token and shows to whom it was issued and when it expires. Does not show the token itself. */
const obtain = Effect.gen(function*() {
  const provider = yield* AccessTokenProvider.AccessTokenProvider
  const [took, token] = yield* Effect.timed(provider.get)
  yield* timeline.acquired(token)
  const told = (text: Option.Option<string>) =>
    Option.match(text, { onNone: () => "(not given)", onSome: (text) => show.printable(text) })
  yield* show.row("application", told(token.applicationName))
  yield* show.row(
    "developer",
    Option.match(token.developerEmail, { onNone: () => "(not given)", onSome: show.masked })
  )
  yield* show.row("client id", told(token.clientId))
  yield* show.row(
    "acquired",
    `${DateTime.formatIso(token.acquiredAt)}, in ${show.duration(took)}`
  )
  yield* show.row("expires", DateTime.formatIso(token.expiresAt))
  return token
})

/** Gets the token once more: the cached one, immediately. */
const fromCache = Effect.gen(function*() {
  const provider = yield* AccessTokenProvider.AccessTokenProvider
  const [took, token] = yield* Effect.timed(provider.get)
  yield* timeline.acquired(token)
  yield* show.row(
    "acquired",
    `${DateTime.formatIso(token.acquiredAt)}, from the cache in ${show.duration(took)}`
  )
})

/** Calls a protected resource and shows the status of the response. */
const call = (path: string) =>
  Effect.gen(function*() {
    const client = yield* AuthorizedHttpClient.AuthorizedHttpClient
    const provider = yield* AccessTokenProvider.AccessTokenProvider
    const [took, status] = yield* Effect.timed(
      Effect.flatMap(client.get(path), (response) =>
        Effect.as(Stream.runDrain(response.stream), response.status))
    )
    yield* timeline.called
    yield* Effect.flatMap(provider.current, Effect.transposeMapOption(timeline.acquired))
    yield* show.row(
      `GET ${show.printable(path.replace(/[?#].*$/s, ""))}`,
      `${status}, in ${show.duration(took)}`
    )
    return status
  })

const tokenLife = Duration.seconds(2)

const EmulatorLive = Emulator.layer({ tokenLife })

const EmulatedAuthLive = Layer.unwrapEffect(
  Effect.map(Emulator.Emulator, ({ url }) =>
    NodeStoreAuth.layer({
      authUrl: url,
      apiUrl: url,
      clientId: Emulator.demoClient.clientId,
      clientSecret: Emulator.demoClient.clientSecret,
      // The emulator is on this machine, so a proxy could not reach it.
      http: { proxy: "none" }
    }))
).pipe(Layer.provideMerge(EmulatorLive))

/** How many token requests have reached the emulator. */
const tokenRequests = Effect.gen(function*() {
  const emulator = yield* Emulator.Emulator
  const requests = yield* emulator.requests
  return requests.filter(({ kind }) => kind === "token").length
})

const showTokenRequests = Effect.flatMap(
  tokenRequests,
  (count) => show.row("token requests", `${count} in all, counted by the emulator`)
)

const withEmulator = Effect.gen(function*() {
  const emulator = yield* Emulator.Emulator
  const provider = yield* AccessTokenProvider.AccessTokenProvider
  const path = "/orders"

  yield* Console.log(
    `No STORE_API_* variable is set, so the demo uses the emulator at ${emulator.url}. ` +
      `Its tokens are valid for ${Duration.format(tokenLife)}.`
  )

  yield* show.title("A token")
  yield* obtain

  yield* show.title("A protected call")
  yield* call(path)
  yield* showTokenRequests

  yield* show.title("The same again, from the cache")
  yield* fromCache
  yield* call(path)
  yield* showTokenRequests

  yield* show.title("Expiry: no call until the token has expired")
  yield* waitUntilExpired
  yield* show.row(
    "cached token",
    yield* provider.current.pipe(
      Effect.as("is still valid"),
      Effect.catchTag(
        "TokenExpiredError",
        (error) => Effect.succeed(`is not used: ${error._tag}, ${error.reason}`)
      )
    )
  )
  yield* call(path)
  yield* showTokenRequests

  yield* Effect.sleep("700 millis")
  yield* show.title("Revocation: the server revokes the token")
  const before = (yield* emulator.requests).length
  const revoked = yield* emulator.revoke()
  yield* timeline.revoked
  yield* show.row("revoked", revoked === 1 ? "1 token" : `${revoked} tokens`)
  yield* call(path)
  const after = (yield* emulator.requests).slice(before)
  yield* show.row(
    "on the wire",
    after.map(({ kind, status }) => `${kind} ${Option.getOrElse(status, () => "…")}`).join(
      ", then "
    )
  )
  yield* showTokenRequests
  yield* Effect.sleep("500 millis")

  yield* timeline.draw({ to: yield* Clock.currentTimeMillis })
}).pipe(Effect.provide(Layer.merge(EmulatedAuthLive, timeline.layerJournal)))

const waitUntilExpired = Effect.gen(function*() {
  const provider = yield* AccessTokenProvider.AccessTokenProvider
  const { expiresAt } = yield* provider.status
  const now = yield* Clock.currentTimeMillis
  const wait = Option.match(expiresAt, {
    onNone: () => 0,
    onSome: (at) => Math.max(DateTime.toEpochMillis(at) - now, 0) + 100
  })
  yield* show.row("waiting", show.milliseconds(wait))
  yield* Effect.sleep(wait)
})

const withService = Effect.gen(function*() {
  yield* Console.log("The STORE_API_* variables are set, so the demo uses that service.")

  yield* show.title("A token")
  const token = yield* obtain

  const path = yield* Config.option(Config.nonEmptyString("STORE_API_DEMO_PATH"))
  yield* show.title("A protected call")
  if (Option.isSome(path)) {
    const status = yield* call(path.value)
    if (status >= 400) return yield* new DemoError({ message: refused(status) })
  } else {
    yield* show.row("skipped", "STORE_API_DEMO_PATH, a path below STORE_API_URL, is not set")
  }

  yield* show.title("The token again, from the cache")
  yield* fromCache

  yield* timeline.draw({ to: DateTime.toEpochMillis(token.expiresAt) })
}).pipe(
  Effect.provide(Layer.merge(NodeStoreAuth.layerConfig(), timeline.layerJournal)),
  // `checked` has reported missing variables before.
  Effect.catchTag("ConfigError", Effect.die),
  (story) => Effect.zipRight(checked, story)
)

const refused = (status: number) =>
  `The API responded with status ${status}: check STORE_API_DEMO_PATH and STORE_API_URL, ` +
  "and what the client is allowed to do."

/**
 * Runs the demo with the service if any `STORE_API_*` variable is set, else with the emulator. Returns the exit code.
 */
export const main = Effect.if(isConfigured, {
  onTrue: () => withService,
  onFalse: () => withEmulator
}).pipe(
  Effect.as(0),
  Effect.catchAll((error) => Effect.as(Console.error(sentence(error)), 1))
)
