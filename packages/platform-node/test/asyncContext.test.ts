import { AsyncLocalStorage } from "node:async_hooks"
import { subscribe, unsubscribe } from "node:diagnostics_channel"
import * as Http from "node:http"
import { describe } from "@effect/vitest"
import { deepStrictEqual } from "@effect/vitest/utils"
import type { AccessTokenProvider, AuthorizedHttpClient } from "@store-api/core"
import { NodeStoreAuth, PromiseStoreAuth } from "@store-api/platform-node"
import { at, listen } from "@store-api/testing/loopback"
import { test } from "@store-api/testing/test"
import { Effect } from "effect"

const storage = new AsyncLocalStorage<string>()

/** The path of each API request that undici creates, with the context in which it does so. */
const contexts = Effect.acquireRelease(
  Effect.sync(() => {
    const seen: Array<string> = []
    const listener = (message: unknown) => {
      const { request } = message as { readonly request: { readonly path: string } }
      if (request.path !== "/v1/oauth/accesstoken") {
        seen.push(`${request.path} ${storage.getStore() ?? "none"}`)
      }
    }
    subscribe("undici:request:create", listener)
    return { seen, listener }
  }),
  ({ listener }) => Effect.sync(() => unsubscribe("undici:request:create", listener))
)

/** Issues another token at each request, valid for these seconds, and answers 401 to those that it has revoked. */
const startRevoking = (life: number) =>
  Effect.suspend(() => {
    const state = { issued: 0, oldest: 1 }
    const server = Http.createServer((request, response) => {
      request.resume()
      if (request.url === "/v1/oauth/accesstoken") {
        state.issued++
        const token = { access_token: `token-${state.issued}`, expires_in: life }
        response.end(JSON.stringify({ ...token, token_type: "Bearer" }))
        return
      }
      const number = Number(request.headers.authorization?.split("-")[1])
      response.writeHead(number < state.oldest ? 401 : 200).end("{}")
    })
    const revoke = Effect.sync(() => {
      state.oldest = state.issued + 1
    })
    return Effect.map(listen(server), (server) => ({ ...server, revoke }))
  })

const callers = ["A", "B", "C", "D"]

/** Calls the API for all callers at once, each in its own context. */
const callAll = (call: (path: string) => Promise<unknown>) =>
  Effect.promise(() =>
    Promise.all(callers.map((name) => storage.run(name, () => call(`/${name}`))))
  )

type Call = (path: string) => Promise<unknown>

interface Way {
  readonly call: Call
  readonly close: Effect.Effect<void>
}

const http = { proxy: "none" } as const

const byPromise = (url: string, init?: RequestInit): Way => {
  const store = PromiseStoreAuth.make({ ...at(url), http })
  return {
    call: (path) => store.fetch(path, init).then((response) => response.text()),
    close: Effect.promise(() => store.dispose())
  }
}

const overClient = (services: {
  readonly client: AuthorizedHttpClient.Service
  readonly provider: AccessTokenProvider.Service
}): Way => ({
  call: (path) =>
    Effect.runPromise(Effect.flatMap(services.client.get(path), ({ text }) => text)),
  close: Effect.void
})

const ways = {
  "the promise API": (url: string) => Effect.succeed(byPromise(url)),
  "the promise API, with bodies": (url: string) =>
    Effect.succeed(byPromise(url, { method: "POST", body: "{}" })),
  "the client of Effect": (url: string) =>
    Effect.map(NodeStoreAuth.make({ ...at(url), http }), overClient)
}

const own = callers.map((name) => `/${name} ${name}`)

describe("an API request is sent in the async context of its caller", () => {
  for (const [name, make] of Object.entries(ways)) {
    test.live(`at a cold start, with a warm cache and after an expiry: ${name}`, function*() {
      const server = yield* startRevoking(5)
      const { call, close } = yield* make(server.url)
      const { seen } = yield* contexts
      for (const state of ["cold", "warm", "expired"]) {
        if (state === "expired") yield* Effect.sleep("5100 millis")
        yield* callAll(call)
        deepStrictEqual(seen.splice(0).sort(), own, state)
      }
      yield* close
    })

    test.live(`when it is repeated after a 401: ${name}`, function*() {
      const server = yield* startRevoking(3599)
      const { call, close } = yield* make(server.url)
      const { seen } = yield* contexts
      yield* callAll(call)
      yield* server.revoke
      seen.splice(0)
      yield* callAll(call)
      deepStrictEqual(seen.sort(), [...own, ...own].sort())
      yield* close
    })
  }
})
