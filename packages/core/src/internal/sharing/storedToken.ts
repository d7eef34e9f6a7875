/** The token in the store, as one acquisition finds it and leaves it there. */
import * as DateTime from "effect/DateTime"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Ref from "effect/Ref"
import * as Schema from "effect/Schema"
import { AccessToken } from "../../AccessToken.js"
import type { Acquisition } from "../../TokenSource.js"
import type { Service as Store, TokenStoreError } from "../../TokenStore.js"
import * as extra from "../extra.js"
import * as instant from "../instant.js"
import { leewayOf, wholeMillis } from "../lifetime.js"
import * as repeatedToken from "../repeatedToken.js"
import type { Sealing } from "./seal.js"

/**
 * In milliseconds, and at most 5 % of the remaining lifetime. A `put` that took longer may leave the entry in the store
 * after the token has expired, so the entry is removed.
 */
const putTolerance = 30_000

/** What an acquisition wants. Durations are in milliseconds. */
export interface Wanted {
  readonly reason: Acquisition["reason"]
  readonly replacing: AccessToken | undefined
  /** Outside a renewal, a stored token with less than this left is not used, unless there is no other. */
  readonly leeway: number
  /** The limit of a lifetime, which may be longer for the process that stored the token. */
  readonly maxLife: number
}

/**
 * The entry that this process read or stored last, its token, and its end by the monotonic clock of this process.
 * Reading it again never makes the end later, even if the store's clock was set back. The text of an entry is unique
 * per `put`.
 */
export interface KnownEnd {
  readonly entry: string
  readonly value: AccessToken["value"]
  readonly end: number
  /** What the source returned last. */
  readonly last?: repeatedToken.Ending
}

/** A token, and the moment at which its times are right by the wall clock of this process. */
export interface Timed {
  readonly token: AccessToken
  readonly at: instant.Instant
}

/** A token in the store. Durations are in milliseconds. */
interface Found extends Timed {
  readonly life: number
  /** Its remaining lifetime at that moment, when it was read. */
  readonly left: number
  /** How long the read took. Nobody knows at which moment of the read the store looked at its clock. */
  readonly took: number
}

export type StoredToken = Effect.Effect.Success<ReturnType<typeof make>>

export const make = (
  store: Store,
  { key, open, seal }: Sealing,
  wanted: Wanted,
  knownEnd: Ref.Ref<KnownEnd | undefined>
) =>
  Effect.map(Ref.make<Found | undefined>(undefined), (lastShort) => ({
    /** Returns the token in the store if it is usable. Removes it if it was rejected. */
    findUsable: Effect.gen(function*() {
      const before = yield* instant.now
      const stored = Option.getOrUndefined(yield* store.get(key))
      if (stored === undefined) return undefined
      const fields = Option.getOrUndefined(decodeStored(yield* open(stored.entry)))
      if (fields === undefined) return undefined
      const at = yield* instant.now
      // Counted from before the read.
      const took = instant.elapsed(before, at)
      const readEnd = at.monotonic + Duration.toMillis(stored.remaining) - took
      const end = yield* Ref.modify(knownEnd, (known) => {
        const end = known?.entry === stored.entry ? Math.min(known.end, readEnd) : readEnd
        return [end, { ...known, entry: stored.entry, value: fields.value, end }]
      })
      const found = foundOf(fields, wanted.maxLife, {
        remaining: end - at.monotonic,
        at,
        took
      })
      if (!(found.left > 0)) return undefined
      if (isRejected(found.token, wanted)) {
        yield* store.remove(key, stored.entry)
        return undefined
      }
      if (!isUsable(found, wanted)) return undefined
      if (!isShort(found, wanted)) return found
      yield* Ref.set(lastShort, found)
      return undefined
    }),

    /**
     * Stores a token of an acquisition that has started then, if it still may. Ignores failures and defects, because
     * the acquisition has its token.
     */
    publish: (
      { at, token: received }: Timed,
      startedAt: instant.Instant,
      mayStore: Effect.Effect<boolean, TokenStoreError>
    ) =>
      Effect.gen(function*() {
        if (isRejected(received, wanted)) return
        const known = yield* Ref.get(knownEnd)
        const start = repeatedToken.startOf(received, known?.last, startedAt, at)
        const isSame = known !== undefined && repeatedToken.sameValue(known, received)
        const { end, token } = repeatedToken.endingOf(
          received,
          start,
          isSame ? known.end : undefined
        )
        const entry = yield* seal(encode(token))
        // As late as possible, because a process can be frozen at any moment.
        if (!(yield* mayStore)) return
        const last = { token: received, end }
        yield* Ref.set(knownEnd, { entry, value: received.value, end, last })
        const now = yield* instant.now
        const left = end - now.monotonic
        // It may have expired by now, and a store expects no negative duration, and no fraction of a millisecond.
        yield* Effect.exit(store.put(key, entry, wholeMillis(left)))
        // The store counts from when it got the entry. If that was much later, as in a process that was frozen, others
        // would use the token after its end. The option `leeway` may be zero, which every `put` would exceed.
        const isLate = instant.elapsed(now, yield* instant.now) > leewayOf(left, putTolerance)
        if (isLate) yield* store.remove(key, entry)
      }).pipe(Effect.exit),

    /** The last token that was too short for `findUsable`, or undefined once that token has expired. */
    short: Effect.zipWith(Ref.get(lastShort), instant.now, (short, now) => {
      const isValid = short !== undefined && instant.elapsed(short.at, now) < short.left
      return isValid ? short : undefined
    })
  }))

/**
 * Returns the token with its times by the wall clock now. If that has moved back, they move back, because otherwise the
 * token would seem to be acquired later than now. If it has moved forward, the machine may have slept, so they stay.
 */
export const toCurrentTime = ({ at, token }: Timed): Effect.Effect<AccessToken> =>
  Effect.map(instant.now, (now) => {
    // Rounded up, because the wall clock counts whole milliseconds.
    const moved = Math.ceil(now.wall - at.wall - (now.monotonic - at.monotonic))
    return moved >= 0 ? token : new AccessToken({
      ...token,
      acquiredAt: DateTime.unsafeMake(token.acquiredAt.epochMillis + moved),
      expiresAt: DateTime.unsafeMake(token.expiresAt.epochMillis + moved)
    })
  })

/** A token is replaced because an API rejected it, or because the caller wants another one. */
const isRejected = (token: AccessToken, { reason, replacing }: Wanted): boolean =>
  (reason === "Rejected" || reason === "Refresh") && replacing !== undefined &&
  repeatedToken.sameValue(replacing, token)

/** Whether a token can replace the other one. */
const isUsable = (found: Found, { reason, replacing }: Wanted): boolean => {
  if (replacing === undefined) return true
  const { took, token } = found
  const isSame = repeatedToken.sameValue(replacing, token)
  if (reason === "Expired") return !isSame || repeatedToken.isExtended(replacing, token)
  // In doubt it is the later one. Otherwise processes that acquire at about the same time would refuse each other's
  // token.
  if (!isSame && token.expiresAt.epochMillis + took > replacing.expiresAt.epochMillis) {
    return true
  }
  // It brings no progress, but may have been acquired later, which suffices until a renewal is due.
  const isLater = token.acquiredAt.epochMillis + took > replacing.acquiredAt.epochMillis
  return isLater && !(reason === "Renewal" && repeatedToken.isRepeatedDue(found))
}

const isShort = ({ left, life }: Found, { leeway, reason }: Wanted): boolean =>
  reason !== "Renewal" && left < leewayOf(life, leeway)

const optional = <A, I>(schema: Schema.Schema<A, I>) =>
  Schema.optionalWith(schema, { as: "Option" })

/** The encoding of a token before it is sealed, in clear text. Of its times, only the difference counts. */
const Stored = Schema.parseJson(Schema.Struct({
  value: Schema.Redacted(Schema.String),
  /** None for Bearer. */
  tokenType: optional(Schema.Literal("DPoP")),
  scope: Schema.String,
  acquiredAt: Schema.Number,
  expiresAt: Schema.Number,
  applicationName: optional(Schema.String),
  developerEmail: optional(Schema.Redacted(Schema.String)),
  issuedAt: optional(Schema.String),
  clientId: optional(Schema.String),
  extra: optional(
    Schema.Redacted(Schema.Record({ key: Schema.String, value: Schema.Unknown }))
  )
}))

const encodeStored = Schema.encodeSync(Stored)

/** In whole milliseconds, because older versions on Effect 4 read no others. */
const encode = (token: AccessToken): string =>
  encodeStored({
    ...token,
    tokenType: Option.liftPredicate(token.tokenType, (type) => type === "DPoP"),
    acquiredAt: Math.floor(token.acquiredAt.epochMillis),
    expiresAt: Math.floor(token.expiresAt.epochMillis),
    extra: Option.liftPredicate(token.extra, (fields) => fields !== extra.none)
  })

const decodeStored = Schema.decodeUnknownOption(Stored)

/**
 * The token of another machine, whose clock may be wrong. `remaining` is what the store returned, counted from before
 * the read.
 */
const foundOf = (
  stored: typeof Stored.Type,
  maxLife: number,
  { at, remaining, took }: Pick<Found, "at" | "took"> & { readonly remaining: number }
): Found => {
  const storedLife = stored.expiresAt - stored.acquiredAt
  const life = Math.min(storedLife, maxLife)
  const left = Math.floor(Math.min(remaining - (storedLife - life), life))
  const expiresAt = at.wall + left
  const token = new AccessToken({
    ...stored,
    acquiredAt: DateTime.unsafeMake(expiresAt - life),
    expiresAt: DateTime.unsafeMake(expiresAt),
    tokenType: Option.getOrElse(stored.tokenType, () => "Bearer" as const),
    extra: Option.getOrElse(stored.extra, () => extra.none)
  })
  return { token, at, life, left, took }
}
