import { subscribe, unsubscribe } from "node:diagnostics_channel"
import { readFileSync, writeFileSync } from "node:fs"
import * as Http from "node:http"
import { createSecureServer } from "node:http2"
import Tls, { TLSSocket } from "node:tls"
import { inspect } from "node:util"
import { HttpClient } from "@effect/platform"
import { NodeHttpClient } from "@effect/platform-node"
import { assert, describe } from "@effect/vitest"
import { deepStrictEqual } from "@effect/vitest/utils"
import { AccessTokenProvider, StoreAuth } from "@store-api/core"
import { NodeHttp, NodeStoreAuth } from "@store-api/platform-node"
import { canMakeCertificates, filesOf, selfSigned } from "@store-api/testing/certificates"
import {
  at,
  byName,
  call,
  collectGarbage,
  get,
  hanging,
  listen,
  onThisMachine,
  silent,
  startProxy,
  startStore,
  startTlsStore,
  until,
  withVariables
} from "@store-api/testing/loopback"
import { test } from "@store-api/testing/test"
import {
  Config,
  ConfigProvider,
  Duration,
  Effect,
  Either,
  Exit,
  Fiber,
  Layer,
  Redacted,
  Scope
} from "effect"

onThisMachine()

const password = "a-password-to-keep"
const key = "-----BEGIN PRIVATE KEY-----\na-key-to-keep\n-----END PRIVATE KEY-----"
const broken = "-----BEGIN CERTIFICATE-----\nbm90IG9uZQ==\n-----END CERTIFICATE-----"

const wholeNumber = "must be a whole number from 1"
const proxyReason =
  "must be an http:// or https:// URL, a user name and password in it percent-encoded"
const caReason = "must contain certificates in PEM"
const proxies = [
  `ftp://user:${password}`,
  `socks5://user:${password}`,
  `ws://user:${password}`
]
  .concat(`http://user:${password}%zz`).map((start) => `${start}@proxy.example`)
const bytes = new TextEncoder().encode("to-keep")

type Row = readonly [
  option: string,
  reason: string,
  unusable: ReadonlyArray<NodeHttp.Options>
]
const rows: ReadonlyArray<Row> = [
  [
    "http.connections",
    wholeNumber,
    [0, -1, NaN, Infinity, 1.5].map((connections) => ({ connections }))
  ],
  ["http.proxy", proxyReason, proxies.map((url) => ({ proxy: new URL(url) }))],
  [
    "http.ca",
    caReason,
    ["", "a-text-to-keep", broken, key, bytes, [broken]].map((ca) => ({ ca }))
  ]
]

const areNamed = (rows: ReadonlyArray<Row>) =>
  Effect.gen(function*() {
    for (const [option, reason, unusable] of rows) {
      for (const options of unusable) {
        const error = yield* Effect.flip(Layer.launch(NodeHttp.layer(options)))
        deepStrictEqual([error._tag, error.option, error.reason], [
          "ConfigurationError",
          option,
          reason
        ])
        for (
          const text of [
            error.message,
            inspect(error, { depth: Infinity }),
            JSON.stringify(error)
          ]
        ) {
          assert.notInclude(text, password)
          assert.notInclude(text, "to-keep")
        }
      }
    }
  })

test.live("an option that cannot be used is named without its value", function*() {
  yield* areNamed(rows)
})

test.live.runIf(canMakeCertificates)(
  "a certificate or key that cannot be used is named also if another one can",
  function*() {
    const [{ cert, key: own }, other] = [
      yield* selfSigned(),
      yield* selfSigned("localhost", 2)
    ]
    const redacted = Redacted.make(own)
    yield* areNamed([
      ["http.ca", caReason, [{ ca: cert + broken }, { ca: [cert, broken] }]],
      ["http.key", "is missing, cert needs it", [{ cert }]],
      ["http.cert", "is missing, key needs it", [{ key: redacted }]],
      ["http.cert", "must be a certificate in PEM", [{ cert: broken, key: redacted }, {
        cert: "",
        key: redacted
      }]],
      [
        "http.key",
        "must be a private key in PEM, without a passphrase",
        [key, ""].map((key) => ({ cert, key: Redacted.make(key) }))
      ],
      ["http.key", "is not the private key of cert", [{ cert: other.cert, key: redacted }]]
    ])
  }
)

/** Replaces `getCACertificates` of Node, which Node has since 22.15. */
const withCACertificates =
  (getCACertificates: ((type: string) => ReadonlyArray<string>) | undefined) =>
  <A, E, R>(effect: Effect.Effect<A, E, R>) =>
    Effect.acquireUseRelease(
      Effect.sync(() => {
        const own: unknown = Reflect.get(Tls, "getCACertificates")
        Reflect.set(Tls, "getCACertificates", getCACertificates)
        return own
      }),
      () => effect,
      (own) => Effect.sync(() => Reflect.set(Tls, "getCACertificates", own))
    )

describe.runIf(canMakeCertificates)("ca", () => {
  const untrusted = "DEPTH_ZERO_SELF_SIGNED_CERT"

  /** The response of a server with this identity, or the code of the error. */
  const outcome = (server: string, options?: NodeHttp.Options) =>
    get(server).pipe(
      Effect.provide(NodeHttp.layer(options)),
      Effect.catchTag("RequestError", ({ cause }) =>
        Effect.succeed(String((cause as { code: unknown }).code)))
    )
  const trusted = `{"authorization":"none"}`

  test.live("ca makes the client trust a self-signed server for its name", function*() {
    const [identity, other] = [yield* selfSigned(), yield* selfSigned("other.example")]
    const server = yield* startTlsStore(identity)
    const bytes = new TextEncoder().encode(identity.cert)
    for (
      const ca of [
        identity.cert,
        bytes,
        [other.cert, identity.cert],
        `a comment\n${other.cert}${identity.cert}`
      ]
    ) {
      assert.strictEqual(yield* outcome(server.url, { ca }), trusted)
    }
    const named = yield* startTlsStore(other)
    assert.strictEqual(
      yield* outcome(named.url, { ca: other.cert }),
      "ERR_TLS_CERT_ALTNAME_INVALID"
    )
  })

  test.live("the client uses HTTP/1.1, even if the server offers HTTP/2", function*() {
    const identity = yield* selfSigned()
    const versions: Array<string> = []
    const server = createSecureServer(
      { ...identity, allowHTTP1: true },
      (request, response) => {
        versions.push(request.httpVersion)
        response.end()
      }
    )
    const { url } = yield* listen(server, { host: "localhost", protocol: "https" })
    yield* Effect.provide(get(url), NodeHttp.layer({ ca: identity.cert }))
    deepStrictEqual(versions, ["1.1"])
  })

  test.live("ca adds to the certificates that Node trusts, including NODE_EXTRA_CA_CERTS", function*() {
    const [identity, other] = [yield* selfSigned(), yield* selfSigned("other.example")]
    const server = yield* startTlsStore(identity)
    const response = outcome(server.url, { ca: other.cert })
    const { cert } = yield* filesOf(identity)
    assert.strictEqual(yield* response.pipe(withCACertificates(undefined)), untrusted)
    const byNode = withCACertificates((type) => type === "default" ? [identity.cert] : [])
    assert.strictEqual(yield* response.pipe(byNode), trusted)
    const extra = withVariables({ NODE_EXTRA_CA_CERTS: cert })
    assert.strictEqual(yield* response.pipe(extra, withCACertificates(undefined)), trusted)
  })

  test.live("NODE_TLS_REJECT_UNAUTHORIZED=0 does not make the client trust a server", function*() {
    const server = yield* startTlsStore(yield* selfSigned())
    const both = Effect.all([
      outcome(server.url),
      Effect.provide(get(server.url), NodeHttpClient.layerUndici)
    ])
    // undici alone obeys the variable.
    deepStrictEqual(yield* both.pipe(withVariables({ NODE_TLS_REJECT_UNAUTHORIZED: "0" })), [
      untrusted,
      trusted
    ])
  })
})

describe.runIf(canMakeCertificates)("cert and key", () => {
  /** A server that requires one of these certificates over a new connection for each request, and returns its name. */
  const requiring = (ca: ReadonlyArray<string>) =>
    Effect.flatMap(
      selfSigned(),
      (identity) =>
        startTlsStore(identity, { requestCert: true, ca: [...ca] }, ({ socket }, response) => {
          response.setHeader("Connection", "close")
          response.end(
            socket instanceof TLSSocket ? socket.getPeerCertificate().subject.CN : ""
          )
        })
    )

  test.live("cert with key authenticates the client to a server that requires a certificate", function*() {
    const [{ cert: ca }, { cert, key }] = [
      yield* selfSigned(),
      yield* selfSigned("client.example")
    ]
    const { url } = yield* requiring([cert])
    const withKey = NodeHttp.layer({ ca, cert, key: Redacted.make(key) })
    assert.strictEqual(yield* Effect.provide(get(url), withKey), "client.example")
    const error = yield* Effect.flip(Effect.provide(get(url), NodeHttp.layer({ ca })))
    assert.strictEqual(error._tag, "RequestError")
  })

  test.live("cert is read when the layer is built, so a renewed certificate is used by the next layer", function*() {
    const [first, second] = [
      yield* selfSigned("first.example"),
      yield* selfSigned("second.example")
    ]
    const { url } = yield* requiring([first.cert, second.cert])
    const { cert: ca } = yield* selfSigned()
    const files = yield* filesOf(first)
    const live = Layer.unwrapEffect(
      Effect.sync(() =>
        NodeHttp.layer({
          ca,
          cert: readFileSync(files.cert),
          key: Redacted.make(readFileSync(files.key, "utf8"))
        })
      )
    )
    const renewed = Effect.gen(function*() {
      const before = yield* get(url)
      writeFileSync(files.cert, second.cert)
      writeFileSync(files.key, second.key)
      return [before, yield* get(url), yield* Effect.provide(get(url), Layer.fresh(live))]
    })
    deepStrictEqual(yield* Effect.provide(renewed, live), [
      "first.example",
      "first.example",
      "second.example"
    ])
  })
})

// undici reuses a socket in the next turn of the event loop, so an immediate request would open a second one.
const twenty = Effect.zipRight(
  Effect.flatMap(AccessTokenProvider.AccessTokenProvider, (provider) => provider.get),
  Effect.repeatN(Effect.zipRight(Effect.sleep("2 millis"), call()), 19)
)

test.live("keep-alive sends 20 requests through one socket, beside that of the token request", function*() {
  const server = yield* startStore
  yield* Effect.provide(twenty, NodeStoreAuth.layer(at(server.url)))
  assert.strictEqual(server.opened(), 2)
})

/** A slow server, so that many requests are in flight. */
const slow = Effect.suspend(() =>
  listen(
    Http.createServer((_request, response) => void setTimeout(() => response.end("done"), 20))
  )
)
const fifty = (url: string) =>
  Effect.forEach(Array(50).keys(), () => get(url), { concurrency: "unbounded" })

test.live.each([1, 4])(
  "connections limits the open connections of 50 concurrent requests to %i",
  function*(connections) {
    const server = yield* slow
    const answers = yield* Effect.provide(fifty(server.url), NodeHttp.layer({ connections }))
    deepStrictEqual(answers, Array<string>(50).fill("done"))
    assert.strictEqual(server.most(), connections)
  }
)

test.live("connections limits the open connections through a proxy", function*() {
  const server = yield* slow
  const proxy = yield* startProxy()
  yield* Effect.provide(
    fifty(byName(server)),
    NodeHttp.layer({ connections: 4, proxy: new URL(proxy.url) })
  )
  deepStrictEqual([server.most(), proxy.most()], [4, 4])
})

test.live("the number of connections is unlimited by default", function*() {
  const server = yield* slow
  yield* Effect.provide(fifty(server.url), NodeHttp.layer())
  assert.isAbove(server.most(), 8)
})

test.live.runIf(canMakeCertificates)(
  "works with a client of the application, and prints no key",
  function*() {
    const server = yield* startStore
    const { cert, key } = yield* selfSigned()
    yield* Effect.gen(function*() {
      const dispatcher = yield* NodeHttpClient.Dispatcher
      const client = yield* Effect.provide(
        HttpClient.HttpClient,
        NodeHttpClient.layerUndiciWithoutDispatcher
      )
      assert.strictEqual((yield* client.get(server.url)).status, 200)
      const printed = inspect(dispatcher, { depth: Infinity, showHidden: true })
      assert.notInclude(printed, key.split("\n")[1] ?? "")
    }).pipe(Effect.provide(NodeHttp.layerDispatcher({ cert, key: Redacted.make(key) })))
  }
)

test.live("layerConfig of NodeHttp reads each option from the configuration", function*() {
  const live = NodeHttp.layerConfig({ connections: Config.integer("CONNECTIONS") })
  const build = (connections: string) =>
    HttpClient.HttpClient.pipe(
      Effect.provide(live),
      Effect.withConfigProvider(
        ConfigProvider.fromMap(new Map([["CONNECTIONS", connections]]))
      )
    )
  yield* build("3")
  const error = yield* Effect.flip(build("0"))
  assert(error._tag === "ConfigurationError")
  assert.strictEqual(error.option, "http.connections")
})

/** A proxy that responds to a tunnel request with this text and opens no tunnel. */
const startProxyWithoutTunnel = (response: string) =>
  Effect.suspend(() =>
    listen(
      Http.createServer().on("connect", (_request, socket) => {
        socket.write(response)
        socket.resume().on("end", () => socket.end())
      })
    )
  )

test.live("closing the scope closes idle connections, whether through a proxy or without it", function*() {
  const [server, proxy] = [yield* startStore, yield* startProxy()]
  yield* Effect.gen(function*() {
    yield* get(byName(server))
    yield* get(server.url)
    deepStrictEqual([server.open(), proxy.open()], [2, 1])
  }).pipe(Effect.provide(NodeHttp.layer({ proxy: new URL(proxy.url) })))
  yield* until(() => server.open() === 0 && proxy.open() === 0)
})

test.live("closing the scope ends requests that hang or wait for a connection at once, without a retry", function*() {
  const server = yield* hanging
  const scope = yield* Scope.make()
  const context = yield* Layer.buildWithScope(NodeHttp.layer({ connections: 1 }), scope)
  const both = Effect.all([Effect.flip(get(server.url)), Effect.flip(get(server.url))], {
    concurrency: 2
  })
  const waiting = yield* Effect.fork(Effect.provide(both, context))
  yield* until(() => server.open() === 1)
  const [took, errors] = yield* Effect.timed(
    Effect.zipRight(Scope.close(scope, Exit.void), Fiber.join(waiting))
  )
  assert.isBelow(Duration.toMillis(took), 45_000)
  deepStrictEqual(errors.map(({ _tag }) => _tag), ["RequestError", "RequestError"])
  yield* until(() => server.open() === 0)
  assert.strictEqual(server.opened(), 1)
})

const cases = [
  ["a handshake", silent, undefined],
  [
    "a handshake behind a tunnel",
    silent,
    startProxyWithoutTunnel("HTTP/1.1 200 OK\r\n\r\n")
  ],
  ["a handshake with a proxy", hanging, silent],
  ["a tunnel", hanging, startProxyWithoutTunnel("")]
] as const
test.live.each(cases)("closing the scope ends %s that hangs", function*([, target, through]) {
  const server = yield* target
  const proxy = through === undefined ? undefined : yield* through
  const seen = proxy ?? server
  const live = NodeHttp.layer({ proxy: proxy === undefined ? "none" : new URL(proxy.url) })
  yield* Effect.gen(function*() {
    const request = yield* Effect.fork(get(byName(server)))
    yield* until(() => seen.open() === 1)
    // The step is in progress by then.
    yield* Effect.sleep("300 millis")
    yield* Fiber.interrupt(request)
    assert.strictEqual(seen.open(), 1)
  }).pipe(Effect.provide(live))
  yield* until(() => server.open() === 0 && seen.open() === 0)
})

/** The result of the first acquisition, and how often the server was asked. */
const acquired = (http: Layer.Layer<HttpClient.HttpClient, unknown>) =>
  Effect.gen(function*() {
    const server = yield* startStore
    const { provider } = yield* Effect.provide(StoreAuth.make(at(server.url)), http)
    const outcome = yield* Effect.either(provider.get)
    return { outcome, opened: server.opened() }
  })

test.live.each([
  ["NodeHttp", NodeHttp.layer()],
  ["undici", NodeHttpClient.layerUndici]
])(
  "a token request over a closed HTTP client is not sent, but fails with Closed at once: %s",
  function*([, http]) {
    const { opened, outcome } = yield* acquired(http)
    assert(Either.isLeft(outcome) && outcome.left._tag === "TokenRequestError")
    const { attempts, reason, retryAt } = outcome.left
    deepStrictEqual([reason, attempts, retryAt], ["Closed", 1, undefined])
    assert.include(outcome.left.message, "The layer of the HTTP client is closed")
    assert.include(outcome.left.message, "keep its scope open")
    assert.strictEqual(opened, 0)
  }
)

test.live("a token request over a closed layer of node:http succeeds, because its agent still connects", function*() {
  const { opened, outcome } = yield* acquired(NodeHttpClient.layer)
  assert.isTrue(Either.isRight(outcome))
  assert.strictEqual(opened, 1)
})

test.live("a token request in flight fails with Closed when the scope of its HTTP client closes", function*() {
  const server = yield* hanging
  const scope = yield* Scope.make()
  const context = yield* Layer.buildWithScope(NodeHttp.layer(), scope)
  const { provider } = yield* Effect.provide(StoreAuth.make(at(server.url)), context)
  const caller = yield* Effect.fork(Effect.flip(provider.get))
  yield* until(() => server.open() === 1)
  yield* Scope.close(scope, Exit.void)
  const error = yield* Fiber.join(caller)
  assert(error._tag === "TokenRequestError")
  deepStrictEqual([error.reason, error.attempts], ["Closed", 1])
  assert.strictEqual(server.opened(), 1)
})

test.live("a layer does not keep closed sockets in memory", function*() {
  const sockets: Array<WeakRef<object>> = []
  const onSocket = (message: unknown) =>
    void sockets.push(new WeakRef((message as { socket: object }).socket))
  yield* Effect.acquireRelease(
    Effect.sync(() => subscribe("net.client.socket", onSocket)),
    () => Effect.sync(() => unsubscribe("net.client.socket", onSocket))
  )
  const server = yield* listen(
    Http.createServer((_request, response) => response.setHeader("Connection", "close").end())
  )
  const count = 20
  yield* Effect.gen(function*() {
    yield* Effect.repeatN(get(server.url), count - 1)
    yield* until(() => server.open() === 0)
    assert.lengthOf(sockets, count)
    yield* until(() => {
      collectGarbage()
      return sockets.filter((socket) => socket.deref() !== undefined).length < count / 2
    })
  }).pipe(Effect.provide(NodeHttp.layer()))
})
