import * as Http from "node:http"
import { inspect } from "node:util"
import { assert, describe } from "@effect/vitest"
import { deepStrictEqual } from "@effect/vitest/utils"
import { type NodeHttp, NodeStoreAuth, PromiseStoreAuth } from "@store-api/platform-node"
import {
  at,
  elsewhere,
  listen,
  onThisMachine,
  startStore,
  withVariables
} from "@store-api/testing/loopback"
import { test } from "@store-api/testing/test"
import { Effect } from "effect"

onThisMachine()

const password = "a-password-to-keep"
const login = Buffer.from(`someone:${password}`).toString("base64")

/** A proxy that answers every tunnel with 407, and the number of them. */
const startRefusing = Effect.suspend(() => {
  const counts = { logins: 0 }
  const server = Http.createServer().on("connect", (_request, socket) => {
    counts.logins++
    socket.end(
      "HTTP/1.1 407 Proxy Authentication Required\r\nProxy-Authenticate: Basic realm=\"any\"\r\nContent-Length: 0\r\n\r\n"
    )
  })
  return Effect.map(listen(server), ({ url }) => ({
    url: url.replace("//", `//someone:${password}@`),
    logins: () => counts.logins
  }))
})

const ways: Readonly<
  Record<
    string,
    (proxy: string) => { http?: NodeHttp.Options; variables?: Record<string, string> }
  >
> = {
  "a URL": (proxy) => ({ http: { proxy: new URL(proxy) } }),
  "the environment": (proxy) => ({ variables: { http_proxy: proxy, https_proxy: proxy } })
}

const cases = Object.keys(ways).flatMap((way) =>
  ["http", "https"].map((scheme) => [way, scheme] as const)
)

/** The endpoint is on this machine, so only API requests go through the proxy. */
const optionsOf = (authUrl: string, scheme: string, http: NodeHttp.Options | undefined) => ({
  ...at(authUrl),
  apiUrl: `${scheme}://${elsewhere}`,
  allowInsecure: true,
  http
})

const sentence =
  "The proxy refused the connection (407): check the user name and password for the proxy."

const expectNoPassword = (error: unknown) => {
  for (const depth of [2, Infinity]) {
    const shown = inspect(error, { depth, showHidden: true })
    for (const secret of [password, login]) assert.notInclude(shown, secret)
  }
  assert.include(inspect(new Error(password)), password, "control")
}

describe("an API request through a proxy that refuses the login", () => {
  test.live.each(cases)(
    "fails once, with a sentence about the proxy and 407: by %s, to %s",
    function*([way, scheme]) {
      const [server, proxy] = [yield* startStore, yield* startRefusing]
      const { http, variables = {} } = ways[way]?.(proxy.url) ?? {}
      const error = yield* NodeStoreAuth.make(optionsOf(server.url, scheme, http)).pipe(
        Effect.flatMap(({ client }) => Effect.flip(client.get("/orders"))),
        withVariables(variables)
      )
      assert.include(String(error), sentence)
      expectNoPassword(error)
      assert.strictEqual(proxy.logins(), 1)
    }
  )

  test.live.each(cases)(
    "rejects once, with a sentence about the proxy and 407: fetch, by %s, to %s",
    function*([way, scheme]) {
      const [server, proxy] = [yield* startStore, yield* startRefusing]
      const { http, variables = {} } = ways[way]?.(proxy.url) ?? {}
      yield* Effect.gen(function*() {
        const { dispose, fetch } = PromiseStoreAuth.make(optionsOf(server.url, scheme, http))
        const error = yield* Effect.flip(Effect.tryPromise({
          try: () => fetch("/orders"),
          catch: (error) => error
        }))
        assert(error instanceof TypeError)
        assert.strictEqual(error.message, sentence)
        expectNoPassword(error)
        yield* Effect.promise(dispose)
      }).pipe(withVariables(variables))
      assert.strictEqual(proxy.logins(), 1)
    }
  )
})

test.live("a proxy that refuses the login gets at most four logins from 12 calls in 6 s", function*() {
  const proxy = yield* startRefusing
  const { provider } = yield* NodeStoreAuth.make({
    ...at(`https://${elsewhere}`),
    http: { proxy: new URL(proxy.url) }
  })
  const errors = yield* Effect.replicateEffect(
    Effect.zipLeft(Effect.flip(provider.get), Effect.sleep("500 millis")),
    12
  )
  deepStrictEqual(
    errors.map((error) => error._tag === "TokenRequestError" && error.reason),
    Array(12).fill("Proxy")
  )
  // At 0 s, and after pauses of 1, 2 and 4 s, each times 0.75 to 1.
  assert.isAtLeast(proxy.logins(), 3)
  assert.isAtMost(proxy.logins(), 4)
})
