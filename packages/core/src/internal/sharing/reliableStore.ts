import type * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Metric from "effect/Metric"
import * as Option from "effect/Option"
import * as Ref from "effect/Ref"
import { type Service as Store, TokenStore, TokenStoreError } from "../../TokenStore.js"
import { disconnected } from "../disconnected.js"

type Operation = TokenStoreError["operation"]

/** A store with a time limit for each operation, and a function that notices the end of an outage. */
export interface ReliableStore {
  readonly store: Store
  /** Runs an acquisition. If it succeeds and no operation of the store has failed during it, an outage is over. */
  readonly acquisition: <A, E, R>(acquisition: Effect.Effect<A, E, R>) => Effect.Effect<A, E, R>
}

/**
 * Limits the duration of each operation of a store, even of one that cannot be interrupted. Defects become a
 * `TokenStoreError`. Counts every failure, and logs one warning per outage.
 */
export const make = (
  store: Store,
  timeout: Duration.DurationInput,
  failures: Metric.Metric.Counter<number>
): Effect.Effect<ReliableStore> =>
  Effect.map(Ref.make({ isOut: false }), (state) => {
    // Each failure sets a new object. If the object is the same before and after an acquisition, no operation failed.
    const recordFailure = ({ operation, reason }: TokenStoreError) =>
      Ref.getAndSet(state, { isOut: true }).pipe(
        Effect.tap(({ isOut }) =>
          Effect.logWarning("The token store failed; tokens are acquired without it").pipe(
            Effect.annotateLogs({ operation, reason }),
            Effect.unless(() => isOut)
          )
        ),
        Effect.zipRight(Metric.increment(Metric.tagged(failures, "operation", operation)))
      )

    const acquisition: ReliableStore["acquisition"] = (acquisition) =>
      Effect.flatMap(Ref.get(state), (before) =>
        Effect.zipLeft(
          acquisition,
          Effect.whenEffect(
            Effect.logInfo("The token store works again"),
            Ref.modify(state, (now) => now.isOut && now === before ? [true, { isOut: false }] : [false, now])
          )
        ))

    const limited = <A>(
      operation: Operation,
      effect: () => Effect.Effect<A, TokenStoreError>
    ): Effect.Effect<A, TokenStoreError> =>
      Effect.suspend(effect).pipe(
        Effect.catchAllDefect(() => new TokenStoreError({ operation, reason: "a defect" })),
        disconnected,
        // A lease is released in a finalizer, which is uninterruptible.
        Effect.interruptible,
        Effect.timeoutFail({
          duration: timeout,
          onTimeout: () => new TokenStoreError({ operation, reason: "no response in time" })
        }),
        Effect.tapError(recordFailure)
      )

    const reliable = TokenStore.of({
      get: (key) => limited("get", () => store.get(key)),
      put: (key, entry, life) => limited("put", () => store.put(key, entry, life)),
      remove: (key, entry) => limited("remove", () => store.remove(key, entry)),
      lease: (key, duration) =>
        Effect.map(
          // A lease that is granted after the timeout is not released. It expires after its duration.
          limited("lease", () => store.lease(key, duration)),
          Option.map(({ extend, release }) => ({
            extend: limited("extend", () => extend),
            release: limited("release", () => release)
          }))
        )
    })
    return { store: reliable, acquisition }
  })
