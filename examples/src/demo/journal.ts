/** The events of the demo and their times, for the timeline. */
import type { AccessToken } from "@store-api/core"
import { Clock, Context, DateTime, Effect, Layer, Ref } from "effect"

export interface TokenEntry {
  readonly acquiredAt: number
  readonly expiresAt: number
  readonly revokedAt: number
}

export interface Entries {
  readonly tokens: ReadonlyArray<TokenEntry>
  readonly calls: ReadonlyArray<number>
}

export class Journal extends Context.Tag("@store-api/examples/Journal")<Journal, Ref.Ref<Entries>>() {}

export const layer = Layer.effect(Journal, Ref.make<Entries>({ tokens: [], calls: [] }))

const write = (change: (entries: Entries, now: number) => Entries) =>
  Effect.gen(function*() {
    const now = yield* Clock.currentTimeMillis
    yield* Ref.update(yield* Journal, (entries) => change(entries, now))
  })

/** Records a token that is in use, unless it is recorded already. */
export const acquired = (token: AccessToken.AccessToken) => {
  const [acquiredAt, expiresAt] = [token.acquiredAt, token.expiresAt].map(DateTime.toEpochMillis) as [number, number]
  return write(({ calls, tokens }) => ({
    calls,
    tokens: tokens.some((known) => known.acquiredAt === acquiredAt)
      ? tokens
      : [...tokens, { acquiredAt, expiresAt, revokedAt: Infinity }]
  }))
}

/** Revokes all tokens that are valid now. */
export const revoked = write(({ calls, tokens }, now) => ({
  calls,
  tokens: tokens.map((token) => token.expiresAt > now ? { ...token, revokedAt: now } : token)
}))

export const called = write(({ calls, tokens }, now) => ({ tokens, calls: [...calls, now] }))
