import type * as Http from "node:http"
import * as Https from "node:https"
import { inspect } from "node:util"
import { assert, describe, it } from "@effect/vitest"
import { NodeHttp, NodeStoreAuth } from "@store-api/platform-node"
import { Effect, Layer, Redacted } from "effect"
import {
  at,
  authorized,
  call,
  get,
  listen,
  processTimeout,
  run,
  selfSigned,
  startProxy,
  startStore,
  startTlsStore,
  store,
  withVariables
} from "./utils.js"

describe("the option", () => {
  it.scopedLive("sends the token request and the API's through the proxy, over http", () =>
    Effect.gen(function*() {
      const [server, proxy] = [yield* startStore, yield* startProxy()]
      const live = NodeStoreAuth.layer({ ...at(server.url), http: { proxy: new URL(proxy.url) } })
      assert.deepStrictEqual(yield* Effect.provide(call(), live), authorized)
      const tunnel = { to: `127.0.0.1:${server.port}`, authorization: undefined }
      assert.deepStrictEqual(proxy.tunnels, Array(server.opened()).fill(tunnel))
    }))

  it.scopedLive("and over https, with the user name and password of the URL", () =>
    Effect.gen(function*() {
      const identity = yield* selfSigned()
      const [server, proxy] = [yield* startTlsStore(identity), yield* startProxy()]
      const url = new URL(proxy.url)
      url.username = "someone"
      url.password = "p@ss"
      yield* Effect.provide(get(server.url), NodeHttp.layer({ proxy: url, ca: identity.cert }))
      const authorization = `Basic ${Buffer.from("someone:p@ss").toString("base64")}`
      assert.deepStrictEqual(proxy.tunnels, [{ to: `localhost:${server.port}`, authorization }])
    }))

  it.scopedLive("trusts a proxy over TLS by ca, and not without", () =>
    Effect.gen(function*() {
      const identity = yield* selfSigned()
      const server = yield* startStore
      const proxy = yield* startProxy(Https.createServer(identity), "https")
      const http = { proxy: new URL(proxy.url) }
      const trusting = NodeHttp.layer({ ...http, ca: identity.cert })
      assert.include(yield* Effect.provide(get(server.url), trusting), "authorization")
      assert.lengthOf(proxy.tunnels, 1)

      const error = yield* Effect.flip(Effect.provide(call(), NodeStoreAuth.layer({ ...at(server.url), http })))
      assert(error._tag === "TokenRequestError")
      assert.strictEqual(error.reason, "Certificate")
      assert.lengthOf(proxy.tunnels, 1)
    }))

  it.scopedLive("shows the client certificate to the server, not to the proxy", () =>
    Effect.gen(function*() {
      const { cert, key } = yield* selfSigned()
      const shown: Array<boolean> = []
      const asking = (handler?: Http.RequestListener) => {
        const server = Https.createServer(
          { cert, key, ca: cert, requestCert: true, rejectUnauthorized: false },
          handler
        )
        return server.on("secureConnection", (socket) => shown.push("subject" in socket.getPeerCertificate()))
      }
      const server = yield* listen(asking(store), { host: "localhost", protocol: "https" })
      const proxy = yield* startProxy(asking(), "https")
      const live = NodeHttp.layer({ proxy: new URL(proxy.url), ca: cert, cert, key: Redacted.make(key) })
      yield* Effect.provide(get(server.url), live)
      assert.deepStrictEqual(shown, [false, true])
    }))

  it.scopedLive("wins over the environment", () =>
    Effect.gen(function*() {
      const [server, proxy, other] = [yield* startStore, yield* startProxy(), yield* startProxy()]
      const through = (http: NodeHttp.Options) =>
        withVariables({ HTTP_PROXY: other.url })(Effect.provide(get(server.url), NodeHttp.layer(http)))
      yield* through({ proxy: "none" })
      yield* through({ proxy: new URL(proxy.url) })
      assert.deepStrictEqual([proxy.tunnels.length, other.tunnels.length], [1, 0])
    }))
})

describe("the environment", () => {
  it.scopedLive("of the process is used by default", () =>
    Effect.gen(function*() {
      const [server, proxy] = [yield* startStore, yield* startProxy()]
      const { output } = yield* run([server.url], { HTTP_PROXY: proxy.url })
      assert.include(output, "authorization")
      assert.deepStrictEqual(proxy.tunnels.map(({ to }) => to), [`127.0.0.1:${server.port}`])
    }), processTimeout)

  /** How many tunnels an http and an https request open with these variables; `PROXY` in them is the proxy's URL. */
  const tunnels = (variables: Readonly<Record<string, string>>, http: NodeHttp.Options = {}) =>
    Effect.gen(function*() {
      const identity = yield* selfSigned()
      const [plain, encrypted, proxy] = [yield* startStore, yield* startTlsStore(identity), yield* startProxy()]
      const changes = Object.entries(variables).map(([name, value]) => [name, value.replace("PROXY", proxy.url)])
      const both = Effect.gen(function*() {
        yield* get(plain.url)
        const before = proxy.tunnels.length
        yield* get(encrypted.url)
        return [before, proxy.tunnels.length - before]
      })
      return yield* Effect.provide(both, NodeHttp.layer({ ...http, ca: identity.cert })).pipe(
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
    [{ HTTP_PROXY: "PROXY", NO_PROXY: "127.0.0.1" }, [0, 1]],
    [{ HTTP_PROXY: "PROXY", no_proxy: "store.example, localhost" }, [1, 0]]
  ]
  for (const [variables, expected] of cases) {
    it.scopedLive(`${JSON.stringify(variables)}: ${expected.join(" and ")} tunnels`, () =>
      Effect.gen(function*() {
        assert.deepStrictEqual(yield* tunnels(variables), expected)
      }))
  }

  for (
    const url of ["socks5://user:a-password@proxy.example", "proxy.example:3128", "http://%zz:a-password@proxy.example"]
  ) {
    it.live(`a variable that cannot be used is named, not shown: ${url}`, () =>
      Effect.gen(function*() {
        for (const name of ["HTTP_PROXY", "HTTPS_PROXY", "http_proxy", "https_proxy"]) {
          const error = yield* Effect.flip(Layer.launch(NodeHttp.layer())).pipe(withVariables({ [name]: url }))
          assert.strictEqual(error.option, name)
          assert.notInclude(inspect(error), "a-password")
        }
      }))
  }
})
