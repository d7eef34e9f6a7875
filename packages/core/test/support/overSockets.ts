import type { HttpClient } from "@effect/platform"
import { assert, describe, it } from "@effect/vitest"
import { AccessTokenProvider, StoreAuth } from "@store-api/core"
import { Emulator, Fault } from "@store-api/emulator"
import { countingFibers } from "@store-api/testing/effectLine"
import { Context, Effect, Exit, Fiber, Layer, Schedule, Scope } from "effect"

const storeAuth = (emulator: Emulator.Service) =>
  StoreAuth.layer({
    authUrl: emulator.url,
    apiUrl: emulator.url,
    clientId: Emulator.demoClient.clientId,
    clientSecret: Emulator.demoClient.clientSecret
  })

/** Polls until the condition holds. Fails after five seconds. */
const eventually = <A>(read: Effect.Effect<A>, holds: (value: A) => boolean) =>
  read.pipe(
    Effect.filterOrFail(holds, (value) => `still ${String(value)}`),
    Effect.retry({ schedule: Schedule.spaced("10 millis"), times: 500 })
  )

const tokenRequests = (emulator: Emulator.Service) =>
  Effect.map(emulator.requests, (requests) => requests.filter(({ kind }) => kind === "token").length)

/** Declares the tests for one HTTP client. */
export const overSockets = (name: string, client: Layer.Layer<HttpClient.HttpClient>): void => {
  describe(`AccessTokenProvider over real sockets, ${name}`, () => {
    it.scopedLive("closing the scope during an acquisition fails waiting callers with Closed, and leaves no open socket and no fiber", () =>
      Effect.flatMap(Emulator.make(), (emulator) =>
        countingFibers((fibers) =>
          Effect.gen(function*() {
            // The HTTP client is closed after the provider, so that it is not what closes the socket.
            const http = yield* Layer.build(client)
            const scope = yield* Scope.make()
            const context = yield* Layer.buildWithScope(storeAuth(emulator), scope).pipe(Effect.provide(http))
            const { get } = Context.get(context, AccessTokenProvider.AccessTokenProvider)
            yield* emulator.fail(Fault.hang())
            const waiter = yield* Effect.fork(Effect.flip(get))
            yield* eventually(tokenRequests(emulator), (count) => count === 1)
            assert.isAbove(yield* emulator.connections, 0, "control: the open socket is counted")
            assert.isAbove(yield* fibers, 0, "control: the running fiber is counted")
            yield* Scope.close(scope, Exit.void)
            const error = yield* Fiber.join(waiter)
            assert.strictEqual(error._tag === "TokenRequestError" && error.reason, "Closed")
            yield* eventually(emulator.connections, (count) => count === 0)
            yield* eventually(fibers, (count) => count === 0)
          })
        )))
  })
}
