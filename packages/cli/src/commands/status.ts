/** `store-api status` and `store-api logout`: the cached token. They send nothing. */
import * as Clock from "effect/Clock"
import * as DateTime from "effect/DateTime"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import { configuration, unavailable } from "../Fault.js"
import type * as flags from "../flags.js"
import * as output from "../output.js"
import { read, type Settings } from "../settings.js"
import * as tokens from "../tokens.js"

const none = "No valid token is cached for this service, client and secret."

export const run = (given: flags.Values<typeof flags.status>) =>
  Effect.gen(function*() {
    const settings = yield* read(given)
    const { folder } = settings
    yield* requireCache(settings)
    const token = Option.getOrUndefined(yield* tokens.cached(settings))
    const now = yield* Clock.currentTimeMillis
    const left = token === undefined ? 0 : token.expiresAt.epochMillis - now
    if (given.json) {
      const times = token === undefined ? {} : {
        acquired_at: DateTime.formatIso(token.acquiredAt),
        expires_at: DateTime.formatIso(token.expiresAt),
        expires_in: Math.floor(left / 1000)
      }
      yield* output.line(JSON.stringify({ profile: settings.profile, folder, cached: token !== undefined, ...times }))
    } else {
      if (settings.profile !== undefined) yield* output.line(`profile  ${settings.profile}`)
      yield* output.line(`folder   ${folder}`)
      const until = token && DateTime.formatIso(token.expiresAt).slice(0, 19)
      if (until !== undefined) yield* output.line(`token    valid for ${output.inWords(left)}, until ${until}Z`)
    }
    if (token === undefined) return yield* unavailable(none)
  })

export const logout = (given: flags.Values<typeof flags.logout>) =>
  Effect.gen(function*() {
    const settings = yield* read(given)
    const { folder } = settings
    yield* requireCache(settings)
    const token = yield* tokens.cached(settings)
    yield* Effect.transposeMapOption(token, (token) => tokens.forget(settings, token))
    if (Option.isSome(yield* tokens.cached(settings))) {
      return yield* configuration(`Cannot remove the token from ${folder}. Check that you may write to it.`)
    }
    yield* output.note(Option.isSome(token) ? "The cached token is removed." : none)
  })

/** A cache that cannot be read is a failure here, and a miss elsewhere. */
const requireCache = ({ folder, store }: Settings) =>
  store.get("").pipe(
    Effect.timeoutFail({ duration: tokens.storeTimeout, onTimeout: () => ({ reason: "no response in time" }) }),
    Effect.mapError(({ reason }) => configuration(`Cannot use the cache in ${folder} (${reason}).`))
  )
