import type * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Metric from "effect/Metric"
import * as Option from "effect/Option"
import * as Ref from "effect/Ref"
import { type Service as Store, TokenStore, TokenStoreError } from "../TokenStore.js"

type Operation = TokenStoreError["operation"]

/** What works and fails together: a store that is full, or a replica, can still be read. */
type Side = "reading" | "writing"

const sideOf = (operation: Operation): Side => operation === "get" ? "reading" : "writing"

/**
 * The store, each of its operations bounded in time, none dying or waiting for what cannot be interrupted. Failures are
 * counted; of an outage the first is warned of. It ends when all that failed in it works again.
 */
export const make = (
  store: Store,
  timeout: Duration.DurationInput,
  failures: Metric.Metric.Counter<number>
): Effect.Effect<Store> =>
  Effect.map(Ref.make<ReadonlyArray<Side>>([]), (failing) => {
    const works = (operation: Operation) =>
      Ref.update(failing, (sides) => sides.filter((side) => side !== sideOf(operation)))

    const fails = ({ operation, reason }: TokenStoreError) =>
      Ref.getAndUpdate(failing, (sides) => [...new Set([...sides, sideOf(operation)])]).pipe(
        Effect.tap((before) =>
          Effect.logWarning("The token store does not work; tokens are asked for without it").pipe(
            Effect.annotateLogs({ operation, reason }),
            Effect.when(() => before.length === 0)
          )
        ),
        Effect.zipRight(Metric.increment(Metric.tagged(failures, "operation", operation)))
      )

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
        Effect.tap(works(operation)),
        Effect.tapError(fails)
      )

    return TokenStore.of({
      get: (key) => bounded("get", () => store.get(key)),
      put: (key, entry, life) => bounded("put", () => store.put(key, entry, life)),
      remove: (key, entry) => bounded("remove", () => store.remove(key, entry)),
      lease: (key, duration) =>
        Effect.map(
          bounded("lease", () => store.lease(key, duration)),
          Option.map(({ extend, release }) => ({
            extend: bounded("extend", () => extend),
            release: bounded("release", () => release)
          }))
        )
    })
  })
