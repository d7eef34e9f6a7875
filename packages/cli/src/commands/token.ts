/** `store-api token`: prints a token for another program. */
import { type AccessToken, remaining } from "@store-api/core/AccessToken"
import * as Clock from "effect/Clock"
import * as DateTime from "effect/DateTime"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Redacted from "effect/Redacted"
import type * as flags from "../flags.js"
import { Host } from "../Host.js"
import * as output from "../output.js"
import * as settings from "../settings.js"
import * as tokens from "../tokens.js"

type Given = flags.Values<typeof flags.token>

export const run = (given: Given) =>
  Effect.gen(function*() {
    const found = yield* settings.read(given)
    const cached = given["force-refresh"] || given["no-cache"] ? Option.none() : yield* tokens.cached(found)
    // Another program waits for this one: the provider and its HTTP client are loaded only if they may be needed.
    const token = Option.isSome(cached) && Duration.greaterThan(yield* remaining(cached.value), longestLeeway)
      ? cached.value
      : yield* (yield* Effect.promise(() => import("../provider.js"))).acquireToken(found, given)
    if ((yield* Host).process.stdout.isTTY === true) {
      yield* Effect.logWarning("The token is on the screen, where other people may see it. A pipe is safer.")
    }
    yield* output.line(textOf(given, token, yield* Clock.currentTimeMillis))
  })

/** No provider renews a token earlier while callers wait. */
const longestLeeway = Duration.seconds(30)

/** The only place where a token becomes visible. */
const textOf = ({ format }: Given, token: AccessToken, now: number): string => {
  const value = Redacted.value(token.value)
  if (format === "header") return `Authorization: ${token.tokenType} ${value}`
  if (format !== "json") return value
  return JSON.stringify({
    access_token: value,
    token_type: token.tokenType,
    expires_at: DateTime.formatIso(token.expiresAt),
    expires_in: Math.max(0, Math.floor((token.expiresAt.epochMillis - now) / 1000)),
    scope: token.scope
  })
}
