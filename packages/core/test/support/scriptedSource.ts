/** Sources whose acquisitions the test completes, and a provider over such a source and a virtual clock. */
import { AccessToken, AccessTokenError, AccessTokenProvider, TokenSource } from "@store-api/core"
import {
  Context,
  DateTime,
  Deferred,
  type Duration,
  Effect,
  Layer,
  type Option,
  Queue,
  Random,
  Redacted,
  Ref
} from "effect"
import * as VirtualClock from "./virtualClock.js"

export type Acquisition = Effect.Effect<AccessToken.AccessToken, AccessTokenError.AccessTokenError>

/** One call of a scripted source. The test ends it with `complete`. */
export interface Call {
  readonly number: number
  readonly replacing: Option.Option<AccessToken.AccessToken>
  readonly complete: (
    effect: Acquisition
  ) => Effect.Effect<void>
}

export interface Script {
  /** The number of acquisitions that started. */
  readonly calls: Effect.Effect<number>
  /** The number of acquisitions that were interrupted. */
  readonly interrupted: Effect.Effect<number>
  /** The next acquisition, in the order in which they started. Waits for one. */
  readonly next: Effect.Effect<Call>
}

export class ScriptedSource extends Context.Tag("test/ScriptedSource")<ScriptedSource, Script>() {}

/** A source whose calls the test completes one by one. */
export const layer: Layer.Layer<ScriptedSource | TokenSource.TokenSource> = Layer.effectContext(
  Effect.gen(function*() {
    const count = yield* Ref.make(0)
    const interrupted = yield* Ref.make(0)
    const open = yield* Queue.unbounded<Call>()
    const source = TokenSource.make((replacing) =>
      Effect.gen(function*() {
        const number = yield* Ref.updateAndGet(count, (n) => n + 1)
        const result = yield* Deferred.make<Acquisition>()
        yield* Queue.offer(open, {
          number,
          replacing,
          complete: (effect) => Effect.asVoid(Deferred.succeed(result, effect))
        })
        return yield* Effect.flatten(Deferred.await(result))
      }).pipe(Effect.onInterrupt(() => Ref.update(interrupted, (n) => n + 1)))
    )
    return Context.make(ScriptedSource, {
      calls: Ref.get(count),
      interrupted: Ref.get(interrupted),
      next: Queue.take(open)
    }).pipe(Context.add(TokenSource.TokenSource, source))
  })
)

/** A token that is acquired now, by the clock in the context. */
export const token = (
  value: string,
  lifetime: Duration.DurationInput = "60 minutes"
): Effect.Effect<AccessToken.AccessToken> =>
  Effect.map(DateTime.now, (acquiredAt) =>
    new AccessToken.AccessToken({
      value: Redacted.make(value),
      acquiredAt,
      expiresAt: DateTime.addDuration(acquiredAt, lifetime)
    }))

/** A source that calls the given function with the number of each call, and counts the calls. */
export const answering = (
  acquire: (
    number: number,
    replacing: Option.Option<AccessToken.AccessToken>
  ) => Acquisition
) =>
  Effect.map(Ref.make(0), (count) => ({
    calls: Ref.get(count),
    layer: TokenSource.layer((replacing) =>
      Effect.flatMap(Ref.updateAndGet(count, (n) => n + 1), (n) => acquire(n, replacing))
    )
  }))

export const valueOf = (token: { readonly value: Redacted.Redacted }) => Redacted.value(token.value)

export const minute = 60_000
export const hour = 60 * minute

/** The error of an endpoint that cannot be reached. */
export const outage = new AccessTokenError.TokenRequestError({ reason: "Transport", attempts: 6 })

/** What `run` passes to a test. */
export interface Tools {
  readonly virtual: VirtualClock.VirtualClock
  readonly provider: AccessTokenProvider.Service
  readonly calls: Effect.Effect<number>
}

/**
 * Runs a test with a provider over a scripted source and a virtual clock. Random numbers are always 0: the renewal of
 * a token of an hour starts when less than 4 minutes are left, and the first cooldown is 750 milliseconds.
 */
export const run = <A, E>(
  script: (number: number, virtual: VirtualClock.VirtualClock) => Acquisition,
  test: (tools: Tools) => Effect.Effect<A, E>,
  options: AccessTokenProvider.Options = {}
) =>
  Effect.gen(function*() {
    const virtual = VirtualClock.make()
    const source = yield* answering((n) => script(n, virtual))
    return yield* Effect.flatMap(
      AccessTokenProvider.AccessTokenProvider,
      (provider) => test({ virtual, provider, calls: source.calls })
    ).pipe(
      Effect.provide(Layer.provide(AccessTokenProvider.layer(options), source.layer)),
      Effect.withClock(virtual.clock),
      Effect.withRandom(Random.fixed([0]))
    )
  })

/** A token with this age and this remaining lifetime, in milliseconds. */
export const aged = (value: string, age: number, remaining: number) =>
  Effect.map(DateTime.now, (now) =>
    new AccessToken.AccessToken({
      value: Redacted.make(value),
      acquiredAt: DateTime.subtract(now, { millis: age }),
      expiresAt: DateTime.add(now, { millis: remaining })
    }))

export { settle } from "./effectLine.js"
