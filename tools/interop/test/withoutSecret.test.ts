/** Clients without a shared secret at oidc-provider: assertions, certificates and bound tokens, on each HTTP client. */
import { readFileSync, renameSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { FetchHttpClient, HttpClient } from "@effect/platform"
import { NodeHttpClient, Undici } from "@effect/platform-node"
import { assert, describe } from "@effect/vitest"
import {
  type AccessTokenError,
  AccessTokenProvider,
  ClientCredentials,
  StoreAuth,
  TokenRequest
} from "@store-api/core"
import { Dpop } from "@store-api/dpop"
import { NodeHttp, NodeStoreAuth, PromiseStoreAuth } from "@store-api/platform-node"
import { canMakeCertificates, selfSigned } from "@store-api/testing/certificates"
import { newFolder } from "@store-api/testing/loopback"
import { test } from "@store-api/testing/test"
import { Effect, Layer, Redacted } from "effect"
import {
  clientId,
  type Method,
  type Options,
  type Running,
  start
} from "../src/boundServer.js"

interface Way {
  readonly name: string
  readonly method: Method
  readonly isBound: boolean
}

const signed: Way = {
  name: "private_key_jwt",
  method: "private_key_jwt",
  isBound: false
}

const certificate: Way = {
  name: "tls_client_auth",
  method: "tls_client_auth",
  isBound: false
}

const signedAndBound: Way = {
  name: "private_key_jwt with DPoP",
  method: "private_key_jwt",
  isBound: true
}

const ways: ReadonlyArray<Way> = [
  { name: "DPoP", method: "client_secret_post", isBound: true },
  signed,
  certificate,
  signedAndBound
]

/** What a test does with a store. Statuses are those of the API. */
interface Caller {
  readonly call: Effect.Effect<number, unknown>
  readonly token: Effect.Effect<string, unknown>
}

/** The certificates of a connection. */
const tlsOf = ({ client, server }: Running) => ({
  ca: server.cert,
  cert: client.cert,
  key: client.key
})

const httpOf = (running: Running) => {
  const { ca, cert, key } = tlsOf(running)
  return { ca, cert, key: Redacted.make(key) }
}

const requestOf = (
  { method }: Way,
  { assertion }: Running
): TokenRequest.TokenRequest => {
  if (method === "tls_client_auth") return TokenRequest.clientId()
  if (method === "client_secret_post") return TokenRequest.clientSecretPost()
  return TokenRequest.clientAssertion(() => Effect.map(assertion(), Redacted.make))
}

const optionsOf = (way: Way, running: Running): StoreAuth.Options => ({
  authUrl: running.authUrl,
  apiUrl: running.apiUrl,
  credentials: way.method === "client_secret_post"
    ? ClientCredentials.make({ clientId, clientSecret: Redacted.make(running.secret) })
    : ClientCredentials.withoutSecret(clientId),
  endpoint: { path: "/token", request: requestOf(way, running) }
})

const bound = ({ isBound }: Way, options: StoreAuth.Options) =>
  isBound ? Effect.map(Dpop.make(), ({ bind }) => bind(options)) : Effect.succeed(options)

const over = (
  layerOf: (
    running: Running
  ) => Layer.Layer<HttpClient.HttpClient, AccessTokenError.ConfigurationError>
) =>
(way: Way, running: Running) =>
  Effect.gen(function*() {
    const context = yield* Layer.build(layerOf(running))
    const options = yield* bound(way, optionsOf(way, running))
    const { client, provider } = yield* Effect.provide(StoreAuth.make(options), context)
    const caller: Caller = {
      call: Effect.flatMap(
        client.get("/orders"),
        ({ status, text }) => Effect.as(text, status)
      ),
      token: Effect.map(provider.get, ({ value }) => Redacted.value(value))
    }
    return caller
  })

const byPromise = (way: Way, running: Running) =>
  Effect.gen(function*() {
    const options = yield* bound(way, optionsOf(way, running))
    const store = yield* Effect.acquireRelease(
      Effect.sync(() => PromiseStoreAuth.make({ ...options, http: httpOf(running) })),
      ({ dispose }) => Effect.promise(dispose)
    )
    const caller: Caller = {
      call: Effect.tryPromise({
        try: async () => {
          const response = await store.fetch("/orders")
          await response.text()
          return response.status
        },
        catch: (error) => error
      }),
      token: Effect.tryPromise({
        try: async () => Redacted.value((await store.getToken()).value),
        catch: (error) => error
      })
    }
    return caller
  })

const agentOf = (running: Running, options: Undici.Agent.Options = {}) =>
  Effect.acquireRelease(
    Effect.sync(() => new Undici.Agent({ ...options, connect: tlsOf(running) })),
    (agent) => Effect.promise(() => agent.close())
  )

/** The client reads the dispatcher of `fetch` when it sends a request. */
const fetchLayer = (running: Running) =>
  Layer.scoped(
    HttpClient.HttpClient,
    Effect.gen(function*() {
      const dispatcher = yield* agentOf(running)
      const client = yield* HttpClient.HttpClient
      // Node's `fetch` has this option, which the type of the standard lacks.
      const init = { dispatcher } as RequestInit
      return HttpClient.transform(
        client,
        Effect.provideService(FetchHttpClient.RequestInit, init)
      )
    })
  ).pipe(Layer.provide(FetchHttpClient.layer))

const clients = [
  { name: "fetch", open: over(fetchLayer) },
  { name: "undici", open: over((running) => NodeHttp.layer(httpOf(running))) },
  {
    name: "node:http",
    open: over((running) =>
      Layer.provide(
        NodeHttpClient.layerWithoutAgent,
        NodeHttpClient.makeAgentLayer(tlsOf(running))
      )
    )
  },
  { name: "PromiseStoreAuth", open: byPromise }
]

const each = ways.flatMap((way) =>
  clients.map(({ name, open }) => ({ way, name: `${way.name} over ${name}`, open }))
)

/** The statuses of this many concurrent calls. */
const callsOf = ({ call }: Caller, count: number) =>
  Effect.all(Effect.replicate(call, count), { concurrency: "unbounded" })

const granted = ({ tokenStatuses }: Running) =>
  tokenStatuses.filter((status) => status === 200).length

const all200 = (count: number) => Array.from({ length: count }, () => 200)

/** Runs it with all clients at the same time. Returns the results by the client's name. */
const withEach = <A, E, R>(run: (client: typeof clients[number]) => Effect.Effect<A, E, R>) =>
  Effect.forEach(
    clients,
    (client) => Effect.map(run(client), (result) => ({ name: client.name, result })),
    { concurrency: "unbounded" }
  )

const all200InEach = clients.map(({ name }) => ({ name, result: new Set([200]) }))

const startFor = ({ isBound, method }: Way, options: Partial<Options> = {}) =>
  start({ method, life: 600, wantsNonces: isBound, ...options })

describe.runIf(canMakeCertificates)("oidc-provider, without a shared secret", () => {
  test.live.each(each)(
    "$name: twenty callers get one token, and one more after it was revoked",
    function*({ open, way }) {
      const running = yield* startFor(way)
      const caller = yield* open(way, running)
      assert.deepStrictEqual(yield* callsOf(caller, 20), all200(20))
      assert.strictEqual(granted(running), 1)
      yield* running.revoke(yield* caller.token)
      running.rotateNonces()
      assert.deepStrictEqual(yield* callsOf(caller, 20), all200(20))
      assert.strictEqual(granted(running), 2)
      assert.include(running.apiStatuses, 401, "control")
    }
  )

  test.live.each(ways)(
    "$name: ten callers of each client get no error over three lifetimes of a token",
    function*(way) {
      // Long enough for a busy machine: a token is replaced when a twentieth of it is left, if not before.
      const life = 8
      const outcomes = yield* withEach(({ open }) =>
        Effect.gen(function*() {
          const running = yield* startFor(way, { life })
          const caller = yield* open(way, running)
          const began = performance.now()
          const statuses: Array<number> = []
          while (granted(running) < 4) {
            statuses.push(...yield* callsOf(caller, 10))
            yield* Effect.sleep("100 millis")
          }
          // A token is renewed a second after it was acquired at the earliest.
          assert.isAtMost(granted(running), 2 + (performance.now() - began) / 1000)
          return new Set(statuses)
        })
      )
      assert.deepStrictEqual(outcomes, all200InEach)
    }
  )

  test.live.each(each.filter(({ way }) => way.isBound))(
    "$name: each of twenty callers succeeds if the API accepts a nonce once",
    function*({ open, way }) {
      const running = yield* startFor(way, { isNonceSingle: true })
      const caller = yield* open(way, running)
      assert.deepStrictEqual(yield* callsOf(caller, 20), all200(20))
      assert.strictEqual(granted(running), 1)
      assert.include(running.apiStatuses, 401, "control")
    }
  )

  test.live.each(clients)(
    "private_key_jwt with DPoP over $name: a challenge for a nonce gets a new assertion",
    function*({ open }) {
      const running = yield* startFor(signedAndBound)
      const caller = yield* open(signedAndBound, running)
      for (let round = 1; round <= 3; round++) {
        running.rotateNonces()
        yield* running.revoke(yield* caller.token)
        yield* caller.call
      }
      assert.include(running.tokenStatuses, 400, "control")
      const assertions = running.bodies.map((body) => body.get("client_assertion"))
      assert.isAtLeast(assertions.length, 6)
      assert.strictEqual(new Set(assertions).size, assertions.length)
    }
  )

  test.live.each(clients)(
    "private_key_jwt over $name: an assertion that another key signed is refused",
    function*({ open }) {
      const running = yield* startFor(signed)
      const caller = yield* open(signed, {
        ...running,
        assertion: () => running.assertion("other")
      })
      assert.include(String(yield* Effect.flip(caller.token)), "status 401")
      assert.deepStrictEqual(running.tokenStatuses, [401])
    }
  )

  test.live("tls_client_auth: a client that sends no certificate is refused, or one that the server does not know", function*() {
    const running = yield* startFor(certificate)
    const { ca } = httpOf(running)
    const { cert, key } = yield* selfSigned("client.example", 2)
    const tokenOver = (http: NodeHttp.Options) =>
      Effect.flatMap(AccessTokenProvider.AccessTokenProvider, ({ get }) => get).pipe(
        Effect.provide(NodeStoreAuth.layer({ ...optionsOf(certificate, running), http })),
        Effect.flip
      )
    const refused = { _tag: "TokenRefusedError", reason: "InvalidClient" } as const
    assert.include(yield* tokenOver({ ca }), refused)
    assert.include(yield* tokenOver({ ca, cert, key: Redacted.make(key) }), refused)
    assert.deepStrictEqual(running.tokenStatuses, [401, 401])
  })

  test.live.each(clients)(
    "tls_client_auth over $name: a token is useless without the certificate",
    function*({ open }) {
      const running = yield* startFor(certificate)
      const caller = yield* open(certificate, running)
      const token = yield* caller.token
      const headers = { authorization: `Bearer ${token}` }
      const statusOver = (http: NodeHttp.Options) =>
        Effect.flatMap(
          HttpClient.get(`${running.apiUrl}/orders`, { headers }),
          ({ status, text }) => Effect.as(text, status)
        ).pipe(Effect.provide(NodeHttp.layer(http)))
      assert.strictEqual(yield* statusOver(httpOf(running)), 200, "control")
      assert.strictEqual(yield* statusOver({ ca: running.server.cert }), 401)
    }
  )

  test.live.each(ways)("$name over HTTP/2: twenty callers get one token", function*(way) {
    const running = yield* startFor(way)
    const agent = yield* agentOf(running, { allowH2: true })
    const layer = NodeHttp.layer({ dispatcher: agent })
    const caller = yield* over(() => layer)(way, running)
    assert.deepStrictEqual(yield* callsOf(caller, 20), all200(20))
    assert.deepStrictEqual(new Set(running.versions), new Set(["2.0"]))
    assert.strictEqual(granted(running), 1)
  })
})

/** Replaces the file with a new assertion, as a platform does: no reader sees half of one. */
const rotate = (file: string, { assertion }: Running) =>
  Effect.map(assertion(), (text) => {
    writeFileSync(`${file}.new`, `${text}\n`)
    renameSync(`${file}.new`, file)
  })

describe.runIf(canMakeCertificates)("an assertion in a file", () => {
  test.live("is read at each attempt, so no call fails if the file is replaced every two seconds", function*() {
    const outcomes = yield* withEach(({ open }) =>
      Effect.gen(function*() {
        const running = yield* startFor(signed, { life: 3, acceptsReplay: true })
        const file = join(yield* newFolder("assertion"), "token")
        yield* rotate(file, running)
        yield* Effect.forkScoped(
          Effect.forever(Effect.zipRight(Effect.sleep("2 seconds"), rotate(file, running)))
        )
        const assertion = () => Effect.sync(() => readFileSync(file, "utf8").trim())
        const caller = yield* open(signed, { ...running, assertion })
        const statuses: Array<number> = []
        const began = performance.now()
        while (performance.now() - began < 12_000) {
          statuses.push(yield* caller.call)
          yield* Effect.sleep("100 millis")
        }
        const assertions = running.bodies.map((body) => body.get("client_assertion"))
        assert.isAtLeast(new Set(assertions).size, 3)
        assert.deepStrictEqual(new Set(running.tokenStatuses), new Set([200]))
        return new Set(statuses)
      })
    )
    assert.deepStrictEqual(outcomes, all200InEach)
  })
})
