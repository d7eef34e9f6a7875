/** The token in the store, as one acquisition finds it and leaves it there. */
import * as Clock from "effect/Clock"
import * as DateTime from "effect/DateTime"
import type * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Schema from "effect/Schema"
import { AccessToken } from "../../AccessToken.js"
import type { Service as Store } from "../../TokenStore.js"
import { leewayOf, wholeMillis } from "../lifetime.js"
import { isRepeated, isRepeatedDue, sameValue, withKnownExpiry } from "../repeatedToken.js"
import type { Sealing } from "./seal.js"

/** What an acquisition wants. */
export interface Wanted {
  /** The token that it replaces. None if that has expired, because then any valid token is another one. */
  readonly replacing: AccessToken | undefined
  /** Whether that token is still valid, and was not rejected. */
  readonly isRenewal: boolean
  /** Outside a renewal, a stored token with less than this left is not used, unless there is no other. */
  readonly leeway: Duration.DurationInput | undefined
  /** In milliseconds. */
  readonly maxLife: number
}

export type StoredToken = ReturnType<typeof make>

export const make = (store: Store, { key, open, seal }: Sealing, wanted: Wanted) => {
  let short: AccessToken | undefined
  return {
    /** Returns the token in the store if it is usable. Removes it if it was rejected. */
    find: Effect.gen(function*() {
      const entry = Option.getOrUndefined(yield* store.get(key))
      if (entry === undefined) return undefined
      const text = yield* open(entry)
      const now = yield* Clock.currentTimeMillis
      const found = decode(text, now, wanted.maxLife)
      if (found === undefined) return undefined
      if (isRejected(found, wanted)) yield* store.remove(key, entry)
      else if (isUsable(found, wanted, now)) {
        if (!isShort(found, wanted, now)) return found
        short = found
      }
      return undefined
    }),
    /** Stores an acquired token for other processes. A failure or a defect does not fail the acquisition. */
    publish: (received: AccessToken) =>
      Effect.gen(function*() {
        if (isRejected(received, wanted)) return
        const token = withKnownExpiry(wanted.replacing, received)
        const entry = yield* seal(encode(token))
        const left = token.expiresAt.epochMillis - (yield* Clock.currentTimeMillis)
        // It may have expired by now, and a store expects no negative duration, and no fraction of a millisecond.
        yield* store.put(key, entry, wholeMillis(left))
      }).pipe(Effect.exit),
    /** The last token that `find` did not return because too little is left of it. None if that has expired. */
    short: Effect.map(Clock.currentTimeMillis, (now) => short && short.expiresAt.epochMillis > now ? short : undefined)
  }
}

/** Outside a renewal, a token is replaced because an API rejected it, or because the caller wants another one. */
const isRejected = (token: AccessToken, { isRenewal, replacing }: Wanted): boolean =>
  !isRenewal && replacing !== undefined && sameValue(replacing, token)

/**
 * Whether a token can replace the other one. One that brings no progress can if it was acquired later: after a
 * rejection, or in a renewal until it is due.
 */
const isUsable = (found: AccessToken, { isRenewal, replacing }: Wanted, now: number): boolean =>
  replacing === undefined || !isRepeated(replacing, found) ||
  (found.acquiredAt.epochMillis > replacing.acquiredAt.epochMillis && !(isRenewal && isRepeatedDue(found, now)))

const isShort = ({ acquiredAt, expiresAt }: AccessToken, { isRenewal, leeway }: Wanted, now: number): boolean =>
  !isRenewal && expiresAt.epochMillis - now < leewayOf(expiresAt.epochMillis - acquiredAt.epochMillis, leeway)

const optional = <A, I>(schema: Schema.Schema<A, I>) => Schema.optionalWith(schema, { as: "Option" })

/** The encoding of a token before it is sealed, in clear text. */
const Stored = Schema.parseJson(Schema.Struct({
  value: Schema.Redacted(Schema.String),
  scope: Schema.String,
  acquiredAt: Schema.DateTimeUtcFromNumber,
  expiresAt: Schema.DateTimeUtcFromNumber,
  applicationName: optional(Schema.String),
  developerEmail: optional(Schema.Redacted(Schema.String)),
  issuedAt: optional(Schema.String),
  clientId: optional(Schema.String)
}))

const encodeStored = Schema.encodeSync(Stored)

/** Effect 4 encodes whole milliseconds only. */
const wholeTime = ({ epochMillis }: DateTime.Utc): DateTime.Utc => DateTime.unsafeMake(Math.floor(epochMillis))

const encode = (token: AccessToken): string =>
  encodeStored({ ...token, acquiredAt: wholeTime(token.acquiredAt), expiresAt: wholeTime(token.expiresAt) })

const decodeStored = Schema.decodeUnknownOption(Stored)

/**
 * Decodes a token of another machine. Returns `undefined` if the text is not a token, or if it has expired by the
 * local clock. If this clock is behind the other, the token counts as acquired now. If this clock is ahead, the token
 * expires early. Its lifetime is at most `maxLife`, which may be longer for the process that stored it.
 */
const decode = (text: string | undefined, now: number, maxLife: number): AccessToken | undefined => {
  const stored = Option.getOrUndefined(decodeStored(text))
  if (stored === undefined) return undefined
  const life = stored.expiresAt.epochMillis - stored.acquiredAt.epochMillis
  const acquiredAt = Math.min(stored.acquiredAt.epochMillis, now)
  const expiresAt = acquiredAt + Math.min(life, maxLife)
  return expiresAt <= now ? undefined : new AccessToken({
    ...stored,
    acquiredAt: DateTime.unsafeMake(acquiredAt),
    expiresAt: DateTime.unsafeMake(expiresAt)
  })
}
