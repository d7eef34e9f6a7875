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

/** What is in memory: entries and the ids of leases, each until a moment of the monotonic clock, in milliseconds. */
interface Memory {
  readonly entries: ReadonlyMap<string, Kept<string>>
  readonly leases: ReadonlyMap<string, Kept<symbol>>
}

interface Kept<A> {
  readonly value: A
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
  Ref.make<Memory>({ entries: new Map(), leases: new Map() }),
  (memory) => {
    const step = <A>(change: (memory: Memory, now: number) => readonly [A, Memory]): Effect.Effect<A> =>
      Effect.flatMap(
        monotonicMillis,
        (now) =>
          Ref.modify(memory, (current) =>
            change({ ...current, entries: living(current.entries, now), leases: living(current.leases, now) }, now))
      )

    const extend = (key: string, id: symbol, duration: Duration.DurationInput) =>
      step((memory, now) =>
        memory.leases.get(key)?.value === id
          ? [true, { ...memory, leases: keep(memory.leases, key, id, now, duration) }]
          : [false, memory]
      )

    const release = (key: string, id: symbol) =>
      step((memory) =>
        memory.leases.get(key)?.value === id
          ? [undefined, { ...memory, leases: without(memory.leases, key) }]
          : [undefined, memory]
      )

    return TokenStore.of({
      get: (key) => step((memory) => [Option.fromNullable(memory.entries.get(key)?.value), memory]),
      put: (key, entry, life) =>
        step((memory, now) => [undefined, { ...memory, entries: keep(memory.entries, key, entry, now, life) }]),
      remove: (key, entry) =>
        step((memory) =>
          memory.entries.get(key)?.value === entry
            ? [true, { ...memory, entries: without(memory.entries, key) }]
            : [false, memory]
        ),
      lease: (key, duration) =>
        step((memory, now) => {
          if (memory.leases.has(key)) return [Option.none<Lease>(), memory]
          const id = Symbol()
          const leases = keep(memory.leases, key, id, now, duration)
          const lease: Lease = { extend: extend(key, id, duration), release: release(key, id) }
          return [Option.some(lease), { ...memory, leases }]
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

const living = <A>(kept: ReadonlyMap<string, Kept<A>>, now: number): ReadonlyMap<string, Kept<A>> =>
  new Map([...kept].filter(([, { until }]) => now < until))

const keep = <A>(
  kept: ReadonlyMap<string, Kept<A>>,
  key: string,
  value: A,
  now: number,
  duration: Duration.DurationInput
): ReadonlyMap<string, Kept<A>> => new Map(kept).set(key, { value, until: now + Duration.toMillis(duration) })

const without = <A>(kept: ReadonlyMap<string, Kept<A>>, key: string): ReadonlyMap<string, Kept<A>> =>
  new Map([...kept].filter(([other]) => other !== key))
