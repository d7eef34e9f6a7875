import * as Cause from "effect/Cause"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Metric from "effect/Metric"
import * as Option from "effect/Option"
import * as Ref from "effect/Ref"
import { type Service as Store, type Stored, TokenStoreError } from "../../TokenStore.js"
import { waitAtMost } from "../waitAtMost.js"

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
    const { lastFailure = Effect.succeedNone } = store

    // Each failure sets a new object. If the object is the same before and after an acquisition, no operation failed.
    const noteFailure = ({ operation, reason }: TokenStoreError) =>
      Effect.gen(function*() {
        yield* Metric.increment(Metric.tagged(failures, "operation", operation))
        if ((yield* Ref.getAndSet(state, { isOut: true })).isOut) return
        yield* Effect.logWarning("The token store failed; tokens are acquired without it")
          .pipe(
            Effect.annotateLogs({ operation, reason })
          )
      })

    const reliably = <A>(
      operation: TokenStoreError["operation"],
      run: () => Effect.Effect<A, TokenStoreError>
    ) => {
      const errorOf = (reason: string) => new TokenStoreError({ operation, reason })
      const onTimeout = Effect.flatMap(
        lastFailure,
        (reason) => Effect.fail(errorOf(Option.getOrElse(reason, () => "no response in time")))
      )
      return Effect.suspend(run).pipe(
        waitAtMost(timeout, onTimeout),
        // An interruption of the caller does not get here, so any other cause is a fault of the store.
        Effect.catchAllCause((cause) => {
          const fault = Cause.isInterruptedOnly(cause) ? "an interruption" : "a defect"
          return Effect.fail(
            Option.getOrElse(Cause.failureOption(cause), () => errorOf(fault))
          )
        }),
        Effect.tapError(noteFailure)
      )
    }

    const reliableStore: Store = {
      get: (key) =>
        reliably("get", () => Effect.map(store.get(key), Option.map(readRemaining))),
      put: (key, entry, life) => reliably("put", () => store.put(key, entry, life)),
      remove: (key, entry) => reliably("remove", () => store.remove(key, entry)),
      lease: (key, duration) =>
        Effect.map(
          // A lease that is granted after the timeout is not released. It expires after its duration.
          reliably("lease", () => store.lease(key, duration)),
          Option.map(({ extend, release }) => ({
            extend: reliably("extend", () => extend),
            release: reliably("release", () => release)
          }))
        )
    }

    const noteRecovery = Effect.acquireRelease(Ref.get(state), (before, exit) =>
      Effect.whenEffect(
        Effect.logInfo("The token store works again"),
        Ref.modify(state, (now) => {
          const isOver = Exit.isSuccess(exit) && now.isOut && now === before
          return isOver ? [true, works] : [false, now]
        })
      ))

    return { store: reliableStore, noteRecovery }
  })

const works = { isOut: false }

/** Fails if a store that is written in JavaScript returns something else. */
const readRemaining = ({ entry, remaining }: Stored): Stored => ({
  entry,
  remaining: Duration.toMillis(remaining)
})
