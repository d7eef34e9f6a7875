import * as Http from "node:http"
import { inspect } from "node:util"
import { HttpClient } from "@effect/platform"
import { NodeHttpClient } from "@effect/platform-node"
import { assert, describe } from "@effect/vitest"
import { deepStrictEqual } from "@effect/vitest/utils"
import { type AccessTokenError, AccessTokenProvider, StoreAuth } from "@store-api/core"
import { NodeHttp, NodeStoreAuth } from "@store-api/platform-node"
import { Config, ConfigProvider, Effect, Layer, Redacted } from "effect"
import { test } from "../../core/test/support/test.js"
import { canMakeCertificates, selfSigned } from "./support/certificates.js"
import { at, byName, call, get, listen, onThisMachine, startProxy, startStore } from "./utils.js"

onThisMachine()

describe("options that cannot be used", () => {
  const password = "a-password-to-keep"
  const key = "-----BEGIN PRIVATE KEY-----\na-key-to-keep\n-----END PRIVATE KEY-----"
  const broken = "-----BEGIN CERTIFICATE-----\nbm90IG9uZQ==\n-----END CERTIFICATE-----"

  const errorOf = (options: NodeHttp.Options): Effect.Effect<AccessTokenError.ConfigurationError> =>
    Effect.gen(function*() {
      const error = yield* Effect.flip(Layer.launch(NodeHttp.layer(options)))
      assert.strictEqual(error._tag, "ConfigurationError")
      for (const text of [error.message, inspect(error, { depth: Infinity }), JSON.stringify(error)]) {
        assert.notInclude(text, password)
        assert.notInclude(text, "to-keep")
      }
      return error
    })

  const wholeNumber = "must be a whole number from 1"
  const proxyReason = "must be an http:// or https:// URL, a user name and password in it percent-encoded"
  const caReason = "must hold certificates in PEM"
  const proxies = ["ftp", "socks5", "ws"].map((scheme) => `${scheme}://user:${password}@proxy.example`)

  test.live.each<readonly [string, ReadonlyArray<NodeHttp.Options>]>([
    [wholeNumber, [0, -1, NaN, Infinity, 1.5].map((connections) => ({ connections }))],
    [
      proxyReason,
      [...proxies, `http://user:${password}%zz@proxy.example`].map((proxy) => ({ proxy: new URL(proxy) }))
    ],
    [
      caReason,
      ["", "a-text-to-keep", broken, key, new TextEncoder().encode("to-keep"), [broken]].map((ca) => ({ ca }))
    ]
  ])("are named, without their value: %s", function*([reason, unusable]) {
    for (const options of unusable) {
      const error = yield* errorOf(options)
      deepStrictEqual([error.option, error.reason], [Object.keys(options)[0], reason])
    }
  })

  test.live.runIf(canMakeCertificates)("ca: a broken certificate after a valid one", function*() {
    const { cert } = yield* selfSigned()
    for (const ca of [cert + broken, [cert, broken]]) {
      assert.strictEqual((yield* errorOf({ ca })).reason, caReason)
    }
  })

  test.live.runIf(canMakeCertificates)("cert and key: one without the other, not PEM, or not a pair", function*() {
    const [one, other] = [yield* selfSigned(), yield* selfSigned("localhost", 2)]
    const redacted = Redacted.make(one.key)
    for (
      const [options, option, reason] of [
        [{ cert: one.cert }, "key", "is missing, cert needs it"],
        [{ key: redacted }, "cert", "is missing, key needs it"],
        [{ cert: broken, key: redacted }, "cert", "must be a certificate in PEM"],
        [
          { cert: one.cert, key: Redacted.make(key) },
          "key",
          "must be a private key in PEM, without a passphrase"
        ],
        [{ cert: other.cert, key: redacted }, "key", "is not the private key of cert"]
      ] as const
    ) {
      const error = yield* errorOf(options)
      deepStrictEqual([error.option, error.reason], [option, reason])
    }
  })
})

// undici reuses a socket in the next turn of the event loop, so an immediate request would open a second one.
const twenty = Effect.zipRight(
  Effect.flatMap(AccessTokenProvider.AccessTokenProvider, (provider) => provider.get),
  Effect.repeatN(Effect.zipRight(Effect.sleep("2 millis"), call()), 19)
)

describe("keep-alive", () => {
  test.live("sends 20 requests and the token request through one socket", function*() {
    const server = yield* startStore
    yield* Effect.provide(twenty, NodeStoreAuth.layer(at(server.url)))
    assert.strictEqual(server.opened(), 1)
  })

  test.live("control: without the layer there is one socket per request", function*() {
    const server = yield* startStore
    yield* Effect.provide(twenty, Layer.provide(StoreAuth.layer(at(server.url)), NodeHttpClient.layer))
    assert.strictEqual(server.opened(), 21)
  })
})

describe("the option connections", () => {
  /** A slow server, so that many requests are in flight. */
  const slow = Effect.suspend(() =>
    listen(Http.createServer((_request, response) => void setTimeout(() => response.end("done"), 20)))
  )
  const fifty = (url: string) => Effect.forEach(Array(50).keys(), () => get(url), { concurrency: "unbounded" })

  for (const connections of [1, 4]) {
    test.live(`limits the open connections of 50 concurrent requests to ${connections}`, function*() {
      const server = yield* slow
      const answers = yield* Effect.provide(fifty(server.url), NodeHttp.layer({ connections }))
      deepStrictEqual(answers, Array<string>(50).fill("done"))
      assert.strictEqual(server.most(), connections)
    })
  }

  test.live("limits the open connections through a proxy", function*() {
    const server = yield* slow
    const proxy = yield* startProxy()
    yield* Effect.provide(fifty(byName(server)), NodeHttp.layer({ connections: 4, proxy: new URL(proxy.url) }))
    assert.strictEqual(server.most(), 4)
    assert.strictEqual(proxy.most(), 4)
  })

  test.live("is unlimited by default", function*() {
    const server = yield* slow
    yield* Effect.provide(fifty(server.url), NodeHttp.layer())
    assert.isAbove(server.most(), 8)
  })
})

describe("layerDispatcher", () => {
  test.live.runIf(canMakeCertificates)("works with a client of the application, and prints no key", function*() {
    const server = yield* startStore
    const { cert, key } = yield* selfSigned()
    yield* Effect.gen(function*() {
      const dispatcher = yield* NodeHttpClient.Dispatcher
      const client = yield* Effect.provide(HttpClient.HttpClient, NodeHttpClient.layerUndiciWithoutDispatcher)
      assert.strictEqual((yield* client.get(server.url)).status, 200)
      const printed = inspect(dispatcher, { depth: Infinity, showHidden: true })
      assert.notInclude(printed, key.split("\n")[1] ?? "")
    }).pipe(Effect.provide(NodeHttp.layerDispatcher({ cert, key: Redacted.make(key) })))
  })
})

describe("layerConfig", () => {
  test.live("reads each option from the configuration", function*() {
    const live = NodeHttp.layerConfig({ connections: Config.integer("CONNECTIONS") })
    const build = (connections: string) =>
      HttpClient.HttpClient.pipe(
        Effect.provide(live),
        Effect.withConfigProvider(ConfigProvider.fromMap(new Map([["CONNECTIONS", connections]])))
      )
    yield* build("3")
    const error = yield* Effect.flip(build("0"))
    assert(error._tag === "ConfigurationError")
    assert.strictEqual(error.option, "connections")
  })
})
