/** One cached call as a promise: `Effect.runPromise(get)`, and each other library in its own form. */
import { AccessTokenProvider, TokenSource } from "@store-api/core"
import { Effect, Exit, Runtime, Scope } from "effect"
import {
  alternate,
  awaiting,
  type Candidate,
  nanoseconds,
  plainly,
  ratio,
  type Rounds,
  type Run,
  type Spread
} from "./harness.js"
import { token } from "./sample.js"
import { withTokenServer } from "./tokenServer.js"

export interface Call {
  readonly name: string
  readonly ns: Spread
  /** The ratio to `Effect.runPromise(Effect.succeed(x))`. */
  readonly ratio: Spread
}

export const baseline = "Effect.runPromise(Effect.succeed(x))"
export const ours = "Effect.runPromise(provider.get)"

const hour = 3600

const callsOf = (rounds: Rounds): ReadonlyArray<Call> =>
  Object.keys(rounds).map((name) => ({
    name,
    ns: nanoseconds(rounds, name),
    ratio: ratio(rounds, name, baseline)
  }))

export const measureCalls = (millis: number): Promise<ReadonlyArray<Call>> =>
  withTokenServer({ life: hour, delay: 0, fault: "none" }, async (server) => {
    // Imported here because they load slowly, and not every process needs them.
    const { aheadOf, peers } = await import("./peers/index.js")
    const scope = await Effect.runPromise(Scope.make())
    const provider = await Effect.runPromise(
      AccessTokenProvider.make().pipe(
        Effect.provideService(TokenSource.TokenSource, TokenSource.make(() => token(hour * 1000))),
        Scope.extend(scope)
      )
    )
    const succeed = Effect.succeed(await Effect.runPromise(token(hour * 1000)))
    const cached = peers.filter(({ caches, name }) => caches && name !== "@store-api/core")
    const clients = await Promise.all(
      cached.map(async (peer) => ({ peer, client: await peer.make({ server, ahead: aheadOf(hour) }) }))
    )
    for (const { client } of clients) await client.get()
    const asked = server.arrivals.length
    const rounds = await alternate([
      awaiting(baseline, () => Effect.runPromise(succeed)),
      awaiting(ours, () => Effect.runPromise(provider.get)),
      ...clients.map(({ client, peer }) => awaiting(peer.name, client.get))
    ], millis)
    if (server.arrivals.length !== asked) throw new Error("A cached call sent a token request.")
    for (const { client } of clients) await client.close()
    await Effect.runPromise(Scope.close(scope, Exit.void))
    return callsOf(rounds)
  })

/** Uses the runtime of the calling fiber, so that each promise is within its span, as in a request handler. */
const awaitingWithin = (run: Run) => (name: string, effect: Effect.Effect<unknown, unknown>): Candidate => ({
  name,
  run: (times) =>
    run(Effect.gen(function*() {
      const call = Runtime.runPromise(yield* Effect.runtime())
      // Fails without a span.
      yield* Effect.promise(() => call(Effect.currentSpan))
      return yield* Effect.promise(() => awaiting(name, () => call(effect)).run(times))
    }))
})

/** The two candidates that use the given runtime. The other libraries do not know the application's tracer. */
const measurePair = (
  millis: number,
  run: Run,
  awaited: (name: string, effect: Effect.Effect<unknown, unknown>) => Candidate
): Promise<ReadonlyArray<Call>> =>
  Effect.gen(function*() {
    const provider = yield* AccessTokenProvider.make()
    const succeed = Effect.succeed(yield* provider.get)
    const rounds = yield* Effect.promise(() =>
      alternate([awaited(baseline, succeed), awaited(ours, provider.get)], millis)
    )
    return callsOf(rounds)
  }).pipe(
    Effect.provideService(TokenSource.TokenSource, TokenSource.make(() => token(hour * 1000))),
    Effect.scoped,
    run
  )

export const measureCallsWithin = (millis: number, run: Run): Promise<ReadonlyArray<Call>> =>
  measurePair(millis, run, awaitingWithin(run))

export const measureOwnCalls = (millis: number): Promise<ReadonlyArray<Call>> =>
  measurePair(millis, plainly, (name, effect) => awaiting(name, () => Effect.runPromise(effect)))
