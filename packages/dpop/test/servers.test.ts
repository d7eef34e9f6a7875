/** Bound tokens over sockets, with servers that check each proof, on each HTTP client. */
import { FetchHttpClient, HttpClient, HttpClientRequest } from "@effect/platform"
import { NodeHttpClient } from "@effect/platform-node"
import { assert, describe } from "@effect/vitest"
import { deepStrictEqual } from "@effect/vitest/utils"
import {
  AuthorizedHttpClient,
  ClientCredentials,
  StoreAuth,
  TokenRequest,
  TokenStore
} from "@store-api/core"
import { Dpop } from "@store-api/dpop"
import { NodeStoreAuth, PromiseStoreAuth } from "@store-api/platform-node"
import { secret } from "@store-api/testing/loopback"
import { test } from "@store-api/testing/test"
import { Clock, Duration, Effect, Layer, Redacted, Stream } from "effect"
import { importPKCS8, SignJWT } from "jose"
import { newKey, pemOf } from "./support/keys.js"
import {
  type NonceMode,
  optionsFor,
  start,
  type StrictServers
} from "./support/strictServers.js"

const clients = [
  ["fetch", FetchHttpClient.layer],
  ["undici", NodeHttpClient.layerUndici],
  ["node:http", NodeHttpClient.layer]
] as const

/** Both servers, a key, and a store whose requests are bound to it. */
const setUp = (
  layer: Layer.Layer<HttpClient.HttpClient>,
  { life = 3600, mode = "none" }: {
    readonly life?: number
    readonly mode?: NonceMode
  } = {}
) =>
  Effect.gen(function*() {
    const servers = yield* start
    servers.endpoint.life = life
    servers.endpoint.mode = mode
    servers.api.mode = mode
    const dpop = yield* Dpop.make()
    const options = dpop.bind({ ...optionsFor(servers), clientSecret: secret })
    const context = yield* Layer.build(layer)
    const store = yield* Effect.provide(StoreAuth.make(options), context)
    return { servers, store, dpop }
  })

/** The statuses of this many concurrent calls. */
const callsOf = ({ client }: StoreAuth.StoreAuth, count: number) =>
  Effect.all(
    Effect.replicate(Effect.map(client.get("/orders"), ({ status }) => status), count),
    {
      concurrency: "unbounded"
    }
  )

/** Refused proofs of both servers. */
const problemsOf = (
  { api, endpoint }: StrictServers
) => [...endpoint.problems, ...api.problems]

const all = (status: number, count: number) => Array.from({ length: count }, () => status)

describe("a call with a bound token", () => {
  test.live.each(clients)(
    "succeeds over %s, although both servers want nonces",
    function*([, layer]) {
      const { servers, store } = yield* setUp(layer, { mode: "stable" })
      deepStrictEqual(yield* callsOf(store, 20), all(200, 20))
      deepStrictEqual([servers.endpoint.issued.size, servers.endpoint.challenges], [1, 1])
      deepStrictEqual(problemsOf(servers), [])
    }
  )

  test.live.each(clients)(
    "succeeds over %s for each of 50 at once if a nonce is valid once",
    function*([, layer]) {
      const { servers, store } = yield* setUp(layer, { mode: "single" })
      deepStrictEqual(yield* callsOf(store, 50), all(200, 50))
      deepStrictEqual([servers.endpoint.issued.size, problemsOf(servers)], [1, []])
      assert.isAbove(servers.api.challenges, 0, "control")
    }
  )

  test.live.each(clients)("succeeds over %s with a body and a query", function*([, layer]) {
    const { servers, store } = yield* setUp(layer, { mode: "stable" })
    const request = HttpClientRequest.bodyText(
      HttpClientRequest.post("/orders?page=2"),
      "a body"
    )
    assert.strictEqual((yield* store.client.execute(request)).status, 200)
    deepStrictEqual(servers.api.bodies, ["a body", "a body"])
    deepStrictEqual(problemsOf(servers), [])
  })

  test.live.each(clients)(
    "has a proof for each hop of a redirect over %s",
    function*([, layer]) {
      const { servers, store } = yield* setUp(layer)
      const response = yield* HttpClient.followRedirects(store.client, 2).get("/moved")
      assert.strictEqual(response.status, 200)
      deepStrictEqual(servers.api.responses, ["307 GET /moved", "200 GET /orders"])
      deepStrictEqual(problemsOf(servers), [])
    }
  )

  test.live("has a proof for each hop of a redirect that transformClient follows", function*() {
    const servers = yield* start
    const { bind } = yield* Dpop.make()
    const store = yield* StoreAuth.make(bind({
      ...optionsFor(servers),
      clientSecret: secret,
      transformClient: HttpClient.followRedirects(2)
    })).pipe(Effect.provide(NodeHttpClient.layer))
    assert.strictEqual((yield* store.client.get("/moved")).status, 200)
    deepStrictEqual(problemsOf(servers), [])
  })
})

describe("over three lifetimes of a token", () => {
  test.live("twenty callers get no error", function*() {
    const { servers, store } = yield* setUp(NodeHttpClient.layerUndici, {
      life: 2,
      mode: "stable"
    })
    const calls = Effect.zipLeft(callsOf(store, 20), Effect.sleep("100 millis"))
    const [took, statuses] = yield* Effect.timed(Effect.all(Effect.replicate(calls, 60)))
    deepStrictEqual(new Set(statuses.flat()), new Set([200]))
    assert.isAtLeast(servers.endpoint.issued.size, 3)
    // A token is renewed a second after it was acquired at the earliest. A busy machine takes longer.
    assert.isAtMost(servers.endpoint.issued.size, 2 + Duration.toSeconds(took))
    deepStrictEqual(problemsOf(servers), [])
  })
})

describe("a token that is revoked", () => {
  test.live.each(clients)(
    "is replaced once over %s, although all nonces are stale",
    function*([, layer]) {
      const { servers, store } = yield* setUp(layer, { mode: "stable" })
      yield* callsOf(store, 1)
      servers.revokeAll()
      servers.endpoint.rotate()
      servers.api.rotate()
      deepStrictEqual(yield* callsOf(store, 20), all(200, 20))
      deepStrictEqual([servers.endpoint.issued.size, problemsOf(servers)], [2, []])
    }
  )
})

describe("a token that is stolen", () => {
  const stolen = Effect.gen(function*() {
    const { servers, store, dpop } = yield* setUp(NodeHttpClient.layer)
    const token = Redacted.value((yield* store.provider.get).value)
    const statusOf = (key: Dpop.Dpop, authorization: string) =>
      Effect.gen(function*() {
        const { transformClient = (client: HttpClient.HttpClient) => client }: Bound = key
          .bind({})
        const client = transformClient(yield* HttpClient.HttpClient)
        const headers = { authorization }
        return (yield* client.get(`${servers.api.url}/orders`, { headers })).status
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
      const { servers, store } = yield* setUp(layer, { mode: "stable" })
      yield* callsOf(store, 1)
      servers.api.rotate()
      const upload = Effect.suspend(() => {
        const body = Stream.make(new TextEncoder().encode("a body"))
        return store.client.execute(
          HttpClientRequest.bodyStream(HttpClientRequest.post("/orders"), body)
        )
      })
      assert.strictEqual((yield* upload).status, 401)
      assert.strictEqual((yield* upload).status, 200)
      deepStrictEqual([servers.endpoint.issued.size, problemsOf(servers)], [1, []])
    }
  )

  test.live("a 401 because of a wrong clock costs no token", function*() {
    const { servers, store } = yield* setUp(NodeHttpClient.layer)
    yield* callsOf(store, 1)
    const statuses = yield* Effect.withClock(callsOf(store, 5), lateClock)
    deepStrictEqual([statuses, servers.endpoint.issued.size], [all(401, 5), 1])
    deepStrictEqual(
      new Set(servers.api.problems),
      new Set(["Error: iat is outside the window"])
    )
  })
})

/** A minute behind. */
const lateClock = Object.assign(Clock.make(), {
  currentTimeMillis: Effect.sync(() => Date.now() - 60_000),
  unsafeCurrentTimeMillis: () => Date.now() - 60_000
})

describe("private_key_jwt with nonces at the token endpoint", () => {
  test.live("sends no assertion twice", function*() {
    const servers = yield* start
    servers.endpoint.mode = "single"
    const pem = pemOf()
    const assertion = Effect.promise(async () => {
      const key = await importPKCS8(pem, "ES256")
      const token = new SignJWT({}).setProtectedHeader({ alg: "ES256" })
        .setIssuer("demo-client").setSubject("demo-client").setAudience(servers.endpoint.url)
        .setIssuedAt().setExpirationTime("1m").setJti(crypto.randomUUID())
      return Redacted.make(await token.sign(key))
    })
    const { bind } = yield* Dpop.make()
    const { api, endpoint } = servers
    const store = yield* StoreAuth.make(bind({
      authUrl: endpoint.url,
      apiUrl: api.url,
      credentials: ClientCredentials.withoutSecret("demo-client"),
      endpoint: { request: TokenRequest.clientAssertion(() => assertion) }
    })).pipe(Effect.provide(NodeHttpClient.layer))
    for (let round = 0; round < 3; round++) {
      endpoint.rotate()
      yield* store.provider.refresh
    }
    const assertions = endpoint.bodies.map((body) => body.get("client_assertion"))
    deepStrictEqual([endpoint.issued.size, endpoint.challenges], [3, 3])
    assert.strictEqual(new Set(assertions).size, 6)
    deepStrictEqual(endpoint.problems, [])
  })
})

describe("PromiseStoreAuth", () => {
  const promiseSetUp = Effect.gen(function*() {
    const servers = yield* start
    servers.endpoint.mode = "stable"
    servers.api.mode = "stable"
    const { bind } = yield* Dpop.make({ privateKey: newKey() })
    const options = bind({ ...optionsFor(servers), clientSecret: secret })
    const store = yield* Effect.acquireRelease(
      Effect.sync(() => PromiseStoreAuth.make(options)),
      (store) => Effect.promise(() => store.dispose())
    )
    return { servers, store }
  })

  test.live("the fetch of PromiseStoreAuth calls the API with a bound token", function*() {
    const { servers, store } = yield* promiseSetUp
    const { status } = yield* Effect.promise(() => store.fetch("/orders?page=2"))
    deepStrictEqual([status, problemsOf(servers)], [200, []])
  })

  test.live("the fetch of PromiseStoreAuth repeats a request with its body for a nonce", function*() {
    const { servers, store } = yield* promiseSetUp
    const init = { method: "POST", body: "a body" }
    const { status } = yield* Effect.promise(() => store.fetch("/orders", init))
    deepStrictEqual([status, servers.api.bodies], [200, ["a body", "a body"]])
  })
})

describe("two processes over one store", () => {
  /** The tokens of two processes with these keys, one after the other. */
  const tokensOf = (keys: readonly [Dpop.Options, Dpop.Options]) =>
    Effect.gen(function*() {
      const servers = yield* start
      const stored = yield* Layer.build(TokenStore.layerMemory)
      for (const key of keys) {
        const { bind } = yield* Dpop.make(key)
        const options = bind({ ...optionsFor(servers), clientSecret: secret })
        const layer = Layer.provide(
          NodeStoreAuth.layerShared(options),
          Layer.succeedContext(stored)
        )
        const { status } = yield* Effect.flatMap(
          AuthorizedHttpClient.AuthorizedHttpClient,
          (client) => client.get("/orders")
        ).pipe(Effect.provide(layer))
        assert.strictEqual(status, 200)
      }
      // Neither process was given the token of the other key, which the API would have refused.
      deepStrictEqual(servers.api.responses, ["200 GET /orders", "200 GET /orders"])
      return servers.endpoint.issued.size
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
