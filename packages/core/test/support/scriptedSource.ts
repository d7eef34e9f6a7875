import { AccessToken, type AccessTokenError, TokenSource } from "@store-api/core"
import { Context, DateTime, Deferred, type Duration, Effect, Layer, type Option, Queue, Redacted, Ref } from "effect"

/** What a scripted source was asked: `replacing`, and how the test answers. */
export interface Call {
  readonly number: number
  readonly replacing: Option.Option<AccessToken.AccessToken>
  readonly answer: (
    effect: Effect.Effect<AccessToken.AccessToken, AccessTokenError.AccessTokenError>
  ) => Effect.Effect<void>
}

export interface Script {
  /** How many acquisitions were begun. */
  readonly calls: Effect.Effect<number>
  /** How many of them were interrupted. */
  readonly interrupted: Effect.Effect<number>
  /** The next acquisition that nobody answered yet; waits for one. */
  readonly next: Effect.Effect<Call>
}

export class ScriptedSource extends Context.Tag("test/ScriptedSource")<ScriptedSource, Script>() {}

/** A source that does what the test tells it, call by call. */
export const layer: Layer.Layer<ScriptedSource | TokenSource.TokenSource> = Layer.effectContext(
  Effect.gen(function*() {
    const count = yield* Ref.make(0)
    const interrupted = yield* Ref.make(0)
    const open = yield* Queue.unbounded<Call>()
    const source = TokenSource.make((replacing) =>
      Effect.gen(function*() {
        const number = yield* Ref.updateAndGet(count, (n) => n + 1)
        const answered = yield* Deferred.make<
          Effect.Effect<AccessToken.AccessToken, AccessTokenError.AccessTokenError>
        >()
        yield* Queue.offer(open, {
          number,
          replacing,
          answer: (effect) => Effect.asVoid(Deferred.succeed(answered, effect))
        })
        return yield* Effect.flatten(Deferred.await(answered))
      }).pipe(Effect.onInterrupt(() => Ref.update(interrupted, (n) => n + 1)))
    )
    return Context.make(ScriptedSource, {
      calls: Ref.get(count),
      interrupted: Ref.get(interrupted),
      next: Queue.take(open)
    }).pipe(Context.add(TokenSource.TokenSource, source))
  })
)

/** A token of the clock's now. */
export const token = (
  value: string,
  life: Duration.DurationInput = "60 minutes"
): Effect.Effect<AccessToken.AccessToken> =>
  Effect.map(DateTime.now, (acquiredAt) =>
    new AccessToken.AccessToken({
      value: Redacted.make(value),
      acquiredAt,
      expiresAt: DateTime.addDuration(acquiredAt, life)
    }))

/** Answers at once: each call of the source is answered by the given function of its number. */
export const answering = (
  answer: (
    number: number,
    replacing: Option.Option<AccessToken.AccessToken>
  ) => Effect.Effect<AccessToken.AccessToken, AccessTokenError.AccessTokenError>
) =>
  Effect.map(Ref.make(0), (count) => ({
    calls: Ref.get(count),
    layer: TokenSource.layer((replacing) =>
      Effect.flatMap(Ref.updateAndGet(count, (n) => n + 1), (n) => answer(n, replacing))
    )
  }))

/** Lets the other fibers run until none of them can continue. They run in microtasks, which end before an immediate. */
export const settle: Effect.Effect<void> = Effect.async((resume) => {
  const immediate = setImmediate(() => resume(Effect.void))
  return Effect.sync(() => clearImmediate(immediate))
})
