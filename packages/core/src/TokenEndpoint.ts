/**
 * Acquires tokens over HTTP: a `TokenSource` that sends the POST of the specification, or the request of another OAuth
 * 2.0 endpoint, with retries within a deadline.
 *
 * @since 1.0.0
 */
import * as HttpClient from "@effect/platform/HttpClient"
import type * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Equal from "effect/Equal"
import * as Layer from "effect/Layer"
import * as Option from "effect/Option"
import * as Predicate from "effect/Predicate"
import * as Random from "effect/Random"
import * as Redacted from "effect/Redacted"
import * as Ref from "effect/Ref"
import type { AccessToken } from "./AccessToken.js"
import {
  type AccessTokenError,
  type ConfigurationError,
  type CredentialsError,
  isTransient,
  TokenRequestError
} from "./AccessTokenError.js"
import type { ClientCredentials } from "./ClientCredentials.js"
import * as backoff from "./internal/backoff.js"
import { endpointUrl } from "./internal/baseUrl.js"
import { clientOf, exchange } from "./internal/endpoint/exchange.js"
import { failedRequest } from "./internal/endpoint/failure.js"
import * as limits from "./internal/endpoint/limits.js"
import * as instant from "./internal/instant.js"
import { checkKinds, positiveDurationOf, unusable } from "./internal/options.js"
import { waitAtMost } from "./internal/waitAtMost.js"
import * as TokenRequest from "./TokenRequest.js"
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
   * The base of the access-token service, to which `path` is appended. It may have a path, but no fragment and no user
   * name. https, or http on this machine. A query is kept (RFC 6749 §3.2), but the request of the specification allows
   * none. Like every query, it is in no span.
   */
  readonly authUrl: string | URL
  /**
   * The path of the token endpoint below `authUrl`. It may have a query, as `authUrl` may. If it is empty, `authUrl` is
   * the whole URL. Default `/v1/oauth/accesstoken` (the specification, "Endpoints").
   */
  readonly path?: string | undefined
  /**
   * How the credentials become a request, and what the token is for. Default `TokenRequest.specification`. For other
   * OAuth 2.0 servers: `TokenRequest.clientSecretPost`, `clientSecretBasic` or `make`.
   */
  readonly request?: TokenRequest.TokenRequest | undefined
  /**
   * The longest lifetime of a token, more than zero. A longer `expires_in` counts as this. Default the `maxLifetime` of
   * `request`, which is 60 minutes for that of the specification, or else 24 hours. More than a year counts as a year.
   */
  readonly maxLifetime?: Duration.DurationInput | undefined
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
   * The provider ends every acquisition after 2 minutes.
   */
  readonly deadline?: Duration.DurationInput | undefined
  /** The largest response in bytes, at least 1. Default 65 536 (64 KiB). */
  readonly maxResponseBytes?: number | undefined
}

/**
 * Creates the source. `acquire` sends a token request (the specification, "Endpoints") and caches nothing. It retries
 * transport errors, timeouts, 408, 5xx, 429 with a `Retry-After`, and `use_dpop_nonce`: at most 5 times within the
 * deadline, after 200 ms doubling to 1 s (times 75 % to 100 %), or after `Retry-After` if that is longer. A first
 * `use_dpop_nonce` is retried at once (RFC 9449 §8). It does not follow redirects.
 *
 * Fails with `ConfigurationError` like `layer`. `acquire` fails with `AccessTokenError`.
 *
 * @example
 * ```ts
 * import { ClientCredentials, TokenEndpoint, TokenSource } from "@store-api/core"
 * import { Effect } from "effect"
 *
 * const token = Effect.gen(function*() {
 *   const source = yield* TokenEndpoint.make({
 *     authUrl: "https://auth.store.example",
 *     credentials: ClientCredentials.fromConfig()
 *   })
 *   return yield* source.acquire(TokenSource.missing)
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
    yield* checkKinds("endpoint", options)
    const { request = TokenRequest.specification } = options
    yield* checkRequest(request)
    const url = yield* endpointUrl(options, request !== TokenRequest.specification)
    const {
      attemptTimeout = limits.defaultAttemptTimeout,
      credentials,
      deadline = limits.defaultDeadline,
      maxLifetime = request.maxLifetime ?? limits.defaultMaxLifetime,
      maxResponseBytes = limits.defaultMaxResponseBytes
    } = options
    if (!Effect.isEffect(credentials)) {
      return yield* unusable("credentials", "must be an Effect")
    }
    if (!Number.isSafeInteger(maxResponseBytes) || maxResponseBytes <= 0) {
      return yield* unusable("endpoint.maxResponseBytes", "must be a whole number from 1")
    }
    const lifeRange = { most: limits.longestLifeMillis }
    const maxLife = yield* positiveDurationOf("endpoint.maxLifetime", maxLifetime, lifeRange)
    const deadlineMillis = yield* positiveDurationOf("endpoint.deadline", deadline)
    const endpoint = {
      client: yield* clientOf(yield* HttpClient.HttpClient),
      url,
      request,
      attemptTimeout: yield* positiveDurationOf("endpoint.attemptTimeout", attemptTimeout),
      maxLife,
      maxResponseBytes
    }
    return TokenSource.make(
      ({ replacing }) =>
        acquisition(
          (credentials) =>
            exchange(endpoint, { credentials, replacing: Option.getOrUndefined(replacing) }),
          credentials,
          deadlineMillis
        ),
      Effect.map(credentials, ({ clientId, clientSecret }) => ({
        name: [url, clientId, request.identity],
        secret: clientSecret,
        maxLifetime: maxLife
      }))
    )
  })

/** A request comes from `TokenRequest`, or from JavaScript. */
const checkRequest = (request: TokenRequest.TokenRequest) =>
  Effect.gen(function*() {
    const isComplete = Predicate.isReadonlyRecord(request) &&
      Predicate.isFunction(request.request) &&
      (Predicate.isString(request.identity) || Redacted.isRedacted(request.identity))
    if (!isComplete) return yield* unusable("endpoint.request", "must come from TokenRequest")
    yield* checkKinds("endpoint.request", request, {
      authentication: "text",
      checkCredentials: "function",
      tokenType: "tokenType"
    })
    const { problem } = request
    if (problem === undefined) return
    return yield* unusable(
      "endpoint.request",
      Predicate.isString(problem) && problem !== ""
        ? problem
        : "must have a text as its problem"
    )
  })

/**
 * Provides the source. Fails with `ConfigurationError` when an option is unusable: besides values of another type, an
 * `authUrl` with a fragment, a user name, another scheme, http to another machine or the path of the endpoint itself, a
 * query for the request of the specification, a wrong parameter of `request`, and a time limit that is not greater than
 * zero.
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

/**
 * Runs one acquisition. If the endpoint refuses the credentials, reads them once more and tries them if they changed.
 */
const acquisition = (
  send: (credentials: ClientCredentials) => Effect.Effect<AccessToken, AccessTokenError>,
  credentials: Options["credentials"],
  deadlineMillis: number
): Effect.Effect<AccessToken, AccessTokenError> =>
  Effect.gen(function*() {
    const end = (yield* instant.now).monotonic + deadlineMillis
    const attempts = yield* Ref.make(0)

    /** Retries while attempts are left and the delay before the next one fits the deadline. */
    const sendWithRetries = (
      credentials: ClientCredentials
    ): Effect.Effect<AccessToken, AccessTokenError> =>
      Effect.gen(function*() {
        const made = yield* Ref.updateAndGet(attempts, (count) => count + 1)
        return yield* Effect.catchIf(send(credentials), isWorthRetrying, (error) =>
          Effect.gen(function*() {
            const now = yield* instant.now
            const pause = made === 1 && wantsNonce(error)
              ? 0
              : backoff.pause(limits.retryDelayMillis, made, yield* Random.next)
            const delay = Math.max(pause, backoff.untilRetry(error, now.wall))
            if (made > limits.maxRetries || now.monotonic + delay >= end) return yield* error
            return yield* Effect.delay(sendWithRetries(credentials), delay)
          }))
      })

    /** Tries changed credentials. If they are unreadable or unchanged, fails with the refusal. */
    const sendChanged = (refused: ClientCredentials, refusal: AccessTokenError) =>
      Effect.gen(function*() {
        const longest = Math.min(
          (end - (yield* instant.now).monotonic) / 2,
          limits.rereadMillis
        )
        const current = yield* credentials.pipe(
          waitAtMost(longest, Effect.succeed(refused)),
          Effect.catchAllCause(() =>
            Effect.succeed(refused)
          )
        )
        return yield* Equal.equals(current, refused)
          ? Effect.fail(refusal)
          : sendWithRetries(current)
      })

    return yield* credentials.pipe(
      Effect.flatMap((first) =>
        Effect.catchIf(sendWithRetries(first), isOfCredentials, (refusal) =>
          sendChanged(first, refusal))
      ),
      waitAtMost(deadlineMillis, failedRequest("Timeout")),
      Effect.catchTag("TokenRequestError", (error) =>
        Effect.flatMap(Ref.get(attempts), (made) =>
          new TokenRequestError({ ...error, attempts: made })))
    )
  })

/** Whether other credentials may help. Some servers say `unauthorized_client` or `invalid_grant` for a wrong secret. */
const isOfCredentials = (error: AccessTokenError): boolean =>
  error._tag === "TokenRefusedError" &&
  (error.reason === "InvalidClient" || error.httpStatus === 401 ||
    error.code === "unauthorized_client" || error.code === "invalid_grant")

/** The next attempt has the nonce of this response in its proof, and another assertion (RFC 9449 §8). */
const wantsNonce = (error: AccessTokenError): boolean =>
  error._tag === "TokenRefusedError" && error.code === "use_dpop_nonce"

/** A 429 without `Retry-After` is not retried. */
const isWorthRetrying = (error: AccessTokenError): boolean =>
  wantsNonce(error) || isTransientAttempt(error)

const isTransientAttempt = (error: AccessTokenError): boolean =>
  error._tag === "TokenRefusedError" && error.reason === "RateLimited"
    ? error.retryAt !== undefined
    : error._tag !== "TokenExpiredError" && isTransient(error)
