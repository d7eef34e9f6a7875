/**
 * The port of a store that processes share: short entries that expire, and leases. `SharedTokenSource` keeps sealed
 * tokens in it; a store never sees a token, a client id or a secret.
 *
 * @since 0.1.0
 */
import * as Context from "effect/Context"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Option from "effect/Option"
import * as Ref from "effect/Ref"
import * as Schema from "effect/Schema"
import { monotonicMillis } from "./internal/monotonicMillis.js"

/**
 * What a store does. Each operation is one step: nobody sees a half of it. An operation that cannot be done fails with
 * `TokenStoreError`; it may be slow, since `SharedTokenSource` bounds it.
 *
 * @see layerMemory
 *
 * @since 0.1.0
 * @category models
 */
export interface Service {
  /** The entry of that key, unless there is none or its life is over. */
  readonly get: (key: string) => Effect.Effect<Option.Option<string>, TokenStoreError>
  /** Sets the entry of that key, whatever was there. The store forgets it when `life` is over. */
  readonly put: (key: string, entry: string, life: Duration.DurationInput) => Effect.Effect<void, TokenStoreError>
  /** Takes the entry out if it is still this one; tells whether it was. */
  readonly remove: (key: string, entry: string) => Effect.Effect<boolean, TokenStoreError>
  /** The lease of that key, unless somebody holds it. It ends by itself after `duration`. Leases and entries do not mix. */
  readonly lease: (
    key: string,
    duration: Duration.DurationInput
  ) => Effect.Effect<Option.Option<Lease>, TokenStoreError>
}

/**
 * A lease held. Whoever holds it alone does a piece of work; that it was lost is no error, and what others then hold is not
 * touched.
 *
 * @see TokenStore
 *
 * @since 0.1.0
 * @category models
 */
export interface Lease {
  /** Lets it begin anew, with the whole duration. False when it is lost. */
  readonly extend: Effect.Effect<boolean, TokenStoreError>
  /** Gives it back before its end. */
  readonly release: Effect.Effect<void, TokenStoreError>
}

/**
 * The store as a service: what `SharedTokenSource` asks.
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
 * @since 0.1.0
 * @category tags
 */
export class TokenStore extends Context.Tag("@store-api/core/TokenStore")<TokenStore, Service>() {}

/**
 * An operation that a store could not do. It never reaches those who ask for a token: a store that is down is a miss.
 *
 * @example
 * ```ts
 * import { TokenStore } from "@store-api/core"
 *
 * const error = new TokenStore.TokenStoreError({ operation: "get", reason: "ECONNREFUSED" })
 * ```
 *
 * @since 0.1.0
 * @category errors
 */
export class TokenStoreError extends Schema.TaggedError<TokenStoreError>("@store-api/core/TokenStoreError")(
  "TokenStoreError",
  {
    /** What was to be done. */
    operation: Schema.Literal("get", "put", "remove", "lease", "extend", "release"),
    /** What went wrong, as a word of the store's client: `ECONNREFUSED`, `OOM`. No key, no entry, no address. */
    reason: Schema.String
  }
) {
  override get message(): string {
    return `The token store could not do "${this.operation}" (${this.reason}): check that it runs and can be reached.`
  }
}

/** An entry or the owner of a lease, until a moment of the monotonic clock, in milliseconds. */
interface Kept {
  readonly value: string
  readonly until: number
}

/**
 * A store in the memory of this process: for tests, and for several providers of one process.
 *
 * @example
 * ```ts
 * import { TokenStore } from "@store-api/core"
 * import { Effect } from "effect"
 *
 * const store = Effect.tap(TokenStore.makeMemory, (store) => store.put("key", "entry", "60 minutes"))
 * ```
 *
 * @since 0.1.0
 * @category constructors
 */
export const makeMemory: Effect.Effect<Service> = Effect.map(
  Ref.make<ReadonlyMap<string, Kept>>(new Map()),
  (memory) => {
    /** Sets a value for a duration, if the current one is as expected. A duration of zero removes it. */
    const setIf = (
      name: string,
      isExpected: (current: string | undefined) => boolean,
      value: string,
      duration: Duration.DurationInput
    ): Effect.Effect<boolean> =>
      Effect.flatMap(monotonicMillis, (now) =>
        Ref.modify(memory, (all) => {
          const living = new Map([...all].filter(([, { until }]) => now < until))
          if (!isExpected(living.get(name)?.value)) return [false, living]
          return [true, living.set(name, { value, until: now + Duration.toMillis(duration) })]
        }))

    const entryOf = (key: string) => `entry:${key}`

    return TokenStore.of({
      get: (key) =>
        Effect.zipWith(Ref.get(memory), monotonicMillis, (all, now) =>
          Option.fromNullable(all.get(entryOf(key))).pipe(
            Option.filter(({ until }) => now < until),
            Option.map(({ value }) => value)
          )),
      put: (key, entry, life) => Effect.asVoid(setIf(entryOf(key), () => true, entry, life)),
      remove: (key, entry) => setIf(entryOf(key), (current) => current === entry, entry, 0),
      lease: (key, duration) =>
        Effect.suspend(() => {
          const name = `lease:${key}`
          const owner = globalThis.crypto.randomUUID()
          const isHeld = (current: string | undefined) => current === owner
          const lease: Lease = {
            extend: setIf(name, isHeld, owner, duration),
            release: Effect.asVoid(setIf(name, isHeld, owner, 0))
          }
          return Effect.map(
            setIf(name, (current) => current === undefined, owner, duration),
            (taken) => taken ? Option.some(lease) : Option.none()
          )
        })
    })
  }
)

/**
 * The store in memory as a layer.
 *
 * @example
 * ```ts
 * import { StoreAuth, TokenStore } from "@store-api/core"
 * import { Layer } from "effect"
 *
 * const StoreAuthLive = StoreAuth.layerSharedConfig().pipe(Layer.provide(TokenStore.layerMemory))
 * ```
 *
 * @since 0.1.0
 * @category layers
 */
export const layerMemory: Layer.Layer<TokenStore> = Layer.effect(TokenStore, makeMemory)
