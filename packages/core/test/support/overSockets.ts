import type { HttpClient } from "@effect/platform"
import { assert, describe, it } from "@effect/vitest"
import { AccessTokenProvider, StoreAuth } from "@store-api/core"
import { Emulator, Fault } from "@store-api/emulator"
import { countingFibers } from "@store-api/testing/effectMajor"
import { until } from "@store-api/testing/network"
import { Context, Effect, Exit, Fiber, Layer, Scope } from "effect"

const storeAuth = (emulator: Emulator.Service) =>
  StoreAuth.layer({
    authUrl: emulator.url,
    apiUrl: emulator.url,
    clientId: Emulator.demoClient.clientId,
    clientSecret: Emulator.demoClient.clientSecret
  })

const tokenRequests = (emulator: Emulator.Service) =>
  Effect.map(
    emulator.requests,
    (requests) => requests.filter(({ kind }) => kind === "token").length
  )

/** Declares the tests for one HTTP client. */
export const overSockets = (
  name: string,
  client: Layer.Layer<HttpClient.HttpClient>
): void => {
  describe(`AccessTokenProvider over real sockets, ${name}`, () => {
    it.scopedLive("closing the scope during an acquisition fails waiting callers without an open socket or fiber", () =>
      Effect.flatMap(
        Emulator.make(),
        (emulator) =>
          countingFibers((fibers) =>
            Effect.gen(function*() {
              // The HTTP client is closed after the provider, so that it is not what closes the socket.
              const http = yield* Layer.build(client)
              const scope = yield* Scope.make()
              const context = yield* Layer.buildWithScope(storeAuth(emulator), scope).pipe(
                Effect.provide(http)
              )
              const { get } = Context.get(context, AccessTokenProvider.AccessTokenProvider)
              yield* emulator.fail(Fault.hang())
              const waiter = yield* Effect.fork(Effect.flip(get))
              yield* until(
                "a request is sent",
                Effect.map(tokenRequests(emulator), (count) => count === 1)
              )
              assert.isAbove(
                yield* emulator.connections,
                0,
                "control: the open socket is counted"
              )
              assert.isAbove(yield* fibers, 0, "control: the running fiber is counted")
              yield* Scope.close(scope, Exit.void)
              const error = yield* Fiber.join(waiter)
              assert.strictEqual(error._tag === "TokenRequestError" && error.reason, "Closed")
              yield* until(
                "no socket is open",
                Effect.map(emulator.connections, (count) => count === 0)
              )
              // `until` would run a fiber of its own.
              const running = yield* Effect.repeat(Effect.delay(fibers, "10 millis"), {
                until: (count) => count === 0,
                times: 10_000
              })
              assert.strictEqual(running, 0)
            })
          )
      ))
  })
}
