/** Acquires tokens. Loaded when the cached token does not do. */
import { createHmac } from "node:crypto"
import { remaining } from "@store-api/core/AccessToken"
import { TokenRefusedError } from "@store-api/core/AccessTokenError"
import * as AccessTokenProvider from "@store-api/core/AccessTokenProvider"
import * as TokenEndpoint from "@store-api/core/TokenEndpoint"
import * as TokenSource from "@store-api/core/TokenSource"
import { type Service as Store, TokenStore } from "@store-api/core/TokenStore"
import * as Clock from "effect/Clock"
import * as DateTime from "effect/DateTime"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Either from "effect/Either"
import * as Layer from "effect/Layer"
import * as Option from "effect/Option"
import * as Redacted from "effect/Redacted"
import * as Schema from "effect/Schema"
import { layerHttp } from "./http.js"
import * as output from "./output.js"
import type { Settings } from "./settings.js"
import { shared, withStore } from "./tokens.js"

interface Caching {
  readonly "force-refresh": boolean
  readonly "no-cache": boolean
}

/**
 * A provider over the cached token and the endpoint, and the HTTP client of both. `get` returns a token with enough
 * remaining lifetime for a request.
 */
export const make = (settings: Settings, caching: Caching) =>
  Effect.gen(function*() {
    const startedAt = yield* Clock.currentTimeMillis
    const http = yield* Layer.build(layerHttp(settings))
    const endpoint = yield* Effect.provide(
      TokenEndpoint.make({ ...settings, credentials: Effect.succeed(settings.credentials) }),
      http
    )
    const source = caching["no-cache"]
      ? endpoint
      : yield* withStore(settings, cachedSource(settings, endpoint, caching["force-refresh"]))
    // Without an early renewal: it would be interrupted at the end of the run.
    const provider = yield* AccessTokenProvider.make({ refreshAhead: 0 }).pipe(
      Effect.provideService(TokenSource.TokenSource, source)
    )
    const get = Effect.gen(function*() {
      const token = yield* provider.get
      if (token.acquiredAt.epochMillis >= startedAt) return token
      if (caching["force-refresh"]) return yield* provider.refresh
      if ((yield* provider.status).state !== "MustWait") return token
      // As the provider does it: waits for half of the remaining lifetime, then returns the cached token.
      const longest = Duration.times(yield* remaining(token), 0.5)
      return yield* Effect.orElse(Effect.timeout(provider.refresh, longest), () => provider.get)
    })
    return { http, provider: { ...provider, get } }
  })

/** A token for a run that does nothing else. */
export const acquireToken = (settings: Settings, caching: Caching) =>
  make(settings, caching).pipe(
    Effect.flatMap(({ provider }) => provider.get),
    Effect.scoped,
    Effect.mapError((error) => error._tag === "Fault" ? error : settings.explain(error))
  )

const cachedSource = (settings: Settings, endpoint: TokenSource.Service, force: boolean) =>
  Effect.gen(function*() {
    const store = yield* TokenStore
    return yield* shared(settings).pipe(
      // A token that is to be replaced stays until another one comes, for a run that finds no other.
      Effect.provideService(TokenStore, { ...store, remove: () => Effect.succeed(true) }),
      Effect.provideService(TokenSource.TokenSource, withCooldown(settings, endpoint, store, force))
    )
  })

/** A refusal, and until when no run sends a token request. `pause` is its length in milliseconds. */
const Cooldown = Schema.parseJson(
  Schema.Struct({ until: Schema.Number, pause: Schema.Number, error: TokenRefusedError })
)

/** In milliseconds: as the provider does it, from 1 second, doubled, to 1 minute; `Retry-After` up to an hour. */
const firstPause = 1000
const longestPause = 60_000
const longestRetryAfter = 3_600_000

/** A name that holds the client and the endpoint, and shows neither. Another secret gives another name. */
const cooldownKey = ({ authUrl, credentials: { clientId, clientSecret } }: Settings): string =>
  createHmac("sha256", Redacted.value(clientSecret)).update(JSON.stringify(["cooldown", authUrl, clientId])).digest(
    "hex"
  )

const cooldownIn = (store: Store, settings: Settings) =>
  store.get(cooldownKey(settings)).pipe(
    Effect.orElseSucceed(() => Option.none<string>()),
    Effect.map((entry) => ({ entry, cooldown: Option.flatMap(entry, Schema.decodeOption(Cooldown)) }))
  )

/** The endpoint, with refusals that survive the run: a loop of runs sends no more requests than one process. */
const withCooldown = (settings: Settings, endpoint: TokenSource.Service, store: Store, force: boolean) =>
  TokenSource.make((replacing) =>
    Effect.gen(function*() {
      const { cooldown, entry } = yield* cooldownIn(store, settings)
      const last = Option.getOrUndefined(cooldown)
      if (!force && last !== undefined && (yield* Clock.currentTimeMillis) < last.until) {
        const until = DateTime.formatIso(DateTime.unsafeMake(last.until))
        yield* output.note(`No token request before ${until}: the last one was refused. --force-refresh sends one now.`)
        return yield* last.error.reason === "InvalidClient"
          ? last.error
          : new TokenRefusedError({ ...last.error, retryAt: Option.some(DateTime.unsafeMake(last.until)) })
      }
      const outcome = yield* Effect.either(endpoint.acquire(replacing))
      if (Either.isRight(outcome)) {
        if (Option.isSome(entry)) yield* endCooldown(store, settings)
        return outcome.right
      }
      const error = outcome.left
      if (error._tag !== "TokenRefusedError") return yield* error
      if (error.reason === "Unavailable" && Option.isNone(error.retryAt)) return yield* error
      const now = yield* Clock.currentTimeMillis
      const asked = Option.match(error.retryAt, { onNone: () => 0, onSome: (at) => at.epochMillis - now })
      const pause = Math.min(last === undefined ? firstPause : 2 * last.pause, longestPause)
      const until = now + Math.max(pause, Math.min(asked, longestRetryAfter))
      const kept = Schema.encodeSync(Cooldown)({ until, pause, error })
      // A minute longer, in which another refusal doubles the pause.
      yield* Effect.ignore(store.put(cooldownKey(settings), kept, until - now + longestPause))
      return yield* error.reason === "InvalidClient"
        ? error
        : new TokenRefusedError({ ...error, retryAt: Option.some(DateTime.unsafeMake(until)) })
    })
  )

/** The endpoint has just issued a token. */
export const endCooldown = (store: Store, settings: Settings) =>
  Effect.flatMap(
    cooldownIn(store, settings),
    ({ entry }) =>
      Effect.ignore(Effect.transposeMapOption(entry, (entry) => store.remove(cooldownKey(settings), entry)))
  )
