import * as Net from "node:net"
import { assert, describe } from "@effect/vitest"
import { AccessToken, AccessTokenError, TokenStore } from "@store-api/core"
import { Emulator } from "@store-api/emulator"
import { type NodeStoreAuth, PromiseStoreAuth } from "@store-api/platform-node"
import { Effect, Fiber, Layer, Option, Redacted } from "effect"
import { test } from "../../core/test/support/test.js"
import { listen, onThisMachine, withVariables } from "./utils.js"

onThisMachine()

/** The functions with an emulator, disposed after the test. */
const setup = (
  options: Partial<NodeStoreAuth.SecretOptions> = {},
  sharing: Partial<PromiseStoreAuth.SharedOptions> = {}
) =>
  Effect.gen(function*() {
    const emulator = yield* Emulator.make()
    const store = yield* Effect.acquireRelease(
      Effect.sync(() =>
        PromiseStoreAuth.make({
          authUrl: emulator.url,
          apiUrl: emulator.url,
          clientId: Emulator.demoClient.clientId,
          clientSecret: Emulator.demoClient.clientSecret,
          http: { proxy: "none" },
          ...options,
          ...sharing
        })
      ),
      (store) => Effect.promise(() => store.dispose())
    )
    const tokenRequests = Effect.map(
      emulator.requests,
      (requests) => requests.filter(({ kind }) => kind === "token").length
    )
    return { emulator, store, tokenRequests }
  })

/** Returns the error of a promise that rejects. */
const rejection = (promise: () => Promise<unknown>) =>
  Effect.map(
    Effect.flip(Effect.tryPromise({ try: promise, catch: (error) => error })),
    (error) => error as AccessTokenError.AccessTokenError | AccessTokenError.UntrustedOriginError
  )

describe("PromiseStoreAuth", () => {
  test.live("getToken returns one token until it is rejected, and an API accepts its header", function*() {
    const { emulator, store, tokenRequests } = yield* setup()
    const tokens = yield* Effect.promise(() => Promise.all([store.getToken(), store.getToken()]))
    assert.strictEqual(tokens[0], tokens[1])
    assert.strictEqual(yield* tokenRequests, 1)
    const authorization = Redacted.value(AccessToken.authorization(tokens[0]))
    const { status } = yield* Effect.promise(() => fetch(`${emulator.url}/orders`, { headers: { authorization } }))
    assert.strictEqual(status, 200)
    yield* Effect.promise(() => store.reject(tokens[0]))
    assert.notStrictEqual(yield* Effect.promise(() => store.getToken()), tokens[0])
    assert.strictEqual(yield* tokenRequests, 2)
  })

  test.live("promises reject with typed errors", function*() {
    const { store } = yield* setup({ clientSecret: Redacted.make("another secret") })
    const refused = yield* rejection(() => store.getToken())
    assert(refused._tag === "TokenRefusedError")
    assert.strictEqual(refused.reason, "InvalidClient")
    assert.isTrue(Option.isNone(refused.retryAt))
    const untrusted = yield* rejection(() => store.fetch("http://127.0.0.1:2/orders"))
    assert.strictEqual(untrusted._tag, "UntrustedOriginError")
  })

  test.live("a signal ends a fetch whose body does not end, and so does dispose", function*() {
    const { store } = yield* setup()
    const aborting = new AbortController()
    const send = (signal?: AbortSignal) =>
      Effect.fork(
        rejection(() =>
          // The DOM types lack `duplex`.
          store.fetch("/orders", {
            ...{ method: "POST", body: new ReadableStream(), duplex: "half" },
            ...signal && { signal }
          })
        )
      )
    const [aborted, disposed] = [yield* send(aborting.signal), yield* send()]
    yield* Effect.sleep("20 millis")
    aborting.abort(new Error("no longer needed"))
    assert.include(String(yield* Fiber.join(aborted)), "no longer needed")
    yield* Effect.promise(() => store.dispose())
    assert.strictEqual((yield* Fiber.join(disposed))._tag, "TokenRequestError")
  })

  test.live("a signal ends a fetch with its reason, and dispose ends in-flight requests", function*() {
    const silent = yield* listen(Net.createServer())
    const { store } = yield* setup({ authUrl: silent.url })
    const aborting = new AbortController()
    const aborted = yield* Effect.fork(rejection(() => store.fetch("/orders", { signal: aborting.signal })))
    const waiting = yield* Effect.fork(rejection(() => store.getToken()))
    yield* Effect.repeat(Effect.sleep("5 millis"), { until: () => silent.opened() > 0 })
    aborting.abort(new Error("no longer needed"))
    assert.include(String(yield* Fiber.join(aborted)), "no longer needed")
    yield* Effect.promise(() => store.dispose())
    for (const closed of [yield* Fiber.join(waiting), yield* rejection(() => store.getToken())]) {
      assert(closed._tag === "TokenRequestError")
      assert.strictEqual(closed.reason, "Closed")
    }
  })

  test.live("status reports the token without a request, and the cooldown after a failure", function*() {
    const { emulator, store, tokenRequests } = yield* setup()
    const status = Effect.promise(() => store.status())
    assert.strictEqual((yield* status).state, "Empty")
    assert.strictEqual(yield* tokenRequests, 0)
    yield* Effect.promise(() => store.getToken())
    const { expiresAt, state } = yield* status
    assert.strictEqual(state, "Fresh")
    assert.isTrue(Option.isSome(expiresAt))
    const refused = yield* setup({ authUrl: emulator.url, clientSecret: Redacted.make("another secret") })
    yield* rejection(() => refused.store.getToken())
    const { cooldown } = yield* Effect.promise(() => refused.store.status())
    assert.strictEqual(Option.getOrThrow(cooldown).error, "TokenRefusedError")
  })

  test.live("with a store, two of them share a token, also with options from the configuration", function*() {
    const { emulator, tokenRequests } = yield* setup()
    const shared = Layer.succeed(TokenStore.TokenStore, yield* TokenStore.makeMemory)
    const { clientId, clientSecret } = Emulator.demoClient
    const first = yield* setup({ authUrl: emulator.url }, { store: shared, shared: { lease: "5 seconds" } })
    const second = yield* Effect.acquireRelease(
      Effect.sync(() => PromiseStoreAuth.make({ store: shared, http: { proxy: "none" } })),
      (store) => Effect.promise(() => store.dispose())
    )
    const variables = {
      ...{ STORE_API_AUTH_URL: emulator.url, STORE_API_URL: emulator.url },
      ...{ STORE_API_CLIENT_ID: clientId, STORE_API_CLIENT_SECRET: Redacted.value(clientSecret) }
    }
    const tokens = [
      yield* Effect.promise(() => first.store.getToken()),
      yield* withVariables(variables)(Effect.promise(() => second.getToken()))
    ].map(({ value }) => Redacted.value(value))
    assert.strictEqual(tokens[0], tokens[1])
    assert.strictEqual(yield* tokenRequests, 1)
    const { status } = yield* Effect.promise(() => second.fetch("/orders"))
    assert.strictEqual(status, 200)
  })

  test.live("rejects with the error of a store that cannot be built", function*() {
    const unusable = new AccessTokenError.ConfigurationError({ option: "url", reason: "is not a URL" })
    const { store } = yield* setup({}, { store: Layer.effect(TokenStore.TokenStore, Effect.fail(unusable)) })
    for (const call of [store.getToken, () => store.fetch("/orders")]) {
      assert.strictEqual((yield* rejection(call))._tag, "ConfigurationError")
    }
  })
})
