/**
 * The interface of a store that processes share: entries that expire, and leases. `SharedTokenSource` stores encrypted
 * tokens in it. A store never sees a token, a client id or a secret.
 *
 * @since 1.0.0
 */
import * as Context from "effect/Context"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import { constTrue } from "effect/Function"
import * as Layer from "effect/Layer"
import * as Option from "effect/Option"
import * as Ref from "effect/Ref"
import * as Schema from "effect/Schema"
import * as instant from "./internal/instant.js"
import { withMessage } from "./internal/withMessage.js"

/**
 * The operations of a store. Each operation is atomic. A failed operation fails with `TokenStoreError`. It may be slow,
 * because `SharedTokenSource` limits its duration.
 *
 * All time is the store's: it counts the lifetime of an entry and the duration of a lease from the moment at which it
 * stores them, by a clock that all processes share, such as that of the database server. `SharedTokenSource` passes
 * durations in whole milliseconds. With zero or less, an entry or a lease ends at once.
 *
 * Check a store of your own with the rules of `@store-api/core/TokenStoreContract`.
 *
 * @see layerMemory
 *
 * @since 1.0.0
 * @category models
 */
export interface Service {
  /** Returns the entry of that key and what remains of it, or none if there is none or it has expired. */
  readonly get: (key: string) => Effect.Effect<Option.Option<Stored>, TokenStoreError>
  /** Sets or replaces the entry of that key, which expires after `life`. */
  readonly put: (
    key: string,
    entry: string,
    life: Duration.DurationInput
  ) => Effect.Effect<void, TokenStoreError>
  /** Removes the entry if it is still the given one. Returns whether it removed it. */
  readonly remove: (key: string, entry: string) => Effect.Effect<boolean, TokenStoreError>
  /** Takes the lease of that key, if it is free. It expires after `duration`. Leases are separate from entries. */
  readonly lease: (
    key: string,
    duration: Duration.DurationInput
  ) => Effect.Effect<Option.Option<Lease>, TokenStoreError>
  /**
   * For a store that repeats failed attempts by itself: the reason why the last attempt of any operation failed, as in
   * `TokenStoreError`, or none if it succeeded. If a time limit ends an operation, the warning shows this reason. Must
   * return at once.
   */
  readonly lastFailure?: Effect.Effect<Option.Option<string>> | undefined
}

/**
 * An entry and the rest of its lifetime. Because no process has to know when another one stored the entry, their clocks
 * may differ.
 *
 * @see TokenStore
 *
 * @since 1.0.0
 * @category models
 */
export interface Stored {
  /** The text, as it was put. */
  readonly entry: string
  /**
   * How much of the lifetime remains, by the store's own clock, read in the same step as the entry. Zero or less counts
   * as none.
   */
  readonly remaining: Duration.DurationInput
}

/**
 * A lease: the exclusive right to do something for a limited time. A process that has lost its lease does not affect
 * the next holder.
 *
 * @see TokenStore
 *
 * @since 1.0.0
 * @category models
 */
export interface Lease {
  /** Restarts its duration. Returns `false` if the lease is lost or was released. */
  readonly extend: Effect.Effect<boolean, TokenStoreError>
  /** Releases it before it expires. */
  readonly release: Effect.Effect<void, TokenStoreError>
}

/**
 * The tag of the store that `SharedTokenSource` uses.
 *
 * @example
 * ```ts
 * import { TokenStore } from "@store-api/core"
 * import { Effect } from "effect"
 *
 * const isKept = (key: string) =>
 *   Effect.flatMap(TokenStore.TokenStore, (store) => store.get(key)).pipe(Effect.map((entry) => entry._tag === "Some"))
 * ```
 *
 * @since 1.0.0
 * @category tags
 */
export class TokenStore
  extends Context.Tag("@store-api/core/TokenStore")<TokenStore, Service>()
{}

/**
 * A failed operation of a store. Callers of the provider never see this error, because a store that is down counts as a
 * cache miss.
 *
 * @example
 * ```ts
 * import { TokenStore } from "@store-api/core"
 *
 * const error = new TokenStore.TokenStoreError({ operation: "get", reason: "ECONNREFUSED" })
 * ```
 *
 * @since 1.0.0
 * @category errors
 */
export class TokenStoreError
  extends /* @__PURE__ */ withMessage(() =>
    Schema.TaggedError<TokenStoreError>("@store-api/core/TokenStoreError")("TokenStoreError", {
      /** The operation. */
      operation: Schema.Literal("get", "put", "remove", "lease", "extend", "release"),
      /** The cause, such as `ECONNREFUSED` or `no response in time`. It contains no key, entry or address. */
      reason: Schema.String
    })
  )
{
  /** The message. */
  describe(): string {
    return `The token store failed at ${this.operation} (${this.reason}): check that it runs and is reachable.`
  }
}

/**
 * Creates a store in memory, for tests and for several providers in one process.
 *
 * @example
 * ```ts
 * import { TokenStore } from "@store-api/core"
 * import { Effect } from "effect"
 *
 * const store = Effect.tap(TokenStore.makeMemory, (store) => store.put("key", "entry", "60 minutes"))
 * ```
 *
 * @since 1.0.0
 * @category constructors
 */
export const makeMemory: Effect.Effect<Service> = /* @__PURE__ */ Effect.gen(function*() {
  const entries = yield* Ref.make<Memory>(new Map())
  const leases = yield* Ref.make<Memory>(new Map())
  return TokenStore.of({
    get: (key) =>
      Effect.zipWith(
        Ref.get(entries),
        instant.now,
        (all, now) =>
          Option.map(Option.fromNullable(validAt(now, all).get(key)), (valued) => ({
            entry: valued.value,
            remaining: leftOf(valued, now)
          }))
      ),
    put: (key, entry, life) =>
      Effect.asVoid(setIf(entries, { key, value: entry, life }, constTrue)),
    remove: (key, entry) => setIf(entries, { key, value: entry, life: 0 }, is(entry)),
    lease: (key, duration) =>
      Effect.suspend(() => {
        const owner = globalThis.crypto.randomUUID()
        const held = { key, value: owner, life: duration }
        const lease: Lease = {
          extend: setIf(leases, held, is(owner)),
          release: Effect.asVoid(setIf(leases, { ...held, life: 0 }, is(owner)))
        }
        return Effect.whenEffect(Effect.succeed(lease), setIf(leases, held, is(undefined)))
      })
  })
})

/**
 * Provides the store in memory as a layer.
 *
 * @example
 * ```ts
 * import { StoreAuth, TokenStore } from "@store-api/core"
 * import { Layer } from "effect"
 *
 * const StoreAuthLive = StoreAuth.layerSharedConfig().pipe(Layer.provide(TokenStore.layerMemory))
 * ```
 *
 * @since 1.0.0
 * @category layers
 */
export const layerMemory: Layer.Layer<TokenStore> = /* @__PURE__ */ Layer.effect(
  TokenStore,
  makeMemory
)

type Memory = ReadonlyMap<string, Valued>

/** A value, and for how many milliseconds it is valid since it was set. */
interface Valued {
  readonly value: string
  readonly since: instant.Instant
  readonly life: number
}

/** In milliseconds, by the clock that advanced further: the monotonic clock may stop while the machine sleeps. */
const leftOf = ({ life, since }: Valued, now: instant.Instant): number =>
  life - instant.elapsed(since, now)

const validAt = (now: instant.Instant, memory: Memory) =>
  new Map([...memory].filter(([, valued]) => leftOf(valued, now) > 0))

type Expectation = (current: string | undefined) => boolean

const is = (expected: string | undefined): Expectation => (current) => current === expected

/** Sets a value if the current one is as expected. Returns whether it was. A lifetime of zero removes the value. */
const setIf = (
  memory: Ref.Ref<Memory>,
  { key, life, value }: { key: string; value: string; life: Duration.DurationInput },
  isExpected: Expectation
): Effect.Effect<boolean> =>
  Effect.flatMap(instant.now, (since) =>
    Ref.modify(memory, (all): [boolean, Memory] => {
      const valid = validAt(since, all)
      if (!isExpected(valid.get(key)?.value)) return [false, valid]
      return [true, valid.set(key, { value, since, life: Duration.toMillis(life) })]
    }))
