import { AccessToken, type AccessTokenError, TokenSource } from "@store-api/core"
import {
  Clock,
  Context,
  DateTime,
  Deferred,
  Duration,
  Effect,
  Layer,
  type Option,
  Queue,
  Redacted,
  Ref,
  TestClock
} from "effect"

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

/** A clock whose wall can be moved without the monotonic one, as an administrator, NTP or a suspend does. */
export interface WallClock {
  readonly clock: Clock.Clock
  readonly jump: (by: Duration.DurationInput, direction?: "forward" | "back") => Effect.Effect<void>
}

export const wallClock: Effect.Effect<WallClock> = Effect.gen(function*() {
  // A real date, so that jumping back a day stays after the epoch.
  yield* TestClock.setTime(Date.UTC(2026, 0, 15))
  const inner = yield* Effect.clock
  let offset = 0
  const clock: Clock.Clock = {
    ...inner,
    [Clock.ClockTypeId]: Clock.ClockTypeId,
    unsafeCurrentTimeMillis: () => inner.unsafeCurrentTimeMillis() + offset,
    unsafeCurrentTimeNanos: () => inner.unsafeCurrentTimeNanos(),
    currentTimeMillis: Effect.sync(() => inner.unsafeCurrentTimeMillis() + offset),
    currentTimeNanos: inner.currentTimeNanos,
    sleep: (duration) => inner.sleep(duration)
  }
  return {
    clock,
    jump: (by, direction = "forward") =>
      Effect.sync(() => {
        offset += (direction === "forward" ? 1 : -1) * Duration.toMillis(by)
      })
  }
})

/** Lets the other fibers run until none of them can go on. */
export const settle: Effect.Effect<void> = Effect.repeatN(Effect.yieldNow(), 20)
