import {
  type AccessToken,
  type AccessTokenError,
  TokenSource,
  TokenStore
} from "@store-api/core"
import { nextWakeUp } from "@store-api/testing/effectMajor"
import { fullToken, member, type MemberOptions, settled } from "@store-api/testing/sharing"
import { type Duration, Effect, Exit, Fiber, Option, Ref, TestClock } from "effect"
import { type Acquisition, outcomeOf, valueOf } from "./scriptedSource.js"

export * from "@store-api/testing/sharing"

/** The distinct token values of concurrent acquisitions. */
export const valuesOf = (
  exits: Exit.Exit<ReadonlyArray<AccessToken.AccessToken>, unknown>
) => [
  ...new Set(Exit.match(exits, {
    onFailure: () => [],
    onSuccess: (tokens) => tokens.map(valueOf)
  }))
]

/** A store that records the key, the entry and the lifetime of every `put`. */
export const watched = Effect.map(
  Effect.all([
    TokenStore.makeMemory,
    Ref.make<
      ReadonlyArray<readonly [key: string, entry: string, lifetime: Duration.DurationInput]>
    >([])
  ]),
  ([store, puts]) => ({
    puts: Ref.get(puts),
    store: TokenStore.TokenStore.of({
      ...store,
      put: (key, entry, lifetime) =>
        Effect.zipRight(
          Ref.update(puts, (all) => [...all, [key, entry, lifetime] as const]),
          store.put(key, entry, lifetime)
        )
    })
  })
)

/** The endpoint of a fleet. Counts the requests, and returns `token-1`, `token-2`, … after `takes` milliseconds. */
export const endpoint = (options: {
  readonly takes?: number
  readonly answer?: (
    number: number,
    acquisition: TokenSource.Acquisition
  ) => Effect.Effect<AccessToken.AccessToken, AccessTokenError.AccessTokenError>
} = {}) =>
  Effect.map(Ref.make(0), (count) => ({
    requests: Ref.get(count),
    source: TokenSource.make((acquisition) =>
      Effect.gen(function*() {
        const number = yield* Ref.updateAndGet(count, (n) => n + 1)
        if (options.takes !== undefined) yield* Effect.sleep(options.takes)
        return yield* options.answer?.(number, acquisition) ?? fullToken(`token-${number}`)
      })
    )
  }))

/** A process of a fleet. */
export interface Member {
  readonly shared: TokenSource.Service
  /** Acquires a token. An API has rejected the given one. */
  readonly get: (rejected?: AccessToken.AccessToken) => Acquisition
  /** Renews the cached token. */
  readonly renew: (cached: AccessToken.AccessToken) => Acquisition
  /** Replaces a token that has expired. */
  readonly replace: (expired: AccessToken.AccessToken) => Acquisition
}

/** A fleet over one endpoint and one store. `start` starts a process, which may reach the store in its own way. */
export const fleet = (options: Parameters<typeof endpoint>[0] = {}) =>
  Effect.map(
    Effect.all([endpoint(options), watched]),
    ([{ requests, source }, { puts, store }]) => ({
      requests,
      source,
      puts,
      store,
      start: ({ store: own = store, ...options }: MemberOptions & {
        readonly store?: TokenStore.Service
      } = {}) =>
        Effect.map(member(source, own, options), (shared): Member => ({
          shared,
          get: (rejected) =>
            shared.acquire(
              rejected === undefined
                ? TokenSource.missing
                : { reason: "Rejected", replacing: Option.some(rejected) }
            ),
          renew: (cached) =>
            shared.acquire({ reason: "Renewal", replacing: Option.some(cached) }),
          replace: (expired) =>
            shared.acquire({ reason: "Expired", replacing: Option.some(expired) })
        }))
    })
  )

/** Runs calls at once by virtual time. Returns their distinct outcomes, and how long they took, in milliseconds. */
export const timed = (...calls: ReadonlyArray<Acquisition>) =>
  Effect.gen(function*() {
    const all = Effect.forEach(calls, outcomeOf, { concurrency: "unbounded" })
    const { exit, took } = yield* drive(yield* Effect.fork(all))
    return [[...new Set(yield* exit)].sort().join(), took] as const
  })

/**
 * Advances virtual time from one wake-up to the next until the fiber ends. Returns its exit and the time that passed,
 * in milliseconds.
 */
export const drive = <A, E>(fiber: Fiber.Fiber<A, E>) =>
  Effect.gen(function*() {
    const started = yield* TestClock.currentTimeMillis
    while (Option.isNone(yield* Fiber.poll(fiber))) {
      yield* settled
      const next = yield* nextWakeUp
      if (Option.isNone(yield* Fiber.poll(fiber)) && Number.isFinite(next)) {
        yield* TestClock.setTime(next)
      }
    }
    return {
      exit: yield* Fiber.await(fiber),
      took: (yield* TestClock.currentTimeMillis) - started
    }
  })
