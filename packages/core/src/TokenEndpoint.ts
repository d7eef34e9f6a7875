/**
 * Acquires tokens over HTTP: a `TokenSource` that sends the POST of the specification, with retries within a deadline.
 *
 * @since 1.0.0
 */
import * as Headers from "@effect/platform/Headers"
import * as HttpClient from "@effect/platform/HttpClient"
import * as HttpClientError from "@effect/platform/HttpClientError"
import * as HttpClientRequest from "@effect/platform/HttpClientRequest"
import type * as HttpClientResponse from "@effect/platform/HttpClientResponse"
import * as Clock from "effect/Clock"
import * as DateTime from "effect/DateTime"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Either from "effect/Either"
import * as Equal from "effect/Equal"
import * as Exit from "effect/Exit"
import * as Layer from "effect/Layer"
import * as Option from "effect/Option"
import * as Random from "effect/Random"
import { AccessToken } from "./AccessToken.js"
import {
  type AccessTokenError,
  ConfigurationError,
  type CredentialsError,
  isTransient,
  TokenExpiredError,
  TokenRequestError
} from "./AccessTokenError.js"
import type { ClientCredentials } from "./ClientCredentials.js"
import * as backoff from "./internal/backoff.js"
import { baseUrl, withoutTrailingSlash } from "./internal/baseUrl.js"
import * as boundedBody from "./internal/boundedBody.js"
import { disconnected } from "./internal/disconnected.js"
import { refusal } from "./internal/endpoint/refusal.js"
import * as retryAfter from "./internal/endpoint/retryAfter.js"
import * as tokenRequest from "./internal/endpoint/tokenRequest.js"
import * as transportError from "./internal/endpoint/transportError.js"
import * as httpErrors from "./internal/httpErrors.js"
import * as lifetime from "./internal/lifetime.js"
import * as manualRedirect from "./internal/manualRedirect.js"
import { monotonicMillis } from "./internal/monotonicMillis.js"
import * as TokenResponse from "./TokenResponse.js"
import * as TokenSource from "./TokenSource.js"

/**
 * The endpoint, the credentials and the time limits. Required: `authUrl` and `credentials`.
 *
 * @see layer
 *
 * @since 1.0.0
 * @category models
 */
export interface Options {
  /**
   * The base of the access-token service; `/v1/oauth/accesstoken` is appended (the specification, "Endpoints"). It may
   * have a path, but no fragment (RFC 6749 §3.2), no query and no user name. https, or http on this machine.
   */
  readonly authUrl: string | URL
  /**
   * `ClientCredentials.make`, `fromConfig`, or another effect that returns checked credentials. It runs at each
   * acquisition, so a new secret needs no restart. If the endpoint refuses the credentials, it runs once more, and
   * changed credentials are tried once.
   */
  readonly credentials: Effect.Effect<ClientCredentials, CredentialsError>
  /** Whether the credentials may go to any host over http. Default `false`: https, or http on this machine. */
  readonly allowInsecure?: boolean | undefined
  /** The time limit of one request and its response, more than zero. Default 10 seconds. */
  readonly attemptTimeout?: Duration.DurationInput | undefined
  /**
   * The time limit for the credentials, all attempts and the delays between them, more than zero. Default 30 seconds.
   */
  readonly deadline?: Duration.DurationInput | undefined
  /** The largest response in bytes, at least 1. Default 65 536 (64 KiB). */
  readonly maxResponseBytes?: number | undefined
}

/** The attempts after the first, and the delays before them in milliseconds: doubling, times 75 % to 100 %. */
const maxRetries = 5
const retryDelays = { base: 200, max: 1000 }

/** The time limit for reading the credentials again, after the endpoint refused the first ones. In milliseconds. */
const longestRead = 10_000

const path = "/v1/oauth/accesstoken"

/**
 * Creates the source. `acquire` sends the POST of the specification ("Endpoints") and caches nothing. It retries
 * transport errors, timeouts, 408, 5xx, and 429 with a `Retry-After`: at most 5 times within the deadline, after 200 ms
 * doubling to 1 s (times 75 % to 100 %), or after `Retry-After` if that is longer. It does not follow redirects.
 *
 * Fails with `ConfigurationError` like `layer`. `acquire` fails with `AccessTokenError`.
 *
 * @example
 * ```ts
 * import { ClientCredentials, TokenEndpoint } from "@store-api/core"
 * import { Effect, Option } from "effect"
 *
 * const token = Effect.gen(function*() {
 *   const source = yield* TokenEndpoint.make({
 *     authUrl: "https://auth.store.example",
 *     credentials: ClientCredentials.fromConfig()
 *   })
 *   return yield* source.acquire(Option.none())
 * })
 * ```
 *
 * @since 1.0.0
 * @category constructors
 */
export const make = (
  options: Options
): Effect.Effect<TokenSource.Service, ConfigurationError, HttpClient.HttpClient> =>
  Effect.gen(function*() {
    const url = yield* endpointBase(options)
    const client = HttpClient.withTracerPropagation(HttpClient.withScope(yield* HttpClient.HttpClient), false)
    const withoutRedirects = yield* manualRedirect.make
    const request = HttpClientRequest.post(withoutTrailingSlash(url) + path).pipe(
      HttpClientRequest.acceptJson
    )
    const credentials = disconnected(options.credentials) // the deadline does not wait for an uninterruptible effect
    const attemptTimeout = yield* positiveDuration("attemptTimeout", options.attemptTimeout ?? "10 seconds")
    const deadline = yield* positiveDuration("deadline", options.deadline ?? "30 seconds")
    const refusalTimeout = Math.min(1000, Duration.toMillis(attemptTimeout) / 2)
    const maxResponseBytes = options.maxResponseBytes ?? 64 * 1024
    if (!Number.isSafeInteger(maxResponseBytes) || maxResponseBytes < 1) {
      return yield* new ConfigurationError({
        option: "maxResponseBytes",
        reason: "must be a whole number of bytes, at least 1"
      })
    }

    /** Sends one request and reads its response. */
    const exchange = Effect.fnUntraced(
      function*(credentials: ClientCredentials, replacing: Option.Option<AccessToken>) {
        const requestedAt = yield* Clock.currentTimeMillis
        let sentTo = request.url
        const watched = HttpClient.mapRequest(client, (leaving) => {
          sentTo = leaving.url
          return leaving
        })
        const response = yield* watched.execute(
          HttpClientRequest.setBody(request, tokenRequest.body(credentials))
        ).pipe(
          withoutRedirects,
          Effect.locally(Headers.currentRedactedNames, everyName),
          Effect.catchIf(HttpClientError.isHttpClientError, filteredResponse)
        )
        // A client that follows redirects has sent the credentials elsewhere. Its response is not that of the endpoint.
        if (isRedirect(response) || response.request.url !== sentTo) {
          return yield* new TokenRequestError({ reason: "Redirect", attempts: 1 })
        }
        const body = boundedBody.read(response, maxResponseBytes)
        if (response.status >= 400) {
          // The status is enough: a body that breaks or never ends must not turn a refusal into a transport error.
          const { text } = yield* Effect.orElseSucceed(Effect.timeout(body, refusalTimeout), () => ({ text: "" }))
          const now = yield* Clock.currentTimeMillis
          return yield* refusal({
            status: response.status,
            body: text,
            secrets: [
              ...tokenRequest.secrets(credentials),
              ...Option.toArray(replacing).map(({ value }) => value)
            ],
            changedByFormDecoding: tokenRequest.changeWhenDecoded(credentials),
            challenge: response.headers["www-authenticate"],
            retryAt: Option.map(
              retryAfter.milliseconds(response.headers, now, backoff.maxRetryAfter),
              (wait) => DateTime.unsafeMake(now + wait)
            )
          })
        }
        const { complete, text } = yield* body
        if (!complete) return yield* new TokenRequestError({ reason: "TooLarge", attempts: 1 })
        return yield* received(yield* decoded(text), requestedAt, yield* Clock.currentTimeMillis)
      },
      Effect.scoped,
      disconnected, // the timeout does not wait for an uninterruptible client
      Effect.catchIf(
        HttpClientError.isHttpClientError,
        (error) => Effect.fail(transportError.fromHttpClientError(error))
      ),
      Effect.timeoutFail({
        duration: attemptTimeout,
        onTimeout: () => new TokenRequestError({ reason: "Timeout", attempts: 1 })
      }),
      Effect.withSpan("TokenEndpoint.request", { captureStackTrace: false })
    )

    return TokenSource.make((replacing) =>
      acquisition((credentials) => exchange(credentials, replacing), credentials, deadline)
    )
  })

/**
 * Provides the source. Fails with `ConfigurationError` when `authUrl` is unusable (a query, a fragment, a user name,
 * another scheme, http to another machine, or the path of the endpoint itself), or when a duration or a size is.
 *
 * @example
 * ```ts
 * import { FetchHttpClient } from "@effect/platform"
 * import { ClientCredentials, TokenEndpoint } from "@store-api/core"
 * import { Layer } from "effect"
 *
 * const source = TokenEndpoint.layer({
 *   authUrl: "https://auth.store.example",
 *   credentials: ClientCredentials.fromConfig()
 * }).pipe(Layer.provide(FetchHttpClient.layer))
 * ```
 *
 * @since 1.0.0
 * @category layers
 */
export const layer = (
  options: Options
): Layer.Layer<TokenSource.TokenSource, ConfigurationError, HttpClient.HttpClient> =>
  Layer.effect(TokenSource.TokenSource, make(options))

/** Checks the base URL. The full URL of the endpoint is a common mistake, which would look like a refusal. */
const endpointBase = (options: Options): Effect.Effect<URL, ConfigurationError> =>
  Effect.filterOrFail(
    baseUrl("authUrl", options.authUrl, options.allowInsecure ?? false),
    (url) => !withoutTrailingSlash(url).endsWith(path),
    () => new ConfigurationError({ option: "authUrl", reason: `must be the base URL, without ${path}` })
  )

const positiveDuration = (
  option: string,
  duration: Duration.DurationInput
): Effect.Effect<Duration.Duration, ConfigurationError> =>
  Effect.filterOrFail(
    Effect.sync(() => Duration.decode(duration)),
    Duration.greaterThan(Duration.zero),
    () => new ConfigurationError({ option, reason: "must be greater than zero" })
  )

/**
 * Runs one acquisition. If the endpoint refuses the credentials, reads them once more and tries them if they changed.
 */
const acquisition = (
  exchange: (credentials: ClientCredentials) => Effect.Effect<AccessToken, AccessTokenError>,
  credentials: Effect.Effect<ClientCredentials, CredentialsError>,
  deadline: Duration.Duration
): Effect.Effect<AccessToken, AccessTokenError> =>
  Effect.flatMap(monotonicMillis, (now) => {
    const end = now + Duration.toMillis(deadline)
    let attempts = 0

    /** Retries while attempts are left and the delay before the next one fits the deadline. */
    const retried = (credentials: ClientCredentials): Effect.Effect<AccessToken, AccessTokenError> =>
      Effect.suspend(() => {
        attempts++
        return exchange(credentials)
      }).pipe(Effect.catchIf(isWorthRetrying, (error) =>
        Effect.gen(function*() {
          const wait = yield* retryDelay(attempts, error)
          if (attempts > maxRetries || (yield* monotonicMillis) + wait >= end) return yield* error
          return yield* Effect.delay(retried(credentials), wait)
        })))

    /** Tries changed credentials. If they are unreadable or unchanged, fails with the refusal. */
    const retriedWithChanged = (refused: ClientCredentials, refusal: AccessTokenError) =>
      Effect.gen(function*() {
        const longest = Math.min((end - (yield* monotonicMillis)) / 2, longestRead)
        const current = yield* Effect.exit(Effect.timeout(credentials, longest))
        return yield* Exit.isFailure(current) || Equal.equals(current.value, refused)
          ? Effect.fail(refusal)
          : retried(current.value)
      })

    return Effect.flatMap(credentials, (first) =>
      Effect.catchIf(retried(first), isInvalidClient, (refusal) => retriedWithChanged(first, refusal))).pipe(
        Effect.interruptible, // so that the deadline also works in a finalizer
        Effect.timeoutFail({
          duration: deadline,
          onTimeout: () =>
            new TokenRequestError({ reason: "Timeout", attempts })
        }),
        Effect.mapError((error) =>
          error._tag === "TokenRequestError" ? new TokenRequestError({ ...error, attempts }) : error
        )
      )
  })

const isInvalidClient = (error: AccessTokenError): boolean =>
  error._tag === "TokenRefusedError" && error.reason === "InvalidClient"

/** A 429 without `Retry-After` is not retried. */
const isWorthRetrying = (error: AccessTokenError): boolean =>
  error._tag === "TokenRefusedError" && error.reason === "RateLimited"
    ? Option.isSome(error.retryAt)
    : error._tag !== "TokenExpiredError" && isTransient(error)

/** The delay before the next attempt in whole milliseconds: that of `Retry-After`, if it is longer. */
const retryDelay = (attempts: number, error: AccessTokenError): Effect.Effect<number> =>
  Effect.zipWith(Random.next, Clock.currentTimeMillis, (chance, now) => {
    const retryAfter = Option.match(error.retryAt, { onNone: () => 0, onSome: (at) => at.epochMillis - now })
    return Math.max(backoff.pause(retryDelays, attempts, chance), retryAfter)
  })

const decoded = (text: string) =>
  Either.match(TokenResponse.decode(text), { onLeft: Effect.fail, onRight: Effect.succeed })

/** The token of a response. Its lifetime starts when the request was sent. Both times are those of the wall clock. */
const received = (
  response: TokenResponse.TokenResponse,
  requestedAt: number,
  now: number
): Effect.Effect<AccessToken, TokenExpiredError> => {
  const expiresAt = requestedAt + Math.max(lifetime.lifeOf(response.expires_in), 0)
  if (expiresAt <= Math.max(requestedAt, now)) {
    return Effect.fail(
      new TokenExpiredError({
        reason: "DeadOnArrival",
        expiredAt: DateTime.unsafeMake(expiresAt),
        checkedAt: DateTime.unsafeMake(now)
      })
    )
  }
  return Effect.succeed(
    new AccessToken({
      value: response.access_token,
      scope: Option.getOrElse(response.scope, () => ""),
      acquiredAt: DateTime.unsafeMake(requestedAt),
      expiresAt: DateTime.unsafeMake(expiresAt),
      applicationName: response.application_name,
      developerEmail: response["developer.email"],
      issuedAt: response.issued_at,
      clientId: response.client_id
    })
  )
}

/** All headers, because the span of the HTTP client records them, and a response header may repeat a secret. */
const everyName = [/./]

const isRedirect = ({ status }: HttpClientResponse.HttpClientResponse): boolean =>
  status === 0 || (status >= 300 && status < 400) // 0: a browser's opaque redirect

/** The given client may turn error statuses into errors. */
const filteredResponse = (error: HttpClientError.HttpClientError) => {
  const response = httpErrors.statusResponse(error)
  return response === undefined ? Effect.fail(error) : Effect.succeed(response)
}
