/** `store-api status`, which sends nothing. */
import * as Clock from "effect/Clock"
import * as DateTime from "effect/DateTime"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import { unavailableError } from "../../CommandError.js"
import type { Values } from "../../flags.js"
import * as output from "../../output.js"
import { readCached } from "../../token/cache.js"
import { describeMiss, readWithCache } from "../../token/checkedCache.js"
import { formatExpiry } from "../../token/expiry.js"
import type { statusFlags } from "./flags.js"

export const printStatus = (flagValues: Values<typeof statusFlags>) =>
  Effect.gen(function*() {
    const settings = yield* readWithCache(flagValues)
    const { folder, profile } = settings
    const token = Option.getOrUndefined(yield* readCached(settings))
    const times = token && {
      acquired_at: DateTime.formatIso(token.acquiredAt),
      ...formatExpiry(token, yield* Clock.currentTimeMillis)
    }
    if (flagValues.json) {
      yield* output.line(
        JSON.stringify({ profile, folder, cached: token !== undefined, ...times })
      )
    } else {
      if (profile !== undefined) yield* output.line(`profile  ${profile}`)
      yield* output.line(`folder   ${folder}`)
      if (times !== undefined) {
        const lifetime = output.inWords(times.expires_in * 1000)
        yield* output.line(
          `token    valid for ${lifetime}, until ${times.expires_at.slice(0, 19)}Z`
        )
      }
    }
    if (token === undefined) return yield* unavailableError(describeMiss(settings))
  })
