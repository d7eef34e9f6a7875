/** Clients that take a `fetch` function, as docs/guides/without-effect.md shows them. */
import { assert, describe, it } from "@effect/vitest"
import { deepStrictEqual } from "@effect/vitest/utils"
import { AccessTokenError } from "@store-api/core"
import { PromiseStoreAuth } from "@store-api/platform-node"
import { at, freePort, startStore } from "@store-api/testing/loopback"
import axios, { type AxiosError } from "axios"
import { Effect } from "effect"
import ky from "ky"
import createClient from "openapi-fetch"

interface Paths {
  "/orders": {
    get: { responses: { 200: { content: { "application/json": unknown } } } }
  }
}

const clients: Readonly<
  Record<string, (store: PromiseStoreAuth.PromiseStoreAuth, url: string) => Promise<unknown>>
> = {
  ky: (store, prefixUrl) =>
    ky.create({ prefixUrl, fetch: store.fetch, retry: 0 }).get("orders").json(),
  "openapi-fetch": async (store, baseUrl) => {
    const client = createClient<Paths>({ baseUrl, fetch: store.fetch })
    const { data } = await client.GET("/orders")
    return data
  },
  axios: async (store, baseURL) => {
    const client = axios.create({ baseURL, adapter: "fetch", env: { fetch: store.fetch } })
    return (await client.get<unknown>("/orders")).data
  }
}

const made = (options: PromiseStoreAuth.Options) =>
  Effect.acquireRelease(
    Effect.sync(() => PromiseStoreAuth.make(options)),
    ({ dispose }) => Effect.promise(dispose)
  )

const names = Object.keys(clients)

describe("a client with store.fetch", () => {
  it.scopedLive.each(names)("sends the token: %s", (name) =>
    Effect.gen(function*() {
      const { url } = yield* startStore
      const store = yield* made({ ...at(url), http: { proxy: "none" } })
      deepStrictEqual(yield* Effect.promise(async () => clients[name]?.(store, url)), {
        authorization: "Bearer an-invented-token"
      })
    }))

  it.scopedLive.each(names)(
    "rejects with the typed error, axios in its cause: %s",
    (name) =>
      Effect.gen(function*() {
        const { url } = yield* startStore
        const closed = `http://127.0.0.1:${yield* freePort}`
        const store = yield* made({
          ...at(url),
          authUrl: closed,
          endpoint: { deadline: "100 millis" },
          http: { proxy: "none" }
        })
        const error: unknown = yield* Effect.promise(async () =>
          clients[name]?.(store, url).then(
            () => assert.fail("it resolved"),
            (error: unknown) => error
          )
        )
        const typed = name === "axios" ? (error as AxiosError).cause : error
        assert.isTrue(AccessTokenError.isTransient(typed), String(error))
      })
  )

  it.scopedLive("axios rejects with the typed error itself through the interceptor", () =>
    Effect.gen(function*() {
      const { url } = yield* startStore
      const store = yield* made({ ...at(url), http: { proxy: "none" } })
      const client = axios.create({ adapter: "fetch", env: { fetch: store.fetch } })
      client.interceptors.response.use(
        undefined,
        (error: AxiosError) => Promise.reject(error.cause ?? error)
      )
      const error = yield* Effect.promise(() =>
        client.get("https://elsewhere.example").catch((error: unknown) => error)
      )
      assert.instanceOf(error, AccessTokenError.UntrustedOriginError)
    }))

  it.scopedLive("ky needs prefixUrl for a relative URL", () =>
    Effect.gen(function*() {
      const { url } = yield* startStore
      const store = yield* made({ ...at(url), http: { proxy: "none" } })
      const error = yield* Effect.flip(
        Effect.tryPromise(() => ky.create({ fetch: store.fetch }).get("orders").json())
      )
      assert.include(String(error.cause ?? error.error), "URL")
    }))
})
