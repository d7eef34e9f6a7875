import * as Http from "node:http"
import * as Https from "node:https"
import { inspect } from "node:util"
import type { HttpClient } from "@effect/platform"
import { NodeHttpClient, Undici } from "@effect/platform-node"
import { assert, describe } from "@effect/vitest"
import { deepStrictEqual } from "@effect/vitest/utils"
import { type AccessTokenError, StoreAuth } from "@store-api/core"
import { NodeHttp, NodeStoreAuth } from "@store-api/platform-node"
import { canMakeCertificates, selfSigned } from "@store-api/testing/certificates"
import {
  at,
  authorized,
  byName,
  call,
  elsewhere,
  get,
  listen,
  onThisMachine,
  type Server,
  startProxy,
  startStore,
  startTlsStore,
  store,
  withVariables
} from "@store-api/testing/loopback"
import { shows } from "@store-api/testing/renderings"
import { test } from "@store-api/testing/test"
import { Effect, Layer, Redacted } from "effect"

onThisMachine()

/** The options of a store that is addressed by a name that is not loopback, without TLS. */
const insecureByName = (server: Server) => ({ ...at(byName(server)), allowInsecure: true })

test.live("the option proxy applies to token requests as to API requests over http", function*() {
  const [server, proxy] = [yield* startStore, yield* startProxy()]
  const live = NodeStoreAuth.layer({
    ...insecureByName(server),
    http: { proxy: new URL(proxy.url) }
  })
  deepStrictEqual(yield* Effect.provide(call(), live), authorized)
  const tunnel = { to: `${elsewhere}:${server.port}`, authorization: undefined }
  deepStrictEqual(proxy.tunnels, Array(server.opened()).fill(tunnel))
})

test.live.runIf(canMakeCertificates)(
  "the option proxy tunnels requests over https with the user name and password of its URL",
  function*() {
    const identity = yield* selfSigned(elsewhere)
    const [server, proxy] = [yield* startTlsStore(identity), yield* startProxy()]
    const url = new URL(proxy.url)
    url.username = "someone"
    url.password = "p@ss"
    yield* Effect.provide(
      get(byName(server)),
      NodeHttp.layer({ proxy: url, ca: identity.cert })
    )
    const authorization = `Basic ${Buffer.from("someone:p@ss").toString("base64")}`
    deepStrictEqual(proxy.tunnels, [{ to: `${elsewhere}:${server.port}`, authorization }])
  }
)

test.live.runIf(canMakeCertificates)("a proxy over TLS is trusted only with ca", function*() {
  const identity = yield* selfSigned()
  const server = yield* startStore
  const proxy = yield* startProxy(Https.createServer(identity), "https")
  const http = { proxy: new URL(proxy.url) }
  const trusting = NodeHttp.layer({ ...http, ca: identity.cert })
  assert.include(yield* Effect.provide(get(byName(server)), trusting), "authorization")
  assert.lengthOf(proxy.tunnels, 1)

  const error = yield* Effect.flip(
    Effect.provide(call(), NodeStoreAuth.layer({ ...insecureByName(server), http }))
  )
  assert(error._tag === "TokenRequestError")
  assert.strictEqual(error.reason, "Certificate")
  assert.lengthOf(proxy.tunnels, 1)
})

test.live.runIf(canMakeCertificates)(
  "the client certificate is sent to the server instead of the proxy",
  function*() {
    const { cert, key } = yield* selfSigned("*.store.example")
    const shown: Array<boolean> = []
    const asking = (handler?: Http.RequestListener) => {
      const server = Https.createServer({
        cert,
        key,
        ca: cert,
        requestCert: true,
        rejectUnauthorized: false
      }, handler)
      return server.on(
        "secureConnection",
        (socket) => shown.push("subject" in socket.getPeerCertificate())
      )
    }
    const server = yield* listen(asking(store), { host: "localhost", protocol: "https" })
    const proxy = yield* startProxy(asking(), "https")
    const live = NodeHttp.layer({
      proxy: new URL(byName(proxy, "proxy.store.example")),
      ca: cert,
      cert,
      key: Redacted.make(key)
    })
    yield* Effect.provide(get(byName(server)), live)
    deepStrictEqual(shown, [false, true])
  }
)

test.live("the option proxy takes precedence over the environment", function*() {
  const [server, proxy, other] = [
    yield* startStore,
    yield* startProxy(),
    yield* startProxy()
  ]
  const through = (http: NodeHttp.Options) =>
    withVariables({ HTTP_PROXY: other.url })(
      Effect.provide(get(byName(server)), NodeHttp.layer(http))
    )
  yield* through({ proxy: "none" })
  yield* through({ proxy: new URL(proxy.url) })
  deepStrictEqual([proxy.tunnels.length, other.tunnels.length], [1, 0])
})

/** A proxy that refuses every request, and the credentials of each. */
const startRefusingProxy = Effect.suspend(() => {
  const logins: Array<string | undefined> = []
  const head =
    "HTTP/1.1 407 Proxy Authentication Required\r\nProxy-Authenticate: Basic realm=\"any\"\r\n"
  const server = Http.createServer().on("connect", (request, socket) => {
    logins.push(request.headers["proxy-authorization"])
    socket.end(`${head}Content-Length: 0\r\n\r\n`)
  })
  server.on("request", (request, response) => {
    logins.push(request.headers["proxy-authorization"])
    response.writeHead(407, { "Proxy-Authenticate": "Basic realm=\"any\"" }).end()
  })
  return Effect.map(listen(server), ({ url }) => ({
    url: url.replace("//", "//someone:a-password-to-keep@"),
    logins
  }))
})

type HttpLayer = Layer.Layer<HttpClient.HttpClient, AccessTokenError.ConfigurationError>

/** A client of undici that sends requests for http URLs to the proxy without a tunnel. */
const withoutTunnel = (uri: string): HttpLayer =>
  Layer.provide(
    NodeHttpClient.layerUndiciWithoutDispatcher,
    Layer.scoped(
      NodeHttpClient.Dispatcher,
      Effect.acquireRelease(
        Effect.sync(() => new Undici.ProxyAgent({ uri, proxyTunnel: false })),
        (agent) => Effect.promise(() => agent.destroy())
      )
    )
  )

const nodeHttp = (url: string): HttpLayer => NodeHttp.layer({ proxy: new URL(url) })

test.live.each<readonly [name: string, scheme: string, http: (proxy: string) => HttpLayer]>([
  ["NodeHttp to http", "http", nodeHttp],
  ["NodeHttp to https", "https", nodeHttp],
  ["undici without a tunnel", "http", withoutTunnel]
])(
  "fails with Proxy after one attempt, without the password: %s",
  function*([, scheme, http]) {
    const proxy = yield* startRefusingProxy
    const options = { ...at(`${scheme}://${elsewhere}`), allowInsecure: true }
    const error = yield* StoreAuth.make(options).pipe(
      Effect.flatMap(({ provider }) => Effect.flip(provider.get)),
      Effect.provide(http(proxy.url))
    )
    assert(error._tag === "TokenRequestError")
    deepStrictEqual([error.reason, error.attempts, error.retryAt], ["Proxy", 1, undefined])
    const login = Buffer.from("someone:a-password-to-keep").toString("base64")
    deepStrictEqual(proxy.logins, [`Basic ${login}`])
    for (const secret of ["a-password-to-keep", login]) {
      assert.isFalse(shows(error, secret))
      assert.isTrue(shows(new Error(secret), secret), "control: the search finds it")
    }
  }
)

/** The number of tunnels for an http and an https request with these variables. `PROXY` stands for the proxy URL. */
const countTunnels = (variables: Readonly<Record<string, string>>) =>
  Effect.gen(function*() {
    const identity = yield* selfSigned("auth.store.example")
    const [plain, encrypted, proxy] = [
      yield* startStore,
      yield* startTlsStore(identity),
      yield* startProxy()
    ]
    const changes = Object.entries(variables).map((
      [name, value]
    ) => [name, value.replace("PROXY", proxy.url)])
    const both = Effect.gen(function*() {
      yield* get(byName(plain))
      const before = proxy.tunnels.length
      // Reaching the server is enough. To trust it, a layer would have to read all authorities.
      const error = yield* Effect.flip(get(byName(encrypted, "auth.store.example")))
      assert.include(inspect(error), "DEPTH_ZERO_SELF_SIGNED_CERT")
      assert.strictEqual(encrypted.opened(), 1)
      return [before, proxy.tunnels.length - before]
    })
    return yield* Effect.provide(both, NodeHttp.layer()).pipe(
      withVariables(Object.fromEntries(changes) as Record<string, string>)
    )
  })

const cases: ReadonlyArray<[Readonly<Record<string, string>>, ReadonlyArray<number>]> = [
  [{}, [0, 0]],
  [{ HTTP_PROXY: "PROXY" }, [1, 1]],
  [{ http_proxy: "PROXY" }, [1, 1]],
  [{ HTTPS_PROXY: "PROXY" }, [0, 1]],
  [{ https_proxy: "PROXY" }, [0, 1]],
  [{ http_proxy: "PROXY", HTTP_PROXY: "http://127.0.0.1:9" }, [1, 1]],
  [{ http_proxy: "", HTTP_PROXY: "PROXY" }, [0, 0]],
  [{ HTTP_PROXY: "PROXY", NO_PROXY: "*" }, [0, 0]],
  [{ HTTP_PROXY: "PROXY", NO_PROXY: "api.store.example" }, [0, 1]],
  [{ HTTP_PROXY: "PROXY", NO_PROXY: "store.example" }, [0, 0]],
  [{ HTTP_PROXY: "PROXY", NO_PROXY: "localhost,127.0.0.1" }, [1, 1]],
  [{ HTTP_PROXY: "PROXY", no_proxy: "other.example, auth.store.example" }, [1, 0]]
]
describe.runIf(canMakeCertificates)("decides for http and https", () => {
  test.live.each(cases)(
    "the proxy of the environment decides for each scheme: %j opens %j tunnels",
    function*([variables, expected]) {
      deepStrictEqual(yield* countTunnels(variables), expected)
    }
  )
})

const unusable = [
  "socks5://user:a-password@proxy.example",
  "proxy.example:3128",
  "http://%zz:a-password@proxy.example"
]
const usable = { HTTP_PROXY: "http://127.0.0.1:9", HTTPS_PROXY: "http://127.0.0.1:9" }

test.live.each(unusable)(
  "an invalid variable is named in the error, without its value: %s",
  function*(url) {
    for (const name of ["HTTP_PROXY", "HTTPS_PROXY", "http_proxy", "https_proxy"]) {
      const error = yield* Effect.flip(Layer.launch(NodeHttp.layer())).pipe(
        withVariables({ ...usable, [name]: url })
      )
      assert.strictEqual(error.option, name)
      assert.notInclude(inspect(error), "a-password")
    }
  }
)

const ways: Readonly<
  Record<
    string,
    (proxy: string) => { http?: NodeHttp.Options; variables?: Record<string, string> }
  >
> = {
  "the option": (proxy) => ({ http: { proxy: new URL(proxy) } }),
  "the environment": (proxy) => ({ variables: { http_proxy: proxy, https_proxy: proxy } })
}

for (const [way, settings] of Object.entries(ways)) {
  describe(`loopback, with a proxy from ${way}`, () => {
    /** The hosts of the requests that reach the proxy, over http or https, and the connections without it. */
    const proxied = (hosts: ReadonlyArray<string>) =>
      Effect.gen(function*() {
        const [{ opened, port }, proxy] = [yield* startStore, yield* startProxy()]
        const { http, variables = {} } = settings(proxy.url)
        const origins = hosts.flatMap((
          host
        ) => [`http://${host}:${port}`, `https://${host}:${port}`])
        yield* Effect.forEach(origins, (origin) => Effect.either(get(origin))).pipe(
          Effect.provide(NodeHttp.layer(http)),
          withVariables(variables)
        )
        return {
          hosts: proxy.tunnels.map(({ to }) => to.slice(0, to.lastIndexOf(":"))),
          direct: opened(),
          proxy
        }
      })

    test.live("loopback is recognized by all its names", function*() {
      const own = [
        "localhost",
        "LOCALHOST",
        "store.localhost",
        "127.0.0.1",
        "127.1",
        "0x7f000001",
        "127.255.255.254"
      ]
      const { direct, proxy } = yield* proxied([...own, "[::1]", "[0:0::0:1]"])
      assert.strictEqual(proxy.opened(), 0)
      assert.isAbove(direct, 0)
    })

    test.live("requests to other hosts than loopback reach the proxy", function*() {
      const others = [
        elsewhere,
        "localhost.example",
        "nolocalhost",
        "127.0.0.1.example",
        "126.0.0.1",
        "[::2]"
      ]
      deepStrictEqual((yield* proxied(others)).hosts, others.flatMap((host) => [host, host]))
    })
  })
}
