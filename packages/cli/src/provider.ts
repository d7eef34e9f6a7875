/** Acquires tokens. `token` loads it only if the cached token cannot be used. */
import { createHmac } from "node:crypto"
import * as HttpClient from "@effect/platform/HttpClient"
import * as HttpClientRequest from "@effect/platform/HttpClientRequest"
import type { HttpClientResponse } from "@effect/platform/HttpClientResponse"
import { type AccessToken, remaining } from "@store-api/core/AccessToken"
import { AccessTokenError, withRetryAt } from "@store-api/core/AccessTokenError"
import * as AccessTokenProvider from "@store-api/core/AccessTokenProvider"
import * as TokenEndpoint from "@store-api/core/TokenEndpoint"
import * as TokenSource from "@store-api/core/TokenSource"
import * as NodeHttp from "@store-api/platform-node/NodeHttp"
import * as Clock from "effect/Clock"
import * as DateTime from "effect/DateTime"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Equal from "effect/Equal"
import * as Exit from "effect/Exit"
import * as Layer from "effect/Layer"
import * as Option from "effect/Option"
import * as Redacted from "effect/Redacted"
import * as Schema from "effect/Schema"
import type * as flags from "./flags.js"
import { version } from "./Host.js"
import * as output from "./output.js"
import type { Settings } from "./settings.js"
import { cached, forget, shared, storeTimeout } from "./tokens.js"

type Caching = Pick<flags.Values<typeof flags.token>, "force-refresh" | "no-cache">

/** A provider over the cached token and the endpoint, and the HTTP client of both. */
export const make = (settings: Settings, caching: Caching) =>
  Effect.gen(function*() {
    const http = yield* Layer.build(layerHttp(settings))
    const endpoint = yield* Effect.provide(TokenEndpoint.make(settings), http)
    const source = caching["no-cache"] ? endpoint : yield* cachedSource(settings, endpoint, caching["force-refresh"])
    // No early renewal, because the end of the run would interrupt it.
    const provider = yield* AccessTokenProvider.make({ refreshAhead: 0 }).pipe(
      Effect.provideService(TokenSource.TokenSource, source)
    )
    // One entry per rejected token: the time until which it stays cached, because too many were rejected before it.
    const rejections: Array<number | undefined> = []
    const invalidate = (token: AccessToken) =>
      Effect.gen(function*() {
        const keptUntil = caching["no-cache"] ? undefined : yield* dropRejected(settings, token)
        rejections.push(keptUntil)
        if (keptUntil === undefined) yield* provider.invalidate(token)
      })
    const get = output.whileWaiting("a token", provider.get)
    return { http, provider: { ...provider, get, invalidate }, rejections }
  })

/** Acquires a token for a run that needs nothing else. */
export const acquireToken = (settings: Settings, caching: Caching) =>
  make(settings, caching).pipe(
    Effect.flatMap(({ provider }) => provider.get),
    Effect.scoped,
    Effect.mapError((error) => error._tag === "Fault" ? error : settings.explain(error))
  )

/** A source of the cached token or a new one. A loop of runs sends no more token requests than one process. */
const cachedSource = (settings: Settings, endpoint: TokenSource.Service, force: boolean) =>
  shared(settings, withCooldown(settings, endpoint, force), {
    ...settings.store,
    // A token stays until its replacement is stored, because other runs may have no other meanwhile.
    remove: () => Effect.succeed(true)
  }).pipe(
    Effect.map((acquire) =>
      TokenSource.make((wanted) =>
        Effect.gen(function*() {
          const valid = yield* stored(settings)
          // After a rejection, nothing is left to replace. If the endpoint repeats the token, it is stored again.
          if (Option.isNone(valid)) return yield* acquire(TokenSource.missing)
          if (force) return yield* acquire({ reason: "Refresh", replacing: valid })
          if (Option.isSome(wanted.replacing)) return yield* acquire(wanted)
          // A new token, if this one expires soon. As in the provider, it may take half of the remaining lifetime.
          const longest = Duration.times(yield* remaining(valid.value), 0.5)
          const inTime = Effect.timeout(acquire(wanted), longest)
          return yield* Effect.orElse(inTime, () => Effect.succeed(valid.value))
        })
      )
    )
  )

/** The cached token, while it is valid. */
const stored = (settings: Settings) => Effect.map(Effect.option(cached(settings)), Option.flatten)

/**
 * Removes a rejected token from the cache, unless another run has replaced it. As in one process, five rejections take
 * effect at once, and one more per minute. Returns `undefined` if this one does, or else when the next one can.
 */
const dropRejected = (settings: Settings, token: AccessToken) =>
  Effect.gen(function*() {
    if (!Option.exists(yield* stored(settings), ({ value }) => Equal.equals(value, token.value))) return undefined
    const { get, put } = remembered(settings, "rejections")
    const now = yield* Clock.currentTimeMillis
    // The time at which the budget is full again. A clock that was set back does not make it later.
    const full = Number(Option.getOrElse(yield* get, () => "")) || now
    const next = Math.min(Math.max(full, now) + 60_000, now + 6 * 60_000)
    if (next > now + 5 * 60_000) return next - 5 * 60_000
    yield* put(String(next), next - now)
    yield* Effect.ignore(forget(settings, token))
    return undefined
  })

/** In milliseconds. As in the provider, pauses double from 1 second to 1 minute. `Retry-After` counts up to an hour. */
const longestPause = 60_000
const longestPauseOfOutage = 5000
const longestRetryAfter = 3_600_000

/** A pause after a failed token request. */
const Pause = Schema.Struct({
  from: Schema.NonNegative,
  pause: Schema.Number.pipe(Schema.between(1000, longestPause)),
  error: AccessTokenError
})
type Pause = typeof Pause.Type
const pauseJson = Schema.parseJson(Pause)

/** What a run leaves for the next ones. The key reveals neither client nor endpoint, and changes with the secret. */
const remembered = (settings: Settings, kind: "cooldown" | "rejections") => {
  const { authUrl, client: { clientId, clientSecret }, store } = settings
  const text = JSON.stringify([kind, authUrl, clientId])
  const key = createHmac("sha256", Redacted.value(clientSecret)).update(text).digest("hex")
  // A folder that does not respond counts as empty, although a write cannot be interrupted.
  const bounded = <A, E>(operation: Effect.Effect<A, E>) =>
    operation.pipe(Effect.disconnect, Effect.timeout(storeTimeout), Effect.interruptible, Effect.option)
  return {
    get: Effect.map(bounded(store.get(key)), (found) => Option.map(Option.flatten(found), ({ entry }) => entry)),
    put: (value: string, millis: number) => bounded(store.put(key, value, millis))
  }
}

const cooldownOf = (settings: Settings) => {
  const { get, put } = remembered(settings, "cooldown")
  return {
    // A cooldown that begins in the future, beyond the tolerance of the store, would end too late.
    get: Effect.zipWith(get, Clock.currentTimeMillis, (entry, now) =>
      Option.getOrUndefined(
        Option.filter(Option.flatMap(entry, Schema.decodeOption(pauseJson)), ({ from }) => from <= now + 1000)
      )),
    // Kept a minute longer, so that another failure doubles the pause.
    put: (pause: Pause) => put(Schema.encodeSync(pauseJson)(pause), endOf(pause, true) - pause.from + longestPause),
    end: put("", 0)
  }
}

/** Ends the cooldown after the endpoint has issued a token. */
export const endCooldown = (settings: Settings) => cooldownOf(settings).end

/** A run without a valid token waits at most 5 seconds, unless `isRefusal`. */
const endOf = ({ error, from, pause }: Pause, hasToken: boolean): number => {
  const retryAt = error.retryAt?.epochMillis ?? from
  return Math.max(
    from + (hasToken || isRefusal(error) ? pause : Math.min(pause, longestPauseOfOutage)),
    Math.min(retryAt, from + longestRetryAfter)
  )
}

/** Whether the endpoint or a proxy refused the credentials, or the endpoint answered 429, as in the provider. */
const isRefusal = (error: Pause["error"]): boolean => {
  if (error._tag === "TokenRequestError") return error.reason === "Proxy"
  return error._tag === "TokenRefusedError" &&
    (error.httpStatus === 401 || ["InvalidClient", "RateLimited"].includes(error.reason))
}

const withCooldown =
  (settings: Settings, endpoint: TokenSource.Service, force: boolean): TokenSource.Service["acquire"] =>
  (acquisition) =>
    Effect.gen(function*() {
      const { end, get, put } = cooldownOf(settings)
      const hasToken = Option.isSome(yield* stored(settings))
      const until = (cooldown: Pause) => DateTime.unsafeMake(endOf(cooldown, hasToken))
      const last = yield* get
      if (last !== undefined && !force && (yield* Clock.currentTimeMillis) < until(last).epochMillis) {
        const at = DateTime.formatIso(until(last))
        const note = `The last token request failed. The next one is sent after ${at}, or with --force-refresh.`
        // The cached token is still valid.
        if (!hasToken) yield* Effect.flatMap(output.forPerson("stderr", note), output.note)
        return yield* withRetryAt(last.error, Option.some(until(last)))
      }
      const token = yield* Effect.catchAll(endpoint.acquire(acquisition), (error) =>
        Effect.gen(function*() {
          const from = yield* Clock.currentTimeMillis
          const pause = last === undefined || force ? 1000 : Math.min(2 * last.pause, longestPause)
          const cooldown = { from, pause, error }
          yield* put(cooldown)
          return yield* withRetryAt(error, Option.some(until(cooldown)))
        }))
      if (last !== undefined) yield* end
      return token
    })

/** Headers, body and query may hold secrets. */
export const nameOf = ({ method, url }: HttpClientRequest.HttpClientRequest): string =>
  `${method} ${url.replace(/\?.*/s, "")}`

/** The rest of a URL may repeat the request. */
export const originOf = (location: string | undefined, base?: string): string | undefined =>
  location !== undefined && URL.canParse(location, base) && /^https?:$/.test(new URL(location, base).protocol)
    ? new URL(location, base).origin
    : undefined

/** What `call` and `check` say about a redirect of the API. */
export const redirectRemedy = ({ apiUrl, nameOf }: Settings, { headers }: HttpClientResponse): string =>
  (originOf(headers["location"], apiUrl) === originOf("", apiUrl)
    ? "Use the path that call --include shows"
    : `Set ${nameOf("apiUrl")} to the API itself`) + ", because the token follows no redirect."

/** Reports a request and its outcome, even if a time limit interrupts it. */
const reported = <E, R>(sent: Effect.Effect<HttpClientResponse, E, R>, request: HttpClientRequest.HttpClientRequest) =>
  Effect.flatMap(Clock.currentTimeMillis, (start) =>
    Effect.onExit(sent, (exit) => {
      const outcome = Exit.match(exit, { onFailure: () => "no response", onSuccess: ({ status }) => String(status) })
      const report = (end: number) => output.note(`${nameOf(request)}: ${outcome} (${end - start} ms)`)
      return Effect.flatMap(Clock.currentTimeMillis, report)
    }))

/** The HTTP client of a run, with its own User-Agent, but without trace headers, because nobody collects the traces. */
export const layerHttp = ({ verbose }: { readonly verbose: boolean }) =>
  Layer.effect(
    HttpClient.HttpClient,
    Effect.map(HttpClient.HttpClient, (client) =>
      (verbose ? HttpClient.transform(client, reported) : client).pipe(
        HttpClient.withTracerPropagation(false),
        HttpClient.mapRequest((request) =>
          ["store-api", undefined].includes(request.headers["user-agent"])
            ? HttpClientRequest.setHeader(request, "user-agent", `store-api/${version()}`)
            : request
        )
      ))
  ).pipe(Layer.provide(NodeHttp.layer()))
