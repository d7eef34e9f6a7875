/** Issues, finds and revokes the tokens of an emulator. */
import { randomBytes } from "node:crypto"
import * as Arr from "effect/Array"
import * as DateTime from "effect/DateTime"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Redacted from "effect/Redacted"
import type { Client } from "../Client.js"
import type { IssuedToken } from "../IssuedToken.js"
import type { Settings } from "./settings.js"

export type Tokens = ReturnType<typeof make>

const tokenPattern = /[A-Za-z0-9+/]{43}=/g

/** `onChange` runs after a token was issued or revoked, and before anyone learns of it. */
export const make = (
  { repeatToken, tokenLife, tokens }: Settings,
  onChange: (tokens: Effect.Effect<ReadonlyArray<IssuedToken>>) => Effect.Effect<void>
) => {
  // A Map keeps the order of issue, which is also the order of expiry. All changes are synchronous.
  const tokensByValue = new Map(tokens.map((token) => [Redacted.value(token.value), token]))
  // A spread of a long list would be too many arguments.
  let lastId = tokens.reduce((highest, { id }) => Math.max(highest, id), 0)

  const isExpired = ({ expiresAt }: IssuedToken, now: DateTime.Utc) =>
    DateTime.lessThanOrEqualTo(expiresAt, now)

  const isValid = (token: IssuedToken, now: DateTime.Utc) =>
    Option.isNone(token.revokedAt) && !isExpired(token, now)

  const add = (
    clientId: string,
    scope: string,
    thumbprint: string | undefined,
    now: DateTime.Utc
  ) => {
    const hourAgo = DateTime.subtract(now, { hours: 1 })
    for (const [value, token] of tokensByValue) {
      if (!isExpired(token, hourAgo)) break
      tokensByValue.delete(value)
    }
    // 32 random bytes in base64: a `b64token` of RFC 6750 that can hold each of `+`, `/` and `=`.
    const value = randomBytes(32).toString("base64")
    const times = { issuedAt: now, expiresAt: DateTime.addDuration(now, tokenLife) }
    const token = {
      id: ++lastId,
      value: Redacted.make(value),
      clientId,
      scope,
      thumbprint,
      ...times,
      revokedAt: Option.none()
    }
    tokensByValue.set(value, token)
    return token
  }

  const all = Effect.sync((): ReadonlyArray<IssuedToken> => [...tokensByValue.values()])
  const reportChange = onChange(all)

  return {
    /** Issues a token to the client. With `repeatToken`, returns its last one of this scope while that is valid. */
    issue: ({ clientId }: Client, scope: string, thumbprint?: string) =>
      Effect.map(DateTime.now, (now) => {
        const isLast = (token: IssuedToken) =>
          token.clientId === clientId && token.scope === scope &&
          token.thumbprint === thumbprint
        const last = repeatToken ? Arr.findLast(tokensByValue.values(), isLast) : Option.none()
        const token = Option.getOrElse(
          Option.filter(last, (token) => isValid(token, now)),
          () => add(clientId, scope, thumbprint, now)
        )
        return { token, remaining: DateTime.distanceDuration(now, token.expiresAt) }
      }).pipe(Effect.tap(reportChange)),
    /** Returns a token, also one that is not valid. */
    get: (value: string) => Option.fromNullable(tokensByValue.get(value)),
    /** Returns a valid token, or fails with the reason why it is not valid. */
    find: (value: string) =>
      Effect.flatMap(DateTime.now, (now) => {
        const token = tokensByValue.get(value)
        if (token === undefined) return Effect.fail("is unknown")
        if (Option.isSome(token.revokedAt)) return Effect.fail("was revoked")
        return isExpired(token, now) ? Effect.fail("expired") : Effect.succeed(token)
      }),
    /** Revokes one token, by its value or id, or all. Returns the number of those that were valid. */
    revoke: (token?: Redacted.Redacted | string | number) =>
      Effect.map(DateTime.now, (now) => {
        const chosenToken = Redacted.isRedacted(token) ? Redacted.value(token) : token
        const valid = [...tokensByValue].filter(([value, token]) =>
          isValid(token, now) &&
          (chosenToken === undefined || [value, token.id].includes(chosenToken))
        )
        for (const [value, token] of valid) {
          tokensByValue.set(value, { ...token, revokedAt: Option.some(now) })
        }
        return valid.length
      }).pipe(Effect.tap(reportChange)),
    all,
    /** Returns whether a token of this emulator occurs in the text. */
    occurIn: (text: string) =>
      (text.match(tokenPattern) ?? []).some((candidate) => tokensByValue.has(candidate))
  }
}
