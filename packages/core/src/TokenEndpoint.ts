/**
 * `TokenSource` over HTTP: the specification's POST, retried within a deadline, and nothing remembered.
 *
 * @since 0.1.0
 */
import * as Headers from "@effect/platform/Headers"
import * as HttpClient from "@effect/platform/HttpClient"
import type * as HttpClientError from "@effect/platform/HttpClientError"
import * as HttpClientRequest from "@effect/platform/HttpClientRequest"
import type * as HttpClientResponse from "@effect/platform/HttpClientResponse"
import * as Clock from "effect/Clock"
import * as DateTime from "effect/DateTime"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
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
import { baseUrl, withoutTrailingSlash } from "./internal/baseUrl.js"
import * as boundedBody from "./internal/boundedBody.js"
import * as manualRedirect from "./internal/manualRedirect.js"
import { monotonicMillis } from "./internal/monotonicMillis.js"
import { refusal } from "./internal/refusal.js"
import * as retryAfter from "./internal/retryAfter.js"
import * as tokenPolicy from "./internal/tokenPolicy.js"
import * as tokenRequest from "./internal/tokenRequest.js"
import * as transportError from "./internal/transportError.js"
import * as TokenResponse from "./TokenResponse.js"
import * as TokenSource from "./TokenSource.js"

/**
 * Where the endpoint is, who asks, and for how long. Only `authUrl` and `credentials` have to be given.
 *
 * @see layer
 *
 * @since 0.1.0
 * @category models
 */
export interface Options {
  /**
   * The base of the access-token service; `/v1/oauth/accesstoken` is appended (the specification, "Endpoints"). It may have
   * a path, but no fragment (RFC 6749 §3.2), no query and no user name. https, or http on this machine.
   */
  readonly authUrl: string | URL
  /**
   * `ClientCredentials.make` or `fromConfig`, or any effect that yields checked credentials. It is run at each acquisition,
   * so that a secret can change without a restart. When the endpoint rejects the credentials, it is run once more, and
   * changed credentials are tried once.
   */
  readonly credentials: Effect.Effect<ClientCredentials, CredentialsError>
  /** Whether the credentials may go to any host over http. Default `false`: https, or http on this machine. */
  readonly allowInsecure?: boolean | undefined
  /** How long one request and its answer may take, more than zero. Default 10 seconds. */
  readonly attemptTimeout?: Duration.DurationInput | undefined
  /** How long reading the credentials, all attempts and the pauses between them may take, more than zero. Default 30 seconds. */
  readonly deadline?: Duration.DurationInput | undefined
  /** The longest answer that is read, in whole bytes, at least 1. Default 65 536 (64 KiB). */
  readonly maxResponseBytes?: number | undefined
}

/** Attempts beyond the first, and the pauses before them: doubling, jittered by 0.75 to 1. In milliseconds. */
const maxRetries = 5
const pauses = { cooldownBase: 200, cooldownMax: 1000 }

/** How long reading changed credentials may take, after the endpoint rejected the first ones. */
const longestReading = 10_000

const path = "/v1/oauth/accesstoken"

/**
 * The source itself: `acquire` sends the specification's POST ("Endpoints") and keeps nothing. Within the deadline it is
 * retried at most 5 times, after 200 ms doubling to 1 s (75 % to 100 % of that), or what `Retry-After` asks for: on
 * transport errors, timeouts, 408, 5xx, and 429 with a `Retry-After`. A redirect is refused, since credentials follow none.
 *
 * Fails with `ConfigurationError` as `layer` does. `acquire` fails with `AccessTokenError`.
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
 * @since 0.1.0
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
    const credentials = Effect.disconnect(options.credentials) // left behind at the deadline if it cannot be interrupted
    const attemptTimeout = yield* positiveDuration("attemptTimeout", options.attemptTimeout ?? "10 seconds")
    const deadline = yield* positiveDuration("deadline", options.deadline ?? "30 seconds")
    const refusalTimeout = Duration.min("1 second", Duration.times(attemptTimeout, 0.5))
    const maxResponseBytes = options.maxResponseBytes ?? 64 * 1024
    if (!Number.isSafeInteger(maxResponseBytes) || maxResponseBytes < 1) {
      return yield* new ConfigurationError({
        option: "maxResponseBytes",
        reason: "must be a whole number of bytes, at least 1"
      })
    }

    /** One request and its answer. */
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
          Effect.catchTag("ResponseError", filteredResponse)
        )
        // A client that follows redirects has sent the credentials elsewhere. Its response is not that of the endpoint.
        if (isRedirect(response) || response.request.url !== sentTo) {
          return yield* new TokenRequestError({ reason: "Redirect", attempts: 1 })
        }
        const body = boundedBody.read(response, maxResponseBytes)
        if (response.status >= 400) {
          // The status alone is a refusal: a body that breaks or does not end must not turn it into a network fault.
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
              retryAfter.milliseconds(response.headers, now, tokenPolicy.maxRetryAfter),
              (wait) => DateTime.unsafeMake(now + wait)
            )
          })
        }
        const { complete, text } = yield* body
        if (!complete) return yield* new TokenRequestError({ reason: "TooLarge", attempts: 1 })
        return yield* received(yield* TokenResponse.decode(text), requestedAt, yield* Clock.currentTimeMillis)
      },
      Effect.scoped,
      Effect.disconnect, // a client that cannot be interrupted is left behind when the attempt is over
      Effect.catchTags({
        RequestError: (error) => Effect.fail(transportError.fromHttpClientError(error)),
        ResponseError: (error) => Effect.fail(transportError.fromHttpClientError(error))
      }),
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
 * The source as a layer. Fails with `ConfigurationError` when `authUrl` cannot be used (a query, a fragment, a user name,
 * a foreign scheme, http beyond this machine, the path of the endpoint itself), or a duration or size that makes no sense.
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
 * @since 0.1.0
 * @category layers
 */
export const layer = (
  options: Options
): Layer.Layer<TokenSource.TokenSource, ConfigurationError, HttpClient.HttpClient> =>
  Layer.effect(TokenSource.TokenSource, make(options))

/** The whole URL of the endpoint where its base should be is the likeliest mistake, and would look like a refusal. */
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

/** One acquisition. Credentials that the endpoint refused are read once more, and tried if they changed. */
const acquisition = (
  exchange: (credentials: ClientCredentials) => Effect.Effect<AccessToken, AccessTokenError>,
  credentials: Effect.Effect<ClientCredentials, CredentialsError>,
  deadline: Duration.Duration
): Effect.Effect<AccessToken, AccessTokenError> =>
  Effect.flatMap(monotonicMillis, (now) => {
    const end = now + Duration.toMillis(deadline)
    let attempts = 0

    /** Repeats what is worth it while attempts are left and the pause before the next one fits the deadline. */
    const retried = (credentials: ClientCredentials): Effect.Effect<AccessToken, AccessTokenError> =>
      Effect.suspend(() => {
        attempts++
        return exchange(credentials)
      }).pipe(Effect.catchIf(isWorthRetrying, (error) =>
        Effect.gen(function*() {
          const wait = yield* pause(attempts, error)
          if (attempts > maxRetries || (yield* monotonicMillis) + wait >= end) return yield* error
          return yield* Effect.delay(retried(credentials), wait)
        })))

    /** With the credentials as they are now. If they cannot be read or did not change, the endpoint's refusal counts. */
    const retriedWithOthers = (refused: ClientCredentials, refusal: AccessTokenError) =>
      Effect.gen(function*() {
        const longest = Math.min((end - (yield* monotonicMillis)) / 2, longestReading)
        const current = yield* Effect.exit(Effect.timeout(credentials, longest))
        return yield* Exit.isFailure(current) || Equal.equals(current.value, refused)
          ? Effect.fail(refusal)
          : retried(current.value)
      })

    return Effect.flatMap(credentials, (first) =>
      Effect.catchIf(retried(first), isInvalidClient, (refusal) => retriedWithOthers(first, refusal))).pipe(
        Effect.interruptible, // so that the deadline holds in a finalizer too
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

/** An endpoint that limits the rate and names no moment receives no second request from this acquisition. */
const isWorthRetrying = (error: AccessTokenError): boolean =>
  error._tag === "TokenRefusedError" && error.reason === "RateLimited"
    ? Option.isSome(error.retryAt)
    : error._tag !== "TokenExpiredError" && isTransient(error)

/** The pause after so many attempts, or longer if `Retry-After` says so. In whole milliseconds. */
const pause = (attempts: number, error: AccessTokenError): Effect.Effect<number> =>
  Effect.zipWith(Random.next, Clock.currentTimeMillis, (chance, now) => {
    const retryAfter = Option.match(error.retryAt, { onNone: () => 0, onSome: (at) => at.epochMillis - now })
    return Math.max(tokenPolicy.pause(pauses, attempts, chance), retryAfter)
  })

/** The token of an answer, its life counted from before the request was sent. Both times are the wall clock's. */
const received = (
  response: TokenResponse.TokenResponse,
  requestedAt: number,
  now: number
): Effect.Effect<AccessToken, TokenExpiredError> => {
  const expiresAt = requestedAt + Math.max(tokenPolicy.lifeOf(response.expires_in), 0)
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

/** The client's span records all headers: of an answer, each may repeat what was sent. */
const everyName = [/./]

const isRedirect = ({ status }: HttpClientResponse.HttpClientResponse): boolean =>
  status === 0 || (status >= 300 && status < 400) // 0: a browser's opaque redirect

/** A client of the user's may turn statuses into errors; here they are answers. */
const filteredResponse = (error: HttpClientError.ResponseError) =>
  error.reason === "StatusCode" ? Effect.succeed(error.response) : Effect.fail(error)
