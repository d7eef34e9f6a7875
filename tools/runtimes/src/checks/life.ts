/** A token is acquired, cached, renewed and revoked. */
import { AccessTokenProvider, AuthorizedHttpClient } from "@store-api/core"
import { Array as Arr, Context, Duration, Effect, Exit, Fiber, Option, Redacted, Scope } from "effect"
import { type Check, equal, errorOf, holds, named, options, storeAuth } from "../Check.js"
import { Laboratory, type Setup } from "../Laboratory.js"

const prepared = (setup?: Partial<Setup>) =>
  Effect.gen(function*() {
    const emulator = yield* Effect.flatMap(Laboratory, (laboratory) => laboratory.emulator(setup))
    const context = yield* storeAuth(options(emulator))
    return {
      emulator,
      provider: Context.get(context, AccessTokenProvider.AccessTokenProvider),
      client: Context.get(context, AuthorizedHttpClient.AuthorizedHttpClient)
    }
  })

/** Reads a response, as an application does. */
const statusOf = (client: AuthorizedHttpClient.Service) =>
  Effect.flatMap(client.get("/orders"), (response) => Effect.as(response.text, response.status))

export const checks: ReadonlyArray<Check> = [
  {
    name: "acquires a token with its lifetime",
    run: Effect.gen(function*() {
      const { emulator, provider } = yield* prepared()
      const token = yield* provider.get
      const { tokens } = yield* emulator.view
      yield* equal("the token", [Redacted.value(token.value)], tokens)
      yield* equal("its lifetime", token.expiresAt.epochMillis - token.acquiredAt.epochMillis, 3_600_000)
    })
  },
  {
    name: "the body is sent raw, with the exact content type",
    run: Effect.gen(function*() {
      const { emulator, provider } = yield* prepared()
      yield* provider.get
      const { clientId, clientSecret } = emulator
      yield* holds("the secret holds what a form would encode", /\+.*=.*%/.test(clientSecret))
      const { requests: [request] } = yield* emulator.view
      yield* equal(
        "the body",
        request?.body,
        `grant_type=client_credentials&client_id=${clientId}&client_secret=${clientSecret}`
      )
      yield* equal("the type", request?.contentType, "application/x-www-form-urlencoded")
    })
  },
  {
    name: "a second call uses the cached token: 1 token request",
    run: Effect.gen(function*() {
      const { client, emulator } = yield* prepared()
      yield* equal("the responses", [yield* statusOf(client), yield* statusOf(client)], [200, 200])
      yield* equal("token requests", yield* emulator.tokenRequests, 1)
    })
  },
  {
    name: "100 callers at once: 1 token request",
    run: Effect.gen(function*() {
      const { emulator, provider } = yield* prepared()
      const tokens = yield* Effect.all(Arr.makeBy(100, () => provider.get), { concurrency: "unbounded" })
      yield* equal("tokens", [tokens.length, new Set(tokens).size], [100, 1])
      yield* equal("token requests", yield* emulator.tokenRequests, 1)
    })
  },
  {
    name: "a token of 2 s expires, as a typed error, and is renewed",
    run: Effect.gen(function*() {
      const { emulator, provider } = yield* prepared({ tokenLife: "2000" })
      const first = yield* provider.get
      yield* holds("it is held", Option.isSome(yield* provider.current))
      yield* Effect.sleep("2100 millis")
      yield* equal("then", named(yield* errorOf(provider.current)), "TokenExpiredError, Elapsed")
      const second = yield* provider.get
      yield* holds("another one", Redacted.value(first.value) !== Redacted.value(second.value))
      yield* equal("token requests", yield* emulator.tokenRequests, 2)
    })
  },
  {
    name: "calls during two lifetimes of 2 s: each gets a 200",
    run: Effect.gen(function*() {
      const { client, emulator } = yield* prepared({ tokenLife: "2000" })
      const began = performance.now()
      const calls = yield* Effect.forEach(
        Arr.range(1, 45),
        () => Effect.zipLeft(Effect.timed(statusOf(client)), Effect.sleep("100 millis"))
      )
      yield* equal("the responses", Arr.dedupe(calls.map(([, status]) => status)), [200])
      const { requests } = yield* emulator.view
      const rejected = requests.filter(({ status }) => status === 401).length
      // Callers wait when less than 5 % of the lifetime is left. A slower call can meet the end of its token.
      const slowest = Math.max(...calls.map(([duration]) => Duration.toMillis(duration)))
      yield* holds(`${rejected} × 401 on the wire, the slowest call took ${slowest} ms`, rejected === 0 || slowest > 50)
      const asked = yield* emulator.tokenRequests
      // Renewed when at most a quarter of the lifetime is left.
      const atMost = Math.ceil((performance.now() - began) / 1500) + 1
      yield* holds(`${asked} token requests, 3 to ${atMost}`, asked >= 3 && asked <= atMost)
    })
  },
  {
    name: "a revoked token is replaced: 401, then 200, and 1 token request",
    run: Effect.gen(function*() {
      const { client, emulator } = yield* prepared()
      yield* statusOf(client)
      yield* emulator.revoke
      yield* equal("the response", yield* statusOf(client), 200)
      const { requests } = yield* emulator.view
      yield* equal(
        "on the wire",
        requests.map(({ kind, status }) => `${kind} ${String(status)}`),
        ["token 200", "api 200", "api 401", "token 200", "api 200"]
      )
    })
  },
  {
    name: "100 calls in flight with a revoked token: none fails, and 1 token request",
    run: Effect.gen(function*() {
      const { client, emulator } = yield* prepared()
      yield* statusOf(client)
      yield* emulator.revoke
      const statuses = yield* Effect.all(Arr.makeBy(100, () => statusOf(client)), { concurrency: 20 })
      yield* equal("the responses", Arr.dedupe(statuses), [200])
      yield* equal("token requests", yield* emulator.tokenRequests, 2)
    })
  },
  {
    name: "an interrupted caller does not affect the others",
    run: Effect.gen(function*() {
      const { emulator, provider } = yield* prepared()
      yield* emulator.fail("token/slow-answer")
      const first = yield* Effect.fork(provider.get)
      const second = yield* Effect.fork(provider.get)
      yield* Effect.sleep("50 millis")
      yield* Fiber.interrupt(first)
      yield* Fiber.join(second)
      yield* equal("token requests", yield* emulator.tokenRequests, 1)
    })
  },
  {
    name: "after the end of the layer: Closed",
    run: Effect.gen(function*() {
      const emulator = yield* Effect.flatMap(Laboratory, (laboratory) => laboratory.emulator())
      const context = yield* Effect.scoped(storeAuth(options(emulator)))
      const { get } = Context.get(context, AccessTokenProvider.AccessTokenProvider)
      yield* equal("the error", named(yield* errorOf(get)), "TokenRequestError, Closed")
    })
  },
  {
    name: "acquires a token from a response that is compressed although the request did not ask for it",
    run: Effect.gen(function*() {
      const { emulator, provider } = yield* prepared()
      yield* emulator.fail("token/unasked-gzip")
      yield* provider.get
      yield* equal("token requests", yield* emulator.tokenRequests, 1)
    })
  },
  {
    name: "closing the provider during an acquisition ends waiting callers with Closed",
    run: Effect.gen(function*() {
      const emulator = yield* Effect.flatMap(Laboratory, (laboratory) => laboratory.emulator())
      yield* emulator.fail("token/silence")
      const scope = yield* Scope.make()
      const context = yield* Scope.extend(storeAuth(options(emulator)), scope)
      const waiter = yield* Effect.fork(
        errorOf(Context.get(context, AccessTokenProvider.AccessTokenProvider).get)
      )
      yield* Effect.sleep("100 millis")
      yield* Scope.close(scope, Exit.void)
      yield* equal("the error", named(yield* Fiber.join(waiter)), "TokenRequestError, Closed")
    })
  }
]
