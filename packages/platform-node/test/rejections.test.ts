/** The reasons with which the promises of `PromiseStoreAuth` reject. */
import { inspect, types } from "node:util"
import { HttpClient } from "@effect/platform"
import { assert, describe } from "@effect/vitest"
import { deepStrictEqual } from "@effect/vitest/utils"
import { AccessTokenError, TokenStore } from "@store-api/core"
import { PromiseStoreAuth } from "@store-api/platform-node"
import {
  at,
  freePort,
  onThisMachine,
  startStore,
  withVariables
} from "@store-api/testing/loopback"
import { test } from "@store-api/testing/test"
import { Config, Effect, Layer } from "effect"

onThisMachine()

const unusable = new AccessTokenError.ConfigurationError({
  option: "url",
  reason: "is not a URL"
})

const failingStore = (failure: unknown) =>
  Layer.effect(TokenStore.TokenStore, Effect.fail(failure))

const named = (name: string): Error => Object.assign(new Error("text of the error"), { name })

type Options = (url: string, closed: string) => unknown

/** Options with which `fetch` rejects, a part of the message, and the URL if it is not that of the API. */
const situations: Readonly<
  Record<string, readonly [options: Options, message: string, input?: string]>
> = {
  "a missing variable": [() => ({}), "STORE_API_CLIENT_SECRET"],
  "one missing option": [
    (url) => ({ ...at(url), clientSecret: undefined }),
    "clientSecret is missing"
  ],
  "a plain secret": [
    (url) => ({ ...at(url), clientSecret: "a canary" }),
    "clientSecret must be wrapped with Redacted.make"
  ],
  "an unreachable token endpoint": [
    (url, closed) => ({ ...at(url), authUrl: closed }),
    "Cannot reach the token endpoint"
  ],
  "an unreachable API": [(url, closed) => ({ ...at(url), apiUrl: closed }), "fetch failed"],
  "an API that may not receive the token": [
    at,
    "access token may only go to",
    "https://elsewhere.example/orders"
  ],
  "transformClient that throws a text": [
    (url) => ({
      ...at(url),
      transformClient: () => {
        // eslint-disable-next-line @typescript-eslint/only-throw-error -- as JavaScript may
        throw "a thrown text"
      }
    }),
    "a thrown text"
  ],
  "transformClient that throws an error": [
    (url) => ({
      ...at(url),
      transformClient: () => {
        throw named("OwnError")
      }
    }),
    "text of the error"
  ],
  "transformClient that returns nothing": [
    (url) => ({ ...at(url), transformClient: () => undefined }),
    "transformClient must return an HttpClient"
  ],
  "a client that fails with an object": [
    (url) => ({
      ...at(url),
      transformClient: HttpClient.transformResponse(() => Effect.fail({ answer: 42 }))
    }),
    "answer: 42"
  ],
  "a client with a defect of nothing": [
    (url) => ({
      ...at(url),
      transformClient: HttpClient.transformResponse(() => Effect.die(undefined))
    }),
    "undefined"
  ],
  "a store that fails within a span": [
    (url) => ({
      ...at(url),
      store: Layer.effect(
        TokenStore.TokenStore,
        Effect.withSpan(Effect.fail(unusable), "connect")
      )
    }),
    "url is not a URL"
  ],
  "a store without its variable": [
    (url) => ({
      ...at(url),
      store: Layer.effect(
        TokenStore.TokenStore,
        Effect.zipRight(Config.string("STORE_API_NONE"), TokenStore.makeMemory)
      )
    }),
    "STORE_API_NONE"
  ],
  ...Object.fromEntries(
    Object.entries(
      {
        text: ["a text of the store", "a text of the store"],
        nothing: [undefined, "undefined"],
        null: [null, "null"],
        "a number": [42, "42"],
        "a symbol": [Symbol("its name"), "Symbol(its name)"],
        "a function": [() => undefined, "Function"],
        "a tagged object": [{ _tag: "Unavailable", url: "redis" }, "Unavailable"],
        "an object without a prototype": [Object.create(null), "Object: null prototype"],
        "an object that cannot be cloned": [{ get: () => undefined }, "get: "],
        "an error": [named("OwnError"), "text of the error"]
      } as const
    ).map(([name, [failure, message]]) => [
      `a store that fails with ${name}`,
      [
        (url: string) => ({ ...at(url), store: failingStore(failure) }),
        message
      ] as const
    ])
  )
}

/** The reason with which a promise rejects, whether its options are of the right type or not. */
const rejectionOf = (
  options: unknown,
  call: (store: PromiseStoreAuth.PromiseStoreAuth) => Promise<unknown>
) =>
  Effect.promise(async () => {
    const store = PromiseStoreAuth.make(options as PromiseStoreAuth.Options)
    const error: unknown = await call(store).then(
      (value) => assert.fail(`resolved with ${inspect(value)}`),
      (error: unknown) => error
    )
    await store.dispose()
    return error
  })

/** The value that arrives in another thread. */
const posted = (error: unknown) =>
  Effect.promise(() => {
    const { port1, port2 } = new MessageChannel()
    return new Promise<Error>((resolve) => {
      port2.addEventListener("message", ({ data }: MessageEvent<Error>) => {
        port1.close()
        resolve(data)
      })
      port2.start()
      port1.postMessage(error)
    })
  })

describe("each promise rejects with an Error", () => {
  test.live.each(Object.entries(situations))(
    "that has a sentence and a stack, and can be sent to another thread: %s",
    function*([, [options, message, input = "/orders"]]) {
      const { url } = yield* startStore
      const closed = `http://127.0.0.1:${yield* freePort}`
      const error = yield* rejectionOf(
        options(url, closed),
        ({ fetch }) => fetch(input)
      )
      assert(types.isNativeError(error))
      assert.include(error.message, message)
      assert.include(error.stack, error.message)
      deepStrictEqual(structuredClone(error).message, error.message)
      deepStrictEqual((yield* posted(error)).message, error.message)
    }
  )

  test.live("that is the same for getToken and fetch if a variable is missing", function*() {
    const given = { STORE_API_CLIENT_ID: "demo-client", STORE_API_URL: "https://api.example" }
    for (
      const call of [
        ({ getToken }: PromiseStoreAuth.PromiseStoreAuth) => getToken(),
        ({ status }: PromiseStoreAuth.PromiseStoreAuth) => status(),
        ({ fetch }: PromiseStoreAuth.PromiseStoreAuth) => fetch("/orders")
      ]
    ) {
      const error = yield* withVariables(given)(rejectionOf({}, call))
      assert.propertyVal(error, "_tag", "ConfigError")
      assert.propertyVal(error, "name", "ConfigError")
      const text = String(error)
      for (const name of ["STORE_API_AUTH_URL", "STORE_API_CLIENT_SECRET"]) {
        assert.include(text, name)
      }
      assert.notInclude(text, "STORE_API_CLIENT_ID")
      assert.match(text, /^ConfigError: Cannot read the options .* pass the options instead$/s)
    }
  })

  test.live("that is the error of the store itself", function*() {
    const { url } = yield* startStore
    for (const failure of [unusable, named("OwnError")]) {
      for (
        const store of [
          failingStore(failure),
          Layer.effect(TokenStore.TokenStore, Effect.die(failure))
        ]
      ) {
        assert.strictEqual(
          yield* rejectionOf({ ...at(url), store }, ({ getToken }) => getToken()),
          failure
        )
      }
    }
  })

  test.live("that has the tag of a value that is not an Error", function*() {
    const { url } = yield* startStore
    const store = failingStore({ _tag: "Unavailable" })
    const error = yield* rejectionOf({ ...at(url), store }, ({ getToken }) => getToken())
    assert.propertyVal(error, "_tag", "Unavailable")
  })
})
