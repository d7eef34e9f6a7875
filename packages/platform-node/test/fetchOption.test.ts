/** The option `fetch` of `PromiseStoreAuth`. */
import * as Http from "node:http"
import { assert, describe } from "@effect/vitest"
import { deepStrictEqual } from "@effect/vitest/utils"
import { PromiseStoreAuth } from "@store-api/platform-node"
import { at, listen, onThisMachine, store as respond } from "@store-api/testing/loopback"
import { test } from "@store-api/testing/test"
import { Effect } from "effect"

onThisMachine()

const real = at("https://store.example")

const isTokenRequest = (input: Parameters<typeof globalThis.fetch>[0]) =>
  new Request(input).url.endsWith("/v1/oauth/accesstoken")

/** A `fetch` that sends nothing, and what it was called with. */
const mock = (statuses: ReadonlyArray<number> = []) => {
  const remaining = [...statuses]
  const calls: Array<readonly [input: unknown, init: RequestInit | undefined]> = []
  const fetch: typeof globalThis.fetch = async (input, init) => {
    calls.push([input, init])
    return isTokenRequest(input)
      ? Response.json({ access_token: `token-${calls.length}`, token_type: "Bearer" })
      : Response.json(["a chair"], { status: remaining.shift() ?? 200 })
  }
  return { calls, fetch }
}

const made = (options: PromiseStoreAuth.Options) =>
  Effect.acquireRelease(
    Effect.sync(() => PromiseStoreAuth.make(options)),
    ({ dispose }) => Effect.promise(dispose)
  )

const errorOf = (promise: Promise<unknown>) =>
  Effect.promise(() =>
    promise.then(
      (value) => assert.fail(String(value)),
      (error: unknown) => error
    )
  )

/** Replaces the global `fetch`, as mocks do. */
const withGlobal = (fetch: typeof globalThis.fetch) =>
  Effect.acquireRelease(
    Effect.sync(() => {
      const original = globalThis.fetch
      globalThis.fetch = fetch
      return original
    }),
    (original) => Effect.sync(() => globalThis.fetch = original)
  )

describe("with the option fetch, PromiseStoreAuth", () => {
  const callWithMock = Effect.gen(function*() {
    const { calls, fetch } = mock()
    const store = yield* made({ ...real, fetch })
    const response = yield* Effect.promise(() =>
      store.fetch(new URL("https://store.example/orders?a=b%20c"))
    )
    return { calls, response }
  })

  test.live("the option fetch sends token requests and API requests", function*() {
    const { calls, response } = yield* callWithMock
    deepStrictEqual(yield* Effect.promise(() => response.json()), ["a chair"])
    const [, [, api] = []] = calls
    assert.strictEqual(new Headers(api?.headers).get("authorization"), "Bearer token-1")
  })

  test.live("the option fetch gets the URL as a string", function*() {
    const { calls } = yield* callWithMock
    deepStrictEqual(calls.map(([input]) => input), [
      "https://store.example/v1/oauth/accesstoken",
      "https://store.example/orders?a=b%20c"
    ])
  })

  test.live("the option fetch follows no redirect itself", function*() {
    const { calls } = yield* callWithMock
    deepStrictEqual(calls.map(([, init]) => init?.redirect), ["manual", "manual"])
  })

  test.live("the option fetch gets no dispatcher of undici", function*() {
    for (const [, init] of (yield* callWithMock).calls) assert.notProperty(init, "dispatcher")
  })

  test.live("acquires another token after a 401", function*() {
    const { calls, fetch } = mock([401])
    const store = yield* made({ ...real, fetch })
    assert.strictEqual((yield* Effect.promise(() => store.fetch("/orders"))).status, 200)
    assert.lengthOf(calls, 4)
  })

  test.live("passes the rest of init to it", function*() {
    const { calls, fetch } = mock()
    const store = yield* made({ ...real, fetch })
    const init = { method: "POST", body: "{}", next: { revalidate: 60 } }
    yield* Effect.promise(() => store.fetch("/orders", init))
    assert.propertyVal(calls[1]?.[1], "method", "POST")
    assert.nestedPropertyVal(calls[1]?.[1], "next.revalidate", 60)
  })

  test.live("rejects with the error of the fetch itself for an API request", function*() {
    const failure = new TypeError("no handler")
    const { fetch } = mock()
    const store = yield* made({
      ...real,
      fetch: (input, init) =>
        isTokenRequest(input) ? fetch(input, init) : Promise.reject(failure)
    })
    assert.strictEqual(yield* errorOf(store.fetch("/orders")), failure)
  })

  test.live("rejects with Transport if the fetch rejects the token request", function*() {
    const store = yield* made({
      ...real,
      endpoint: { deadline: "100 millis" },
      fetch: () => Promise.reject(new TypeError("no handler"))
    })
    for (const call of [store.getToken, () => store.fetch("/orders")]) {
      assert.propertyVal(yield* errorOf(call()), "_tag", "TokenRequestError")
    }
  })

  test.live("needs none of the global functions", function*() {
    yield* withGlobal(() => assert.fail("the global fetch was called"))
    const { calls, fetch } = mock()
    const store = yield* made({ ...real, fetch })
    yield* Effect.promise(() => store.fetch("/orders"))
    assert.lengthOf(calls, 2)
  })

  test.live("the option fetch with the global function stands for its mock, too", function*() {
    const seen: Array<string | undefined> = []
    const server = yield* listen(Http.createServer((request, response) => {
      seen.push(request.url)
      respond(request, response)
    }))
    const options = { ...at(server.url), fetch: globalThis.fetch }
    const [early, idle] = [yield* made(options), yield* made(options)]
    yield* Effect.promise(() => early.fetch("/real"))
    deepStrictEqual(seen, ["/v1/oauth/accesstoken", "/real"])
    const { calls, fetch } = mock()
    yield* withGlobal(fetch)
    // The second makes its first request now, and the third even gets the original function now.
    for (const store of [early, idle, yield* made(options)]) {
      const token = yield* Effect.promise(store.getToken)
      yield* Effect.promise(() => store.reject(token))
      yield* Effect.promise(() => store.fetch("/mocked"))
    }
    assert.lengthOf(seen, 2)
    assert.lengthOf(calls, 8)
  })

  const errorWith = (options: object) =>
    Effect.gen(function*() {
      const store = yield* made({ ...real, ...options })
      return String(yield* errorOf(store.fetch("/orders")))
    })

  test.live("the option fetch must be a function", function*() {
    for (const fetch of ["https://mock.example", null, {}]) {
      assert.include(yield* errorWith({ fetch }), "The option fetch must be a function.")
    }
  })

  test.live("the option fetch cannot be given together with http", function*() {
    const { fetch } = mock()
    for (const http of [{}, { proxy: "none" }]) {
      assert.include(
        yield* errorWith({ fetch, http }),
        "The option fetch must not be given together with http."
      )
    }
    const store = yield* made({ ...real, fetch, http: undefined })
    yield* Effect.promise(() => store.fetch("/orders"))
  })
})

describe("fetch", () => {
  test.live("fetch removes the spaces around a URL", function*() {
    const { calls, fetch } = mock()
    const store = yield* made({ ...real, fetch })
    const url = "https://store.example/orders"
    const inputs = [
      ` ${url}`,
      `${url}\n`,
      `\t${url}\r\n`,
      "https://store.example/or\nders",
      new URL(` ${url} `),
      new Request(` ${url} `),
      " /orders",
      "/orders\n"
    ]
    for (const input of inputs) yield* Effect.promise(() => store.fetch(input))
    deepStrictEqual(calls.slice(1).map(([input]) => input), inputs.map(() => url))
  })
})

describe("the User-Agent of fetch", () => {
  const userAgents = (init?: RequestInit) =>
    Effect.gen(function*() {
      const { calls, fetch } = mock()
      const store = yield* made({ ...real, fetch })
      yield* Effect.promise(() => store.fetch("/orders", init))
      return calls.map(([, init]) => new Headers(init?.headers).get("user-agent"))
    })

  test.live("the User-Agent of fetch is store-api by default", function*() {
    deepStrictEqual(yield* userAgents(), ["store-api", "store-api"])
  })

  test.live("the User-Agent of fetch is the caller's if there is one", function*() {
    const headers = { "User-Agent": "billing" }
    deepStrictEqual(yield* userAgents({ headers }), ["store-api", "billing"])
  })
})

describe("await using", () => {
  test.live("disposes of the functions", function*() {
    const { fetch } = mock()
    const store = PromiseStoreAuth.make({ ...real, fetch })
    yield* Effect.promise(async () => {
      await using used = store
      await used.getToken()
    })
    assert.propertyVal(yield* errorOf(store.getToken()), "reason", "Closed")
  })
})
