import * as Cause from "effect/Cause"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Metric from "effect/Metric"
import * as Option from "effect/Option"
import * as Ref from "effect/Ref"
import { type Service as Store, type Stored, TokenStoreError } from "../../TokenStore.js"
import { bounded } from "../bounded.js"

type Operation = TokenStoreError["operation"]

type Run<A> = () => Effect.Effect<A, TokenStoreError>

/**
 * Limits the duration of each operation of a store, even of one that cannot be interrupted. An operation that throws or
 * interrupts itself fails with a `TokenStoreError`. Counts every failure, and logs one warning per outage. An outage is
 * over when an acquisition succeeds, and no operation has failed during it: `noteRecovery` looks at both ends of the
 * scope of one.
 */
export const make = (
  store: Store,
  timeout: Duration.DurationInput,
  failures: Metric.Metric.Counter<number>
) =>
  Effect.map(Ref.make(works), (state) => {
    // Each failure sets a new object. If the object is the same before and after an acquisition, no operation failed.
    const noteFailure = ({ operation, reason }: TokenStoreError) =>
      Effect.gen(function*() {
        yield* Metric.increment(Metric.tagged(failures, "operation", operation))
        if ((yield* Ref.getAndSet(state, { isOut: true })).isOut) return
        yield* Effect.logWarning("The token store failed; tokens are acquired without it").pipe(
          Effect.annotateLogs({ operation, reason })
        )
      })

    const reliably = <A>(operation: Operation, run: Run<A>) =>
      Effect.tapError(limit(store, operation, run, timeout), noteFailure)

    const noteRecovery = Effect.acquireRelease(Ref.get(state), (before, exit) =>
      Effect.whenEffect(
        Effect.logInfo("The token store works again"),
        Ref.modify(state, (now) => {
          const isOver = Exit.isSuccess(exit) && now.isOut && now === before
          return isOver ? [true, works] : [false, now]
        })
      ))

    return { store: withEach(store, reliably), noteRecovery }
  })

const works = { isOut: false }

/** Fails if a store that is written in JavaScript returns something else. */
const readRemaining = ({ entry, remaining }: Stored): Stored => ({
  entry,
  remaining: Duration.toMillis(remaining)
})

/** Passes each operation of a store, and of its leases, through a function. */
const withEach = (
  store: Store,
  through: <A>(operation: Operation, run: Run<A>) => ReturnType<Run<A>>
): Store => ({
  get: (key) => through("get", () => Effect.map(store.get(key), Option.map(readRemaining))),
  put: (key, entry, life) => through("put", () => store.put(key, entry, life)),
  remove: (key, entry) => through("remove", () => store.remove(key, entry)),
  lease: (key, duration) =>
    Effect.map(
      // A lease that is granted after the timeout is not released. It expires after its duration.
      through("lease", () => store.lease(key, duration)),
      Option.map(({ extend, release }) => ({
        extend: through("extend", () => extend),
        release: through("release", () => release)
      }))
    )
})

const limit = <A>(
  { lastFailure = Effect.succeedNone }: Store,
  operation: Operation,
  run: Run<A>,
  timeout: Duration.DurationInput
): ReturnType<Run<A>> => {
  const fail = (reason: string) => Effect.fail(new TokenStoreError({ operation, reason }))
  const onTimeout = Effect.flatMap(
    lastFailure,
    (reason) => fail(Option.getOrElse(reason, () => "no response in time"))
  )
  return Effect.suspend(run).pipe(
    bounded(timeout, onTimeout),
    // An interruption of the caller does not get here, so any other cause is a fault of the store.
    Effect.catchAllCause((cause) =>
      Option.match(Cause.failureOption(cause), {
        onNone: () => fail(Cause.isInterruptedOnly(cause) ? "an interruption" : "a defect"),
        onSome: Effect.fail
      })
    )
  )
}
