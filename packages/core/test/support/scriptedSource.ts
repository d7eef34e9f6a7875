import { AccessToken, type AccessTokenError, TokenSource } from "@store-api/core"
import { Context, DateTime, Deferred, type Duration, Effect, Layer, type Option, Queue, Redacted, Ref } from "effect"

/** One call of a scripted source. The test ends it with `complete`. */
export interface Call {
  readonly number: number
  readonly replacing: Option.Option<AccessToken.AccessToken>
  readonly complete: (
    effect: Effect.Effect<AccessToken.AccessToken, AccessTokenError.AccessTokenError>
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
        const result = yield* Deferred.make<
          Effect.Effect<AccessToken.AccessToken, AccessTokenError.AccessTokenError>
        >()
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
  ) => Effect.Effect<AccessToken.AccessToken, AccessTokenError.AccessTokenError>
) =>
  Effect.map(Ref.make(0), (count) => ({
    calls: Ref.get(count),
    layer: TokenSource.layer((replacing) =>
      Effect.flatMap(Ref.updateAndGet(count, (n) => n + 1), (n) => acquire(n, replacing))
    )
  }))

export { settle } from "./effectLine.js"
