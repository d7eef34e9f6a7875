/** The tokens of an emulator: issued, found again, revoked. */
import { randomBytes } from "node:crypto"
import * as Clock from "effect/Clock"
import * as DateTime from "effect/DateTime"
import * as Effect from "effect/Effect"
import * as Redacted from "effect/Redacted"
import type { Client } from "../Client.js"
import type { IssuedToken } from "../IssuedToken.js"
import type { Settings } from "./settings.js"

/** A token with its age at the moment somebody looks. */
export type Found =
  | { readonly _tag: "Live"; readonly token: IssuedToken; readonly remainingMillis: number }
  | { readonly _tag: "Unknown" | "Revoked" | "Expired" }

export interface Tokens {
  /** A token for the client: a new one, or the one it has when the settings say so. */
  readonly issue: (client: Client) => Effect.Effect<{ readonly token: IssuedToken; readonly remainingMillis: number }>
  readonly find: (value: string) => Effect.Effect<Found>
  readonly revoke: (token?: Redacted.Redacted | string) => Effect.Effect<number>
  readonly all: Effect.Effect<ReadonlyArray<IssuedToken>>
  /** Whether the text holds a token of this emulator. */
  readonly heldBy: (text: string) => boolean
}

/** How long an emulator knows a token after its end. */
const hour = 3_600_000

/** 32 random bytes in base64: a `b64token` of RFC 6750 that can hold each of `+`, `/` and `=`. */
const randomToken = () => randomBytes(32).toString("base64")
const looksLikeToken = /[A-Za-z0-9+/]{43}=/g

export const make = (settings: Settings): Tokens => {
  // A Map keeps the order of issue. It is changed only between two steps of a fiber, so no two requests collide.
  const issued = new Map<string, IssuedToken>()
  const latest = new Map<string, string>()

  const statusOf = (value: string | undefined, now: number): Found => {
    const token = value === undefined ? undefined : issued.get(value)
    if (token === undefined) return { _tag: "Unknown" }
    if (token.revoked) return { _tag: "Revoked" }
    const remainingMillis = DateTime.toEpochMillis(token.expiresAt) - now
    return remainingMillis > 0 ? { _tag: "Live", token, remainingMillis } : { _tag: "Expired" }
  }

  /** In the order of issue, tokens expire in that order too. */
  const forgetOld = (now: number) => {
    for (const [value, { expiresAt }] of issued) {
      if (DateTime.toEpochMillis(expiresAt) > now - hour) return
      issued.delete(value)
    }
  }

  const issue = (client: Client) =>
    Effect.map(Clock.currentTimeMillis, (now) => {
      if (settings.repeatToken) {
        const held = statusOf(latest.get(client.clientId), now)
        if (held._tag === "Live") return held
      }
      const value = randomToken()
      const token: IssuedToken = {
        value: Redacted.make(value),
        clientId: client.clientId,
        issuedAt: DateTime.unsafeMake(now),
        expiresAt: DateTime.unsafeMake(now + settings.tokenLifeMillis),
        revoked: false
      }
      forgetOld(now)
      issued.set(value, token)
      latest.set(client.clientId, value)
      return { token, remainingMillis: settings.tokenLifeMillis }
    })

  const revoke = (token?: Redacted.Redacted | string) =>
    Effect.map(Clock.currentTimeMillis, (now) => {
      const value = Redacted.isRedacted(token) ? Redacted.value(token) : token
      let ended = 0
      for (const candidate of value === undefined ? [...issued.keys()] : [value]) {
        const found = statusOf(candidate, now)
        if (found._tag !== "Live") continue
        issued.set(candidate, { ...found.token, revoked: true })
        ended++
      }
      return ended
    })

  return {
    issue,
    revoke,
    find: (value) => Effect.map(Clock.currentTimeMillis, (now) => statusOf(value, now)),
    all: Effect.sync(() => [...issued.values()]),
    heldBy: (text) => (text.match(looksLikeToken) ?? []).some((candidate) => issued.has(candidate))
  }
}
