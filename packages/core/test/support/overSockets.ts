import type { HttpClient } from "@effect/platform"
import { assert, describe, it } from "@effect/vitest"
import { AccessTokenProvider, AuthorizedHttpClient, StoreAuth } from "@store-api/core"
import { Emulator, Fault } from "@store-api/emulator"
import { Context, Duration, Effect, Exit, Fiber, Layer, Schedule, Scope } from "effect"

const storeAuth = (emulator: Emulator.Service) =>
  StoreAuth.layer({
    authUrl: emulator.url,
    apiUrl: emulator.url,
    clientId: Emulator.demoClient.clientId,
    clientSecret: Emulator.demoClient.clientSecret
  })

/** Waits for what another process or the kernel does. Fails after five seconds. */
const eventually = <A>(look: Effect.Effect<A>, holds: (value: A) => boolean) =>
  look.pipe(
    Effect.filterOrFail(holds, (value) => `still ${String(value)}`),
    Effect.retry(Schedule.intersect(Schedule.spaced("10 millis"), Schedule.recurs(500)))
  )

const tokenRequests = (emulator: Emulator.Service) =>
  Effect.map(emulator.requests, (requests) => requests.filter(({ kind }) => kind === "token").length)

/** Declares the tests of one HTTP client. */
export const overSockets = (name: string, client: Layer.Layer<HttpClient.HttpClient>): void => {
  describe(`AccessTokenProvider over real sockets, ${name}`, () => {
    it.scopedLive("its scope closed in mid-flight: waiters get Closed, no open socket, no fiber left", () =>
      Effect.gen(function*() {
        const emulator = yield* Emulator.make()
        // The HTTP client outlives the provider, so that its end is not what closes the socket.
        const http = yield* Layer.build(client)
        const scope = yield* Scope.make()
        const context = yield* Layer.buildWithScope(storeAuth(emulator), scope).pipe(Effect.provide(http))
        const { get } = Context.get(context, AccessTokenProvider.AccessTokenProvider)
        yield* emulator.fail(Fault.hang())
        const before = new Set(yield* Fiber.roots)
        const newRoots = Effect.map(Fiber.roots, (roots) => [...roots].filter((fiber) => !before.has(fiber)).length)
        const waiter = yield* Effect.fork(Effect.flip(get))
        yield* eventually(tokenRequests(emulator), (count) => count === 1)
        assert.isAbove(yield* emulator.connections, 0, "the count sees the socket in flight")
        assert.isAbove(yield* newRoots, 0, "the count sees the fiber in flight")
        yield* Scope.close(scope, Exit.void)
        const error = yield* Fiber.join(waiter)
        assert.strictEqual(error._tag === "TokenRequestError" && error.reason, "Closed")
        yield* eventually(emulator.connections, (count) => count === 0)
        yield* eventually(newRoots, (count) => count === 0)
      }))

    it.scopedLive("an API that answers 401 to every token, under load: one new token, then the 401s are the callers'", () =>
      Effect.gen(function*() {
        const emulator = yield* Emulator.make()
        yield* emulator.fail(Fault.status(401, { on: "api", times: 10_000 }))
        const context = yield* Layer.build(Layer.provide(storeAuth(emulator), client))
        const authorized = Context.get(context, AuthorizedHttpClient.AuthorizedHttpClient)
        const [elapsed, responses] = yield* Effect.timed(
          Effect.all(Array.from({ length: 200 }, () => authorized.get("/orders")), { concurrency: 50 })
        )
        assert.isTrue(responses.every(({ status }) => status === 401))
        const first = yield* tokenRequests(emulator)
        assert.isAtLeast(first, 2)
        // The first token, one for the first rejection, and at most one a second.
        assert.isAtMost(first, 2 + Math.floor(Duration.toSeconds(elapsed)), "bounded by the interval")
        yield* emulator.clearFaults
        assert.strictEqual((yield* authorized.get("/orders")).status, 200, "it recovers as soon as the API does")
        assert.strictEqual(yield* tokenRequests(emulator), first)
      }))

    it.scopedLive("all tokens revoked with 200 requests in flight: no failed call, one token request", () =>
      Effect.gen(function*() {
        const emulator = yield* Emulator.make()
        const context = yield* Layer.build(Layer.provide(storeAuth(emulator), client))
        const authorized = Context.get(context, AuthorizedHttpClient.AuthorizedHttpClient)
        yield* authorized.get("/orders")
        yield* emulator.revoke()
        yield* emulator.clearRequests
        const responses = yield* Effect.all(Array.from({ length: 200 }, () => authorized.get("/orders")), {
          concurrency: "unbounded"
        })
        assert.isTrue(responses.every(({ status }) => status === 200))
        assert.strictEqual(yield* tokenRequests(emulator), 1)
      }))
  })
}
