/** `store-api status`: what is stored, without asking anybody. */
import type { AccessToken } from "@store-api/core/AccessToken"
import { TokenRequestError } from "@store-api/core/AccessTokenError"
import * as TokenSource from "@store-api/core/TokenSource"
import { TokenStore } from "@store-api/core/TokenStore"
import * as FileTokenStore from "@store-api/platform-node/FileTokenStore"
import * as Clock from "effect/Clock"
import * as DateTime from "effect/DateTime"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Option from "effect/Option"
import { configuration, type Fault, fromLibrary } from "../Fault.js"
import type * as flags from "../flags.js"
import * as output from "../output.js"
import { read, type Settings } from "../settings.js"
import { shared } from "../tokens.js"
import { lasting } from "../wording.js"

export const run = (given: flags.Values<typeof flags.status>) =>
  Effect.gen(function*() {
    const settings = yield* read(given)
    const folder = yield* Option.match(settings.folder, {
      onNone: () => FileTokenStore.defaultFolder,
      onSome: Effect.succeed
    })
    const now = yield* Clock.currentTimeMillis
    const token = yield* stored(settings, folder)
    const profile = Option.match(settings.profile, { onNone: () => ({}), onSome: (profile) => ({ profile }) })
    if (given.json) return yield* output.line(JSON.stringify({ ...profile, folder, ...described(token, now) }))
    if (Option.isSome(settings.profile)) yield* output.line(`profile  ${settings.profile.value}`)
    yield* output.line(`folder   ${folder}`)
    yield* output.line(Option.match(token, {
      onNone: () => "token    none is stored for this service, client and secret",
      onSome: ({ expiresAt }) =>
        `token    good for another ${lasting(expiresAt.epochMillis - now)}, until ${DateTime.formatIso(expiresAt)}`
    }))
  })

const described = (token: Option.Option<AccessToken>, now: number) =>
  Option.match(token, {
    onNone: () => ({ stored: false }),
    onSome: ({ acquiredAt, expiresAt }) => ({
      stored: true,
      acquired_at: DateTime.formatIso(acquiredAt),
      expires_at: DateTime.formatIso(expiresAt),
      expires_in: Math.floor((expiresAt.epochMillis - now) / 1000)
    })
  })

/** The token that the next run would use: found over a source that has none, and a store into which nothing is written. */
const stored = (settings: Settings, folder: string): Effect.Effect<Option.Option<AccessToken>, Fault> =>
  Effect.gen(function*() {
    const store = yield* TokenStore
    // Elsewhere a store that cannot be read is a miss; here it is the answer.
    yield* Effect.mapError(
      store.get(""),
      ({ reason }) => configuration(`The tokens in ${folder} cannot be used: ${reason}.`)
    )
    const { acquire } = yield* Effect.mapError(shared(settings), fromLibrary).pipe(
      Effect.provideService(TokenStore, {
        get: store.get,
        put: () => Effect.void,
        remove: () => Effect.succeed(false),
        lease: () => Effect.succeedSome({ extend: Effect.succeed(true), release: Effect.void })
      })
    )
    return yield* Effect.option(acquire(Option.none()))
  }).pipe(Effect.provide(Layer.merge(nobody, FileTokenStore.layer({ folder }))))

const nobody = TokenSource.layer(() => Effect.fail(new TokenRequestError({ reason: "Closed", attempts: 0 })))
