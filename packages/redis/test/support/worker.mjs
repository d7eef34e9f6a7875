/**
 * A process of a fleet: the product as a user puts it together, steered by messages. Imports what is built. `open` tells it
 * where its endpoint and its Redis are, so that what is measured is no start of a process.
 */
import { createHash } from "node:crypto"
import {
  AccessTokenProvider,
  AuthorizedHttpClient,
  ClientCredentials,
  SharedTokenSource,
  TokenEndpoint,
  TokenSource,
  TokenStore
} from "@store-api/core"
import { NodeHttp, NodeStoreAuth } from "@store-api/platform-node"
import { RedisTokenStore } from "@store-api/redis"
import { DateTime, Effect, Fiber, HashMap, Layer, Logger, ManagedRuntime, Redacted } from "effect"

let warnings = []

/** When each token was acquired that this process bought itself. */
let bought = []

const logger = Logger.make(({ annotations, logLevel, message }) => {
  if (logLevel.label === "WARN") {
    warnings.push({ message: String(message), annotations: Object.fromEntries(HashMap.toEntries(annotations)) })
  }
})

const layerOf = (
  { apiUrl, attemptTimeout, authUrl, clientId, clientSecret, deadline, lease, patience, redisUrl, storeTimeout }
) => {
  const credentials = Effect.runSync(ClientCredentials.make({ clientId, clientSecret: Redacted.make(clientSecret) }))
  const endpoint = Layer.effect(
    TokenSource.TokenSource,
    Effect.map(
      TokenEndpoint.make({ authUrl, credentials, attemptTimeout, deadline }),
      ({ acquire }) =>
        TokenSource.make((replacing) =>
          Effect.tap(acquire(replacing), (token) => Effect.sync(() => bought.push(shown(token).acquiredAt)))
        )
    )
  )
  // Without one, that of the process itself serves only what asks for it.
  const store = redisUrl === undefined
    ? TokenStore.layerMemory
    : RedisTokenStore.layer({ url: Redacted.make(redisUrl) })
  const source = redisUrl === undefined ? endpoint : SharedTokenSource.layer({
    authUrl,
    credentials,
    lease,
    patience,
    storeTimeout
  }).pipe(Layer.provide([endpoint, store]))
  return NodeStoreAuth.layerFromSource({ apiUrl }).pipe(
    Layer.provide(source),
    Layer.provide(NodeHttp.layer()),
    Layer.merge(store),
    Layer.provide(Logger.replace(Logger.defaultLogger, logger))
  )
}

/** Not the token itself: what tells one from another, and when it was bought. */
const shown = ({ acquiredAt, value }) => ({
  token: createHash("sha256").update(Redacted.value(value)).digest("hex").slice(0, 12),
  acquiredAt: DateTime.toEpochMillis(acquiredAt)
})

const get = Effect.map(Effect.flatMap(AccessTokenProvider.AccessTokenProvider, ({ get }) => get), shown)

/**
 * A call is repeated when its connection broke: where the machine is so busy that a process is idle for seconds, the server
 * closes what is kept alive. Whatever has to do with tokens is no `RequestError` and is not repeated.
 */
const call = Effect.flatMap(AuthorizedHttpClient.AuthorizedHttpClient, (client) => client.get("/v1/orders")).pipe(
  Effect.flatMap((response) => Effect.as(response.text, response.status)),
  Effect.retry({ while: ({ _tag }) => _tag === "RequestError", times: 3 })
)

/** Calls, one after the other, until told to end; what came of them. */
const calling = (every) => {
  const outcome = { calls: 0, others: [] }
  const state = { goesOn: true }
  const round = Effect.gen(function*() {
    const status = yield* call
    outcome.calls++
    if (status !== 200) outcome.others.push(String(status))
  }).pipe(
    Effect.catchAll((error) => Effect.sync(() => outcome.others.push(error._tag))),
    Effect.zipRight(Effect.sleep(every)),
    Effect.repeat({ while: () => state.goesOn })
  )
  return { state, outcome, round }
}

/** What was opened last. */
let runtime

let going

const close = Effect.promise(async () => {
  await runtime?.dispose()
  runtime = undefined
})

const actions = {
  open: (settings) =>
    Effect.zipRight(
      close,
      Effect.suspend(() => {
        warnings = []
        bought = []
        runtime = ManagedRuntime.make(layerOf(settings))
        return Effect.asVoid(runtime.runtimeEffect)
      })
    ),
  close: () => close,
  get: () => Effect.provide(get, runtime),
  refresh: () =>
    Effect.flatMap(AccessTokenProvider.AccessTokenProvider, ({ refresh }) => refresh).pipe(
      Effect.map(shown),
      Effect.provide(runtime)
    ),
  call: () => Effect.provide(call, runtime),
  reaches: () =>
    Effect.flatMap(TokenStore.TokenStore, (store) => Effect.isSuccess(store.get("any key"))).pipe(
      Effect.provide(runtime)
    ),
  begin: ({ every }) =>
    Effect.sync(() => {
      const { outcome, round, state } = calling(every)
      going = { state, outcome, fiber: runtime.runFork(round) }
    }),
  end: () =>
    Effect.suspend(() => {
      going.state.goesOn = false
      return Effect.as(Fiber.join(going.fiber), going.outcome)
    }),
  bought: () => Effect.sync(() => bought),
  warnings: () => Effect.sync(() => warnings)
}

process.on("message", ({ action, id, parameters }) => {
  const began = performance.now()
  const answer = (result) => process.send({ id, took: performance.now() - began, ...result })
  void Effect.runPromise(Effect.either(Effect.suspend(() => actions[action](parameters)))).then(
    (result) => answer(result._tag === "Right" ? { value: result.right } : { error: result.left._tag }),
    (defect) => answer({ error: String(defect) })
  )
})

// Whoever started it has ended: so does it, whatever it was doing.
process.once("disconnect", () => process.exit())

process.send({ id: 0, took: 0 })
