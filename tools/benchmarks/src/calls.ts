/** One cached call as a promise: `Effect.runPromise(get)`, and each other library in its own form. */
import { AccessTokenProvider, TokenSource } from "@store-api/core"
import { Effect, Runtime } from "effect"
import { alternate, type Candidate, plainly, type Run, type Timed, timed, token } from "./harness.js"
import { aheadOf, withTokenServer } from "./tokenServer.js"

export const ours = "Effect.runPromise(provider.get)"
const baseline = "Effect.runPromise(Effect.succeed(x))"

const hour = 3600

/** Calls a function that returns a promise, one call after the other. */
const awaiting = (name: string, call: () => Promise<unknown>): Candidate => ({
  name,
  run: async (times) => {
    const start = performance.now()
    for (let i = 0; i < times; i++) await call()
    return performance.now() - start
  }
})

type Awaited = (name: string, effect: Effect.Effect<unknown, unknown>) => Candidate

const plainlyAwaited: Awaited = (name, effect) => awaiting(name, () => Effect.runPromise(effect))

/** Uses the runtime of the calling fiber, so that each promise is within its span, as in a request handler. */
const awaitedWithin = (run: Run): Awaited => (name, effect) => ({
  name,
  run: (times) =>
    run(Effect.gen(function*() {
      const call = Runtime.runPromise(yield* Effect.runtime())
      // Fails without a span.
      yield* Effect.promise(() => call(Effect.currentSpan))
      return yield* Effect.promise(() => awaiting(name, () => call(effect)).run(times))
    }))
})

const measure = (
  millis: number,
  run: Run,
  awaited: Awaited,
  others: ReadonlyArray<Candidate> = []
): Promise<ReadonlyArray<Timed>> =>
  Effect.gen(function*() {
    const provider = yield* AccessTokenProvider.make()
    const succeed = Effect.succeed(yield* provider.get)
    const rounds = yield* Effect.promise(() =>
      alternate([awaited(baseline, succeed), awaited(ours, provider.get), ...others], millis)
    )
    return timed(rounds, () => baseline)
  }).pipe(
    Effect.provideService(TokenSource.TokenSource, TokenSource.make(() => token(hour * 1000))),
    Effect.scoped,
    run
  )

/** Without the other libraries, which do not know the application's tracer. */
export const measureCallsWithin = (millis: number, run: Run) => measure(millis, run, awaitedWithin(run))

export const measureOwnCalls = (millis: number) => measure(millis, plainly, plainlyAwaited)

export const measureCalls = (millis: number): Promise<ReadonlyArray<Timed>> =>
  withTokenServer({ life: hour, delay: 0 }, async (server) => {
    // Imported here because they load slowly, and not every process needs them.
    const { peers } = await import("./peers.js")
    const others = []
    for (const { keepsNoToken, make, name } of peers) {
      if (keepsNoToken || name === "@store-api/core") continue
      const client = await make({ server, ahead: aheadOf(hour) })
      await client.get()
      others.push({ client, candidate: awaiting(name, client.get) })
    }
    const asked = server.arrivals.length
    const measured = await measure(millis, plainly, plainlyAwaited, others.map(({ candidate }) => candidate))
    if (server.arrivals.length !== asked) throw new Error("A cached call sent a token request.")
    for (const { client } of others) await client.close?.()
    return measured
  })
