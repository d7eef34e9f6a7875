/** `store-api token`: a token for another program. */
import type { AccessToken } from "@store-api/core/AccessToken"
import * as Clock from "effect/Clock"
import * as DateTime from "effect/DateTime"
import * as Effect from "effect/Effect"
import * as Redacted from "effect/Redacted"
import { usage } from "../Fault.js"
import type * as flags from "../flags.js"
import { Host } from "../Host.js"
import * as output from "../output.js"
import * as settings from "../settings.js"
import * as tokens from "../tokens.js"

type Given = flags.Values<typeof flags.token>

export const run = (given: Given) =>
  Effect.gen(function*() {
    if (given.header && given.json) return yield* usage("--header and --json cannot both be given.")
    if ((yield* Host).process.stdout.isTTY === true && !given.show) {
      return yield* usage("A token is not printed to a terminal, where others may see it: use a pipe, or --show.")
    }
    const token = yield* tokens.get(yield* settings.read(given), {
      refreshed: given.refresh,
      stored: !given["no-store"]
    })
    yield* output.line(textOf(given, token, yield* Clock.currentTimeMillis))
  })

/** Here, where it was asked for, and nowhere else the token is shown. */
const textOf = ({ header, json }: Given, token: AccessToken, now: number): string => {
  const value = Redacted.value(token.value)
  if (header) return `Authorization: ${token.tokenType} ${value}`
  if (!json) return value
  return JSON.stringify({
    access_token: value,
    token_type: token.tokenType,
    expires_at: DateTime.formatIso(token.expiresAt),
    expires_in: Math.max(0, Math.floor((token.expiresAt.epochMillis - now) / 1000)),
    scope: token.scope
  })
}
