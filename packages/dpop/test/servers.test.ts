/** Bound tokens over sockets, with an emulator that checks each proof, on each HTTP client. */
import { FetchHttpClient, HttpClient, HttpClientRequest } from "@effect/platform"
import { NodeHttpClient } from "@effect/platform-node"
import { assert, describe } from "@effect/vitest"
import { deepStrictEqual } from "@effect/vitest/utils"
import {
  AuthorizedHttpClient,
  ClientCredentials,
  StoreAuth,
  TokenStore
} from "@store-api/core"
import { Dpop } from "@store-api/dpop"
import { Emulator, Fault } from "@store-api/emulator"
import { NodeStoreAuth, PromiseStoreAuth } from "@store-api/platform-node"
import { freePort } from "@store-api/testing/loopback"
import { test } from "@store-api/testing/test"
import { Clock, Duration, Effect, Layer, Redacted, Stream } from "effect"
import { signedAssertion } from "./support/assertions.js"
import {
  apiBodies,
  apiResponses,
  assertionsOf,
  optionsFor,
  problemsOf,
  requestsTo,
  tokenCount
} from "./support/emulator.js"
import { clientWithKey, newKey } from "./support/keys.js"

const clients = [
  ["fetch", FetchHttpClient.layer],
  ["undici", NodeHttpClient.layerUndici],
  ["node:http", NodeHttpClient.layer]
] as const

/** Makes all nonces stale when the next request to the API arrives. */
const staleAtApi = Fault.forgetNonces({ on: "api" })

/** An emulator, a key, and a store whose requests are bound to it. */
const setUp = (
  layer: Layer.Layer<HttpClient.HttpClient>,
  emulatorOptions: Emulator.Options = { dpop: "no-nonce" }
) =>
  Effect.gen(function*() {
    const emulator = yield* Emulator.make(emulatorOptions)
    const dpop = yield* Dpop.make()
    const options = dpop.bind(optionsFor(emulator))
    const context = yield* Layer.build(layer)
    const store = yield* Effect.provide(StoreAuth.make(options), context)
    return { emulator, store, dpop }
  })

/** The statuses of this many concurrent calls. */
const callsOf = ({ client }: StoreAuth.StoreAuth, count: number) =>
  Effect.all(
    Effect.replicate(Effect.map(client.get("/orders"), ({ status }) => status), count),
    {
      concurrency: "unbounded"
    }
  )

const all = (status: number, count: number) => Array.from({ length: count }, () => status)

describe("a call with a bound token", () => {
  test.live.each(clients)(
    "succeeds over %s, although both servers want nonces",
    function*([, layer]) {
      const { emulator, store } = yield* setUp(layer, { dpop: "nonce" })
      deepStrictEqual(yield* callsOf(store, 20), all(200, 20))
      const tokenRequests = yield* requestsTo("token", emulator)
      deepStrictEqual([yield* tokenCount(emulator), tokenRequests.length], [1, 2])
      deepStrictEqual(yield* problemsOf(emulator), [])
    }
  )

  test.live.each(clients)(
    "succeeds over %s for each of 50 at once if a nonce is valid once",
    function*([, layer]) {
      const { emulator, store } = yield* setUp(layer, { dpop: "nonce-per-request" })
      deepStrictEqual(yield* callsOf(store, 50), all(200, 50))
      deepStrictEqual([yield* tokenCount(emulator), yield* problemsOf(emulator)], [1, []])
      assert.isAbove((yield* requestsTo("api", emulator)).length, 50, "control")
    }
  )

  test.live.each(clients)("succeeds over %s with a body and a query", function*([, layer]) {
    const { emulator, store } = yield* setUp(layer, { dpop: "nonce" })
    yield* emulator.fail(staleAtApi)
    const request = HttpClientRequest.bodyText(
      HttpClientRequest.post("/orders?page=2"),
      "a body"
    )
    assert.strictEqual((yield* store.client.execute(request)).status, 200)
    deepStrictEqual(yield* apiBodies(emulator), ["a body", "a body"])
    deepStrictEqual(yield* problemsOf(emulator), [])
  })

  /** An emulator whose API redirects `/moved` to `/orders`. */
  const redirecting = Effect.map(freePort, (port): Emulator.Options => {
    const headers = { location: `http://127.0.0.1:${port}/orders?from=moved` }
    return { dpop: "no-nonce", port, responses: [{ path: "/moved", status: 307, headers }] }
  })

  test.live.each(clients)(
    "has a proof for each hop of a redirect over %s",
    function*([, layer]) {
      const { emulator, store } = yield* setUp(layer, yield* redirecting)
      const response = yield* HttpClient.followRedirects(store.client, 2).get("/moved")
      assert.strictEqual(response.status, 200)
      deepStrictEqual(yield* apiResponses(emulator), [
        "307 GET /moved",
        "200 GET /orders?from=moved"
      ])
      deepStrictEqual(yield* problemsOf(emulator), [])
    }
  )

  test.live("has a proof for each hop of a redirect that transformClient follows", function*() {
    const emulator = yield* Emulator.make(yield* redirecting)
    const { bind } = yield* Dpop.make()
    const store = yield* StoreAuth.make(bind({
      ...optionsFor(emulator),
      transformClient: HttpClient.followRedirects(2)
    })).pipe(Effect.provide(NodeHttpClient.layer))
    assert.strictEqual((yield* store.client.get("/moved")).status, 200)
    deepStrictEqual(yield* problemsOf(emulator), [])
  })
})

describe("over three lifetimes of a token", () => {
  test.live("twenty callers get no error", function*() {
    const { emulator, store } = yield* setUp(NodeHttpClient.layerUndici, {
      tokenLife: "2 seconds",
      dpop: "nonce"
    })
    const calls = Effect.zipLeft(callsOf(store, 20), Effect.sleep("100 millis"))
    const [took, statuses] = yield* Effect.timed(Effect.all(Effect.replicate(calls, 60)))
    deepStrictEqual(new Set(statuses.flat()), new Set([200]))
    const issued = yield* tokenCount(emulator)
    assert.isAtLeast(issued, 3)
    // A token is renewed a second after it was acquired at the earliest. A busy machine takes longer.
    assert.isAtMost(issued, 2 + Duration.toSeconds(took))
    // On a busy machine, a token may expire while a request is on its way.
    const expired = "The access token expired"
    deepStrictEqual(
      (yield* problemsOf(emulator)).filter((problem) => problem !== expired),
      []
    )
  })
})

describe("a token that is revoked", () => {
  test.live.each(clients)(
    "is replaced once over %s, although all nonces are stale",
    function*([, layer]) {
      const { emulator, store } = yield* setUp(layer, { dpop: "nonce" })
      yield* callsOf(store, 1)
      yield* emulator.revoke()
      yield* emulator.fail([Fault.forgetNonces(), staleAtApi])
      deepStrictEqual(yield* callsOf(store, 20), all(200, 20))
      deepStrictEqual(
        new Set(yield* problemsOf(emulator)),
        new Set(["The access token was revoked"])
      )
      assert.strictEqual(yield* tokenCount(emulator), 2)
    }
  )
})

describe("a token that is stolen", () => {
  const stolen = Effect.gen(function*() {
    const { dpop, emulator, store } = yield* setUp(NodeHttpClient.layer)
    const token = Redacted.value((yield* store.provider.get).value)
    const statusOf = (key: Dpop.Dpop, authorization: string) =>
      Effect.gen(function*() {
        const { transformClient = (client: HttpClient.HttpClient) => client }: Bound = key
          .bind({})
        const client = transformClient(yield* HttpClient.HttpClient)
        const headers = { authorization }
        return (yield* client.get(`${emulator.url}/orders`, { headers })).status
      }).pipe(Effect.provide(NodeHttpClient.layer))
    assert.strictEqual(yield* statusOf(dpop, `DPoP ${token}`), 200, "control")
    return { dpop, statusOf, token }
  })

  test.live("a bound token is refused as a Bearer token", function*() {
    const { dpop, statusOf, token } = yield* stolen
    assert.strictEqual(yield* statusOf(dpop, `Bearer ${token}`), 401)
  })

  test.live("a bound token is refused with a proof of another key", function*() {
    const { statusOf, token } = yield* stolen
    assert.strictEqual(yield* statusOf(yield* Dpop.make(), `DPoP ${token}`), 401)
  })

  test.live("a token is refused that was not issued for the key", function*() {
    const { dpop, statusOf, token } = yield* stolen
    assert.strictEqual(yield* statusOf(dpop, `DPoP ${token}x`), 401)
  })
})

type Bound = Pick<StoreAuth.SourceOptions, "transformClient">

describe("a 401 because of the proof", () => {
  test.live.each(clients)(
    "a 401 because of the proof of a stream over %s costs no token",
    function*([, layer]) {
      const { emulator, store } = yield* setUp(layer, { dpop: "nonce" })
      yield* callsOf(store, 1)
      yield* emulator.fail(staleAtApi)
      const upload = Effect.suspend(() => {
        const body = Stream.make(new TextEncoder().encode("a body"))
        return store.client.execute(
          HttpClientRequest.bodyStream(HttpClientRequest.post("/orders"), body)
        )
      })
      assert.strictEqual((yield* upload).status, 401)
      assert.strictEqual((yield* upload).status, 200)
      deepStrictEqual([yield* tokenCount(emulator), yield* problemsOf(emulator)], [1, []])
    }
  )

  test.live("a 401 because of a wrong clock costs no token", function*() {
    const { emulator, store } = yield* setUp(NodeHttpClient.layer)
    yield* callsOf(store, 1)
    const statuses = yield* Effect.withClock(callsOf(store, 5), lateClock)
    deepStrictEqual([statuses, yield* tokenCount(emulator)], [all(401, 5), 1])
    deepStrictEqual(
      new Set(yield* problemsOf(emulator)),
      new Set([
        "iat is more than 25 s old or 15 s ahead by the emulator's clock."
      ])
    )
  })
})

test.live("a token request with a wrong clock fails with the advice to check it", function*() {
  const emulator = yield* Emulator.make({ dpop: "no-nonce" })
  const { bind } = yield* Dpop.make()
  const { provider } = yield* StoreAuth.make(bind(optionsFor(emulator))).pipe(
    Effect.provide(NodeHttpClient.layer),
    Effect.withClock(lateClock)
  )
  const error = yield* Effect.flip(provider.get)
  assert.strictEqual(error._tag, "TokenRefusedError")
  assert.include(
    error.message,
    "check the DPoP proof: its key, the clock, and whether the options are bound to a key."
  )
})

/** A minute behind. */
const lateClock = Object.assign(Clock.make(), {
  currentTimeMillis: Effect.sync(() => Date.now() - 60_000),
  unsafeCurrentTimeMillis: () => Date.now() - 60_000
})

describe("private_key_jwt with nonces at the token endpoint", () => {
  test.live("sends no assertion twice", function*() {
    const { client, privateKey } = clientWithKey()
    const emulator = yield* Emulator.make({
      dpop: "nonce-per-request",
      clientAuthentication: "private_key_jwt",
      clients: [client]
    })
    const { bind } = yield* Dpop.make()
    const store = yield* StoreAuth.make(bind({
      authUrl: emulator.url,
      apiUrl: emulator.url,
      credentials: ClientCredentials.withoutSecret(client.clientId),
      endpoint: { request: signedAssertion(privateKey, emulator.url) }
    })).pipe(Effect.provide(NodeHttpClient.layer))
    for (let round = 0; round < 3; round++) {
      yield* emulator.fail(Fault.forgetNonces())
      yield* store.provider.refresh
    }
    const assertions = yield* assertionsOf(emulator)
    deepStrictEqual([yield* tokenCount(emulator), assertions.length], [3, 6])
    assert.strictEqual(new Set(assertions).size, 6)
    deepStrictEqual(yield* problemsOf(emulator), [])
  })
})

describe("PromiseStoreAuth", () => {
  const promiseSetUp = Effect.gen(function*() {
    const emulator = yield* Emulator.make({ dpop: "nonce" })
    const { bind } = yield* Dpop.make({ privateKey: newKey() })
    const options = bind(optionsFor(emulator))
    const store = yield* Effect.acquireRelease(
      Effect.sync(() => PromiseStoreAuth.make(options)),
      (store) => Effect.promise(() => store.dispose())
    )
    yield* emulator.fail(staleAtApi)
    return { emulator, store }
  })

  test.live("the fetch of PromiseStoreAuth calls the API with a bound token", function*() {
    const { emulator, store } = yield* promiseSetUp
    const { status } = yield* Effect.promise(() => store.fetch("/orders?page=2"))
    deepStrictEqual([status, yield* problemsOf(emulator)], [200, []])
  })

  test.live("the fetch of PromiseStoreAuth repeats a request with its body for a nonce", function*() {
    const { emulator, store } = yield* promiseSetUp
    const init = { method: "POST", body: "a body" }
    const { status } = yield* Effect.promise(() => store.fetch("/orders", init))
    deepStrictEqual([status, yield* apiBodies(emulator)], [200, ["a body", "a body"]])
  })
})

describe("two processes over one store", () => {
  /** The number of tokens of two processes with these keys, one after the other. */
  const tokensOf = (keys: readonly [Dpop.Options, Dpop.Options]) =>
    Effect.gen(function*() {
      const emulator = yield* Emulator.make({ dpop: "no-nonce" })
      const stored = yield* Layer.build(TokenStore.layerMemory)
      for (const key of keys) {
        const { bind } = yield* Dpop.make(key)
        const layer = Layer.provide(
          NodeStoreAuth.layerShared(bind(optionsFor(emulator))),
          Layer.succeedContext(stored)
        )
        const { status } = yield* Effect.flatMap(
          AuthorizedHttpClient.AuthorizedHttpClient,
          (client) => client.get("/orders")
        ).pipe(Effect.provide(layer))
        assert.strictEqual(status, 200)
      }
      // Neither process was given the token of the other key, which the API would have refused.
      deepStrictEqual(yield* apiResponses(emulator), ["200 GET /orders", "200 GET /orders"])
      return yield* tokenCount(emulator)
    })

  test.live("share a token if they have the same key", function*() {
    const privateKey = newKey()
    assert.strictEqual(yield* tokensOf([{ privateKey }, { privateKey }]), 1)
  })

  test.live("have a token each if their keys differ", function*() {
    assert.strictEqual(
      yield* tokensOf([{ privateKey: newKey() }, { privateKey: newKey() }]),
      2
    )
  })

  test.live("have a token each if they have no key", function*() {
    assert.strictEqual(yield* tokensOf([{}, {}]), 2)
  })
})
