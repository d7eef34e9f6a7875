/** Interrupts callers at every moment of an acquisition by the real `TokenEndpoint`. */
import { HttpClient, HttpClientResponse } from "@effect/platform"
import { assert, it } from "@effect/vitest"
import { AccessTokenProvider, ClientCredentials, TokenEndpoint } from "@store-api/core"
import { asyncProperty } from "@store-api/testing/test"
import { Effect, Exit, FastCheck as fc, Fiber, Layer, Redacted, Ref, Stream } from "effect"
import { valueOf } from "./scriptedSource.js"

const steps = (count: number) => Effect.repeatN(Effect.yieldNow(), count)

const responseBody = new TextEncoder().encode(
  JSON.stringify({ access_token: "shared", token_type: "bearer" })
)

/**
 * The real `TokenEndpoint` over an `HttpClient` that yields many times before the request, before the headers and
 * within the body, so that an interruption can occur between any two of these steps.
 */
const slowEndpoint = Effect.gen(function*() {
  const requests = yield* Ref.make(0)
  const client = HttpClient.make((request) =>
    Effect.gen(function*() {
      yield* steps(5)
      yield* Ref.update(requests, (n) => n + 1)
      yield* steps(5)
      const body = Stream.fromIterable(responseBody).pipe(
        Stream.map((byte) => Uint8Array.of(byte)),
        Stream.rechunk(4),
        Stream.tap(() => steps(1))
      )
      return HttpClientResponse.fromWeb(
        request,
        new Response(yield* Stream.toReadableStreamEffect(body))
      )
    })
  )
  const credentials = ClientCredentials.make({
    clientId: "demo-client",
    clientSecret: Redacted.make("an invented secret")
  })
  return {
    requests: Ref.get(requests),
    layer: AccessTokenProvider.layer().pipe(
      Layer.provide(
        TokenEndpoint.layer({ authUrl: "https://auth.store.example", credentials })
      ),
      Layer.provide(Layer.succeed(HttpClient.HttpClient, client))
    )
  }
})

/** The number of callers, and the number of steps after which each is interrupted, or `null`. */
const scenario = fc.record({
  callers: fc.integer({ min: 2, max: 6 }),
  delays: fc.array(fc.option(fc.integer({ min: 0, max: 120 }), { freq: 2 }), {
    minLength: 6,
    maxLength: 6
  })
})

const interrupting = (callers: number, delays: ReadonlyArray<number | null>) =>
  Effect.gen(function*() {
    const { layer, requests } = yield* slowEndpoint
    yield* Effect.gen(function*() {
      const provider = yield* AccessTokenProvider.AccessTokenProvider
      const fibers = yield* Effect.forEach(
        Array.from({ length: callers }),
        () => Effect.zipLeft(Effect.fork(provider.get), Effect.yieldNow())
      )
      yield* Effect.forEach(
        fibers,
        (fiber, index) => {
          const delay = delays[index]
          return delay === null || delay === undefined
            ? Effect.void
            : Effect.zipRight(steps(delay), Fiber.interrupt(fiber))
        },
        { concurrency: "unbounded" }
      )
      const exits = yield* Effect.forEach(fibers, Fiber.await)
      exits.forEach((exit, index) => {
        const interrupted = delays[index] !== null
        assert.isTrue(
          Exit.isSuccess(exit)
            ? valueOf(exit.value) === "shared"
            : interrupted && Exit.isInterrupted(exit),
          `caller ${index}`
        )
      })
      assert.strictEqual(valueOf(yield* provider.get), "shared")
      assert.strictEqual(yield* requests, 1)
    }).pipe(Effect.provide(layer))
  })

/** Declares the tests: `runs` random cases, and one case for every `every`-th of the 120 moments of an acquisition. */
export const interruption = (
  { every, runs }: { readonly every: number; readonly runs: number }
): void => {
  const moments = Array.from({ length: 120 / every }, (_, index) => index * every)

  it("interrupting any callers at any moment affects no other caller", () =>
    fc.assert(
      asyncProperty(
        scenario,
        ({ callers, delays }) => Effect.runPromise(interrupting(callers, delays))
      ),
      { numRuns: runs }
    ))

  /** The moments at which three callers are interrupted, by the moment of the test. */
  const cases: ReadonlyArray<
    readonly [string, (step: number) => ReadonlyArray<number | null>]
  > = [
    [
      "interrupting the first caller, moment by moment, affects no other caller",
      (step) => [step, null, null]
    ],
    [
      "interrupting a caller that joined, moment by moment, affects no other caller",
      (step) => [null, step, null]
    ]
  ]
  for (const [title, delays] of cases) {
    it.effect(title, () => Effect.forEach(moments, (step) => interrupting(3, delays(step))))
  }

  it.effect(
    "the next caller gets the token of callers that were all interrupted, moment by moment",
    () => Effect.forEach(moments, (step) => interrupting(3, [step, step, step]))
  )
}
