import type * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Metric from "effect/Metric"
import * as Option from "effect/Option"
import * as Ref from "effect/Ref"
import { type Service as Store, TokenStore, TokenStoreError } from "../TokenStore.js"

type Operation = TokenStoreError["operation"]

/** A store, and what uses it. */
export interface ReliableStore {
  readonly store: Store
  /** An outage is over with the first acquisition for which the store did all of its part. */
  readonly acquisition: <A, E, R>(acquisition: Effect.Effect<A, E, R>) => Effect.Effect<A, E, R>
}

/**
 * The store, each of its operations bounded in time, none dying or waiting for what cannot be interrupted. Failures are
 * counted; of an outage the first is warned of.
 */
export const make = (
  store: Store,
  timeout: Duration.DurationInput,
  failures: Metric.Metric.Counter<number>
): Effect.Effect<ReliableStore> =>
  Effect.map(Ref.make({ isOut: false }), (state) => {
    // Each failure sets a new object. An acquisition that ends with the object of its beginning had no failure.
    const fails = ({ operation, reason }: TokenStoreError) =>
      Ref.getAndSet(state, { isOut: true }).pipe(
        Effect.tap(({ isOut }) =>
          Effect.logWarning("The token store does not work; tokens are asked for without it").pipe(
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

    const bounded = <A>(
      operation: Operation,
      effect: () => Effect.Effect<A, TokenStoreError>
    ): Effect.Effect<A, TokenStoreError> =>
      Effect.suspend(effect).pipe(
        Effect.catchAllDefect(() => new TokenStoreError({ operation, reason: "a defect" })),
        Effect.disconnect,
        // Also in a finalizer, where a lease is given back.
        Effect.interruptible,
        Effect.timeoutFail({
          duration: timeout,
          onTimeout: () => new TokenStoreError({ operation, reason: "no answer in time" })
        }),
        Effect.tapError(fails)
      )

    const reliable = TokenStore.of({
      get: (key) => bounded("get", () => store.get(key)),
      put: (key, entry, life) => bounded("put", () => store.put(key, entry, life)),
      remove: (key, entry) => bounded("remove", () => store.remove(key, entry)),
      lease: (key, duration) =>
        Effect.map(
          // A lease that comes too late ends by its own time.
          bounded("lease", () => store.lease(key, duration)),
          Option.map(({ extend, release }) => ({
            extend: bounded("extend", () => extend),
            release: bounded("release", () => release)
          }))
        )
    })
    return { store: reliable, acquisition }
  })
