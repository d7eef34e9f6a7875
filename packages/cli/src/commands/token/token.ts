/** `store-api token`: prints a token for another program. */
import { type AccessToken, remaining } from "@store-api/core/AccessToken"
import * as Clock from "effect/Clock"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Redacted from "effect/Redacted"
import type { Values } from "../../flags.js"
import { Host } from "../../Host.js"
import * as output from "../../output.js"
import { readForToken } from "../../settings/settings.js"
import { readCached } from "../../token/cache.js"
import { formatExpiry } from "../../token/expiry.js"
import type { tokenFlags } from "./flags.js"

type FlagValues = Values<typeof tokenFlags>

export const printToken = (flagValues: FlagValues) =>
  Effect.gen(function*() {
    const settings = yield* readForToken(flagValues)
    const isFresh = flagValues["force-refresh"] || flagValues["no-cache"]
    const cachedToken = isFresh ? Option.none() : yield* readCached(settings)
    const token = Option.isSome(cachedToken) &&
        Duration.greaterThan(yield* remaining(cachedToken.value), longestLeeway)
      ? cachedToken.value
      // Loads the HTTP client only if it may be needed, because other programs wait for a token.
      : yield* Effect.flatMap(
        Effect.promise(() => import("../../token/provider.js")),
        ({ acquireToken }) => acquireToken(settings, flagValues)
      )
    if ((yield* Host).process.stdout.isTTY === true) {
      yield* Effect.logWarning(
        "The token is on the screen, where other people may see it. A pipe is safer."
      )
    }
    yield* output.line(formatToken(flagValues, token, yield* Clock.currentTimeMillis))
  })

/** No provider makes callers wait for a renewal when more than this is left. */
const longestLeeway = Duration.seconds(30)

/** The only place where a token is printed. */
const formatToken = ({ format }: FlagValues, token: AccessToken, now: number): string => {
  const value = Redacted.value(token.value)
  if (format === "header") return `Authorization: ${token.tokenType} ${value}`
  if (format !== "json") return value
  return JSON.stringify({
    access_token: value,
    token_type: token.tokenType,
    ...formatExpiry(token, now),
    scope: token.scope
  })
}
