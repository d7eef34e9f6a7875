/**
 * All errors raised while acquiring a token: the family `AccessTokenError`. Two more errors are not part of it:
 * `ConfigurationError`, raised while a layer is built, and `UntrustedOriginError`, raised by the authorized client.
 *
 * No error contains a secret, a token, or a request or response of the HTTP client. From a server's response, errors
 * keep only a short code and a sanitised description. `JSON.stringify`, `console.log` and Effect's loggers show the
 * message of an error.
 *
 * @since 1.0.0
 */
import * as Clock from "effect/Clock"
import * as DateTime from "effect/DateTime"
import * as Effect from "effect/Effect"
import { dual } from "effect/Function"
import * as Option from "effect/Option"
import * as Schedule from "effect/Schedule"
import * as Schema from "effect/Schema"
import * as advice from "./internal/advice.js"
import { withMessage } from "./internal/withMessage.js"

/** The earliest time for another attempt: that of the endpoint's `Retry-After`, or the end of the cooldown. */
const RetryAt = /* @__PURE__ */ Schema.optional(Schema.DateTimeUtc)

const OptionalText = /* @__PURE__ */ Schema.optional(Schema.String)

/**
 * The names that a program gives to the options of this library, for error messages: `{ authUrl: "--auth-url" }`.
 * Options that are not listed keep their own names.
 *
 * @see TokenRequestError
 *
 * @since 1.0.0
 * @category models
 */
export interface OptionNames {
  readonly [option: string]: string | undefined
}

/**
 * A token has expired (the specification, "States and transitions").
 *
 * - `Elapsed`: its lifetime, by `expires_in` or 60 minutes, is over.
 * - `ClockMovedBack`: the wall clock is before the time when the token was acquired, so its age is unknown.
 * - `DeadOnArrival`: the endpoint returned a token that had already expired.
 *
 * What to do: get another token from `AccessTokenProvider.get`. For `DeadOnArrival`, check the system clock and the
 * `expires_in` of the response.
 *
 * @example
 * ```ts
 * import { AccessTokenProvider } from "@store-api/core"
 * import { Effect } from "effect"
 *
 * const held = Effect.flatMap(AccessTokenProvider.AccessTokenProvider, (provider) => provider.current).pipe(
 *   Effect.catchTag("TokenExpiredError", (error) => Effect.logInfo(`expired (${error.reason})`))
 * )
 * ```
 *
 * @since 1.0.0
 * @category errors
 */
export class TokenExpiredError
  extends /* @__PURE__ */ withMessage(() =>
    Schema.TaggedError<TokenExpiredError>("@store-api/core/TokenExpiredError")(
      "TokenExpiredError",
      {
        /** Why, as listed above. */
        reason: Schema.Literal("Elapsed", "ClockMovedBack", "DeadOnArrival"),
        /** When the token expired, by the wall clock. */
        expiredAt: Schema.DateTimeUtc,
        /** When it was checked, by the wall clock. */
        checkedAt: Schema.DateTimeUtc,
        /** The end of the cooldown, if there is one. Default none. */
        retryAt: RetryAt
      }
    )
  )
{
  /** The message, which contains no option names. */
  describe(): string {
    const expired = DateTime.formatIso(this.expiredAt)
    const sentences = {
      Elapsed:
        `The access token expired at ${expired}: get a new one from AccessTokenProvider`,
      ClockMovedBack: "The system clock moved back since the access token was acquired: " +
        "get a new one from AccessTokenProvider",
      DeadOnArrival:
        `The token endpoint returned a token that had already expired at ${expired}: ` +
        "check the system clock and the expires_in of the response"
    }
    return sentences[this.reason] + advice.retryAfter(this.retryAt)
  }
}

/**
 * The client credentials are missing, unreadable, or cannot be sent. The specification sends them unencoded, so it
 * allows no `&`, no control characters and no characters beyond ASCII.
 *
 * What to do: correct the configuration, or request other credentials from the store (RFC 6749 §A.1, §A.2; the
 * specification, "Endpoints").
 *
 * @example
 * ```ts
 * import { ClientCredentials } from "@store-api/core"
 * import { Effect, Redacted } from "effect"
 *
 * const credentials = ClientCredentials.make({ clientId: "demo-client", clientSecret: Redacted.make("one&two") }).pipe(
 *   Effect.catchTag("CredentialsError", ({ field, reason }) => Effect.die(`${field} ${reason}`))
 * )
 * ```
 *
 * @since 1.0.0
 * @category errors
 */
export class CredentialsError
  extends /* @__PURE__ */ withMessage(() =>
    Schema.TaggedError<CredentialsError>("@store-api/core/CredentialsError")(
      "CredentialsError",
      {
        /** The credential. */
        field: Schema.Literal("clientId", "clientSecret", "clientAssertion"),
        /** The problem, as the end of a sentence: "is empty". Never the value. */
        reason: Schema.String,
        /** The variable of the configuration that it was read from, such as `STORE_API_CLIENT_ID`. Default none. */
        variable: OptionalText,
        /** Never set, because the credentials must change first. Each `AccessTokenError` has this field. */
        retryAt: RetryAt
      }
    )
  )
{
  /** The message, with the names that a program gives to the options. */
  describe(names: OptionNames = {}): string {
    const name = names[this.field] ?? this.variable ?? `The ${this.field}`
    const remedy = this.field === "clientAssertion"
      ? "check the configuration of the assertion"
      : "correct the client credentials"
    return `${name} ${this.reason}: ${remedy}.`
  }
}

/**
 * The token request got no usable response.
 *
 * - `Transport`: the connection failed or broke.
 * - `Timeout`: no response within the deadline.
 * - `Certificate`: the TLS certificate of the endpoint is not trusted.
 * - `Proxy`: a proxy refused the connection, because it needs another user name and password (407, RFC 9110 §15.5.8).
 * - `Redirect`: the endpoint redirected the request. Credentials are not sent to another URL.
 * - `TooLarge`: the response was longer than `maxResponseBytes`.
 * - `Closed`: the scope of the layer is closed or, if there is a `code`, that of the layer of the HTTP client.
 *
 * What to do: retry `Transport` and `Timeout`, not before `retryAt`. The other causes need a person.
 *
 * @example
 * ```ts
 * import { AccessTokenProvider } from "@store-api/core"
 * import { Effect } from "effect"
 *
 * const token = Effect.flatMap(AccessTokenProvider.AccessTokenProvider, (provider) => provider.get).pipe(
 *   Effect.tapErrorTag("TokenRequestError", ({ attempts, reason }) =>
 *     Effect.logWarning(`no token: ${reason} after ${attempts} attempts`))
 * )
 * ```
 *
 * @since 1.0.0
 * @category errors
 */
export class TokenRequestError
  extends /* @__PURE__ */ withMessage(() =>
    Schema.TaggedError<TokenRequestError>("@store-api/core/TokenRequestError")(
      "TokenRequestError",
      {
        /** Why, as listed above. */
        reason: Schema.Literal(
          "Transport",
          "Timeout",
          "Certificate",
          "Proxy",
          "Redirect",
          "TooLarge",
          "Closed"
        ),
        /** The number of attempts in this acquisition. */
        attempts: Schema.NonNegativeInt,
        /** The error code of the system, such as `ECONNREFUSED`. Default none. */
        code: OptionalText,
        /** The end of the cooldown, if there is one. Default none. */
        retryAt: RetryAt
      }
    )
  )
{
  /** The message, with the names that a program gives to the options. */
  describe(names: OptionNames = {}): string {
    return advice.ofFailedRequest(this, names)[this.reason] + advice.retryAfter(this.retryAt)
  }
}

/**
 * The token endpoint refused the request (RFC 6749 §5.2, or a gateway's form of it). A successful response with an
 * error and no token is a refusal too, with the reason that its code has.
 *
 * - `InvalidClient`: it does not accept these credentials. Correct them.
 * - `InvalidRequest`: it does not accept the request. Check `authUrl`. If the server is not the specification's, also
 *   check `path` and the parameters.
 * - `RateLimited`: too many requests. Send fewer, and none before `retryAt`.
 * - `Unavailable`: it cannot respond now (408, 5xx). Retry.
 * - `Other`: any other status, or a 401 that comes from an API. Check `authUrl`, and what the client is allowed to do.
 *
 * `code` and `description` come from the response. They are dropped if they contain the secret, a token, or another
 * header or parameter of the request with at least 8 characters: as sent, escaped or in base64. A registered code is
 * kept. In a description, the client id becomes `<client id>`, and control characters become spaces.
 *
 * @example
 * ```ts
 * import { AccessTokenProvider } from "@store-api/core"
 * import { Effect } from "effect"
 *
 * const token = Effect.flatMap(AccessTokenProvider.AccessTokenProvider, (provider) => provider.get).pipe(
 *   Effect.catchTag("TokenRefusedError", (error) =>
 *     error.reason === "InvalidClient" ? Effect.die(error.message) : Effect.fail(error))
 * )
 * ```
 *
 * @since 1.0.0
 * @category errors
 */
export class TokenRefusedError
  extends /* @__PURE__ */ withMessage(() =>
    Schema.TaggedError<TokenRefusedError>("@store-api/core/TokenRefusedError")(
      "TokenRefusedError",
      {
        /** Why, as listed above. */
        reason: Schema.Literal(
          "InvalidClient",
          "InvalidRequest",
          "RateLimited",
          "Unavailable",
          "Other"
        ),
        /** The HTTP status of the response. */
        httpStatus: Schema.Int,
        /** The error code of the response, such as `invalid_client`, at most 100 characters. Default none. */
        code: OptionalText,
        /** The description in the response, in one line of at most 256 characters. Default none. */
        description: OptionalText,
        /**
         * Whether a server that form-decodes the credentials reads other values than one that does not. That is so if
         * they were sent unencoded or with Basic and contain `+` or `%`, or with Basic a character beyond ASCII or a
         * colon in the id. Default `false`.
         */
        changedByFormDecoding: Schema.propertySignature(Schema.Boolean).pipe(
          Schema.withConstructorDefault(() => false)
        ),
        /**
         * A refused credential that looks wrong, and the end of a sentence about it: it is in quotes, has a space at an
         * end, or starts with a byte order mark. Never the value. Default none.
         */
        suspect: Schema.optional(
          Schema.Struct({
            field: Schema.Literal("clientId", "clientSecret"),
            reason: Schema.String
          })
        ),
        /**
         * The things to check if the client is refused, as the `TokenRequest` names them. Default none, which means the
         * client id and secret.
         */
        authentication: Schema.optional(Schema.String),
        /** The time of `Retry-After` (RFC 9110 §10.2.3), or the end of the cooldown. Default none. */
        retryAt: RetryAt
      }
    )
  )
{
  /** The message, with the names that a program gives to the options. */
  describe(names: OptionNames = {}): string {
    const details = [`status ${this.httpStatus}`, this.code, this.description]
      .filter((detail) => detail !== undefined)
      .join(", ")
      .replace(/\.?\s*$/, "")
    return `The token endpoint refused the request (${details}): ` +
      advice.ofRefusal(this, names) + advice.retryAfter(this.retryAt)
  }
}

/**
 * A successful response contains no usable token (RFC 6749 §5.1; the specification, "Token response"), or the token
 * cannot be sent in a header. What to do: check `authUrl`. The server may be another one, or have changed.
 *
 * @example
 * ```ts
 * import { type AccessTokenError, TokenResponse } from "@store-api/core"
 * import { Either } from "effect"
 *
 * const pathsOf = ({ problems }: AccessTokenError.TokenResponseError) => problems.map(({ path }) => path)
 *
 * // ["access_token"]
 * const paths = Either.mapLeft(TokenResponse.decode(`{"token_type":"bearer"}`), pathsOf)
 * ```
 *
 * @since 1.0.0
 * @category errors
 */
export class TokenResponseError
  extends /* @__PURE__ */ withMessage(() =>
    Schema.TaggedError<TokenResponseError>("@store-api/core/TokenResponseError")(
      "TokenResponseError",
      {
        /** The path of each unusable field (`""` for the whole body) and what was expected. Never a value. */
        problems: Schema.Array(
          Schema.Struct({ path: Schema.String, expected: Schema.String })
        ),
        /** The end of the cooldown, if there is one. Default none. */
        retryAt: RetryAt
      }
    )
  )
{
  /** The message, with the names that a program gives to the options. */
  describe(names: OptionNames = {}): string {
    const problems = this.problems.map(({ expected, path }) =>
      `${path === "" ? "the body" : path} must be ${expected}`
    )
    return `The token endpoint returned no usable token (${problems.join("; ")}): ` +
      `check ${advice.nameOf("authUrl", names)}${advice.retryAfter(this.retryAt)}`
  }
}

/**
 * An option or a variable is unusable: it has another type, is NaN or negative, makes no sense together with another
 * option, or is missing although another one needs it. Raised while a layer is built, and therefore not part of
 * `AccessTokenError`. What to do: correct the named option.
 *
 * @example
 * ```ts
 * import { AuthorizedHttpClient, StoreAuth } from "@store-api/core"
 * import { Effect } from "effect"
 *
 * const program = Effect.asVoid(AuthorizedHttpClient.AuthorizedHttpClient).pipe(
 *   Effect.provide(StoreAuth.layerConfig()),
 *   Effect.catchTag("ConfigurationError", ({ option, reason }) => Effect.logError(`${option} ${reason}`))
 * )
 * ```
 *
 * @since 1.0.0
 * @category errors
 */
export class ConfigurationError
  extends /* @__PURE__ */ withMessage(() =>
    Schema.TaggedError<ConfigurationError>("@store-api/core/ConfigurationError")(
      "ConfigurationError",
      {
        /**
         * The path of the option in the options of `NodeStoreAuth`, such as `authUrl` or `shared.lease`, the name of a
         * store with its option, such as `SqlTokenStore.table`, or a variable, such as `HTTPS_PROXY`.
         */
        option: Schema.String,
        /** The problem, as the end of a sentence: "must not have a query". Never the value. */
        reason: Schema.String,
        /** The option that permits this value, if there is one: `allowInsecure`. Default none. */
        permittedBy: OptionalText
      }
    )
  )
{
  /** The message, with the names that a program gives to the options. */
  describe(names: OptionNames = {}): string {
    const unless = this.permittedBy === undefined
      ? ""
      : `, unless ${advice.nameOf(this.permittedBy, names)} is set`
    return `${names[this.option] ?? `The option ${this.option}`} ${this.reason}${unless}.`
  }
}

/**
 * A request to an origin that may not receive the token (RFC 6750 §5.3). The request was not sent. What to do: correct
 * its URL, or add the origin to `trustedOrigins`.
 *
 * @example
 * ```ts
 * import { AuthorizedHttpClient } from "@store-api/core"
 * import { Effect } from "effect"
 *
 * const image = Effect.flatMap(AuthorizedHttpClient.AuthorizedHttpClient, (client) =>
 *   client.get("https://images.example/1.png")).pipe(
 *     Effect.catchTag("UntrustedOriginError", ({ origin }) => Effect.die(`no token for ${origin}`))
 *   )
 * ```
 *
 * @since 1.0.0
 * @category errors
 */
export class UntrustedOriginError
  extends /* @__PURE__ */ withMessage(() =>
    Schema.TaggedError<UntrustedOriginError>("@store-api/core/UntrustedOriginError")(
      "UntrustedOriginError",
      {
        /** The origin of the request, or a description if it has none ("an invalid URL"). */
        origin: Schema.String,
        /** The origins that may receive the token: that of `apiUrl`, and `trustedOrigins`. */
        trusted: Schema.Array(Schema.String)
      }
    )
  )
{
  /** The message, with the names that a program gives to the options. */
  describe(names: OptionNames = {}): string {
    return `The request was not sent, because the access token may only go to ${
      this.trusted.join(", ")
    }, ` +
      `not to ${this.origin}: correct the URL, or add the origin to ${
        advice.nameOf("client.trustedOrigins", names)
      }.`
  }
}

/**
 * All errors of `AccessTokenProvider.get` and `TokenSource.acquire`. Each has a `message`, which says what to do, and a
 * `retryAt`.
 *
 * @example
 * ```ts
 * import { type AccessTokenError, AccessTokenProvider } from "@store-api/core"
 * import { Effect } from "effect"
 *
 * const advice = (error: AccessTokenError.AccessTokenError) => `${error._tag}: ${error.message}`
 *
 * const token = Effect.flatMap(AccessTokenProvider.AccessTokenProvider, (provider) => provider.get).pipe(
 *   Effect.tapError((error) => Effect.logError(advice(error)))
 * )
 * ```
 *
 * @since 1.0.0
 * @category errors
 */
export type AccessTokenError =
  | TokenExpiredError
  | CredentialsError
  | TokenRequestError
  | TokenRefusedError
  | TokenResponseError

/**
 * The schema of all these errors, to send them to another process. Encoded errors are plain objects without secrets.
 *
 * @example
 * ```ts
 * import { AccessTokenError } from "@store-api/core"
 * import { Schema } from "effect"
 *
 * const encode = Schema.encodeSync(AccessTokenError.AccessTokenError)
 * ```
 *
 * @since 1.0.0
 * @category schemas
 */
export const AccessTokenError = /* @__PURE__ */ Schema.Union(
  TokenExpiredError,
  CredentialsError,
  TokenRequestError,
  TokenRefusedError,
  TokenResponseError
)

/**
 * Returns whether a value is an `AccessTokenError`. `ConfigurationError` and `UntrustedOriginError` are not.
 *
 * @example
 * ```ts
 * import { AccessTokenError, AuthorizedHttpClient } from "@store-api/core"
 * import { Effect } from "effect"
 *
 * const orders = Effect.flatMap(AuthorizedHttpClient.AuthorizedHttpClient, (client) => client.get("/orders")).pipe(
 *   Effect.catchIf(AccessTokenError.isAccessTokenError, (error) => Effect.die(error.message))
 * )
 * ```
 *
 * @since 1.0.0
 * @category refinements
 */
export const isAccessTokenError: (error: unknown) => error is AccessTokenError =
  /* @__PURE__ */ Schema.is(
    AccessTokenError
  )

/**
 * Returns whether the same call may succeed later. True for `Transport`, `Timeout`, `RateLimited`, `Unavailable` and an
 * expired token. False for all other errors. To retry, use `atRetryAt`: before `retryAt`, a retry sends nothing.
 *
 * @example
 * ```ts
 * import { AccessTokenError } from "@store-api/core"
 *
 * const statusFor = (error: AccessTokenError.AccessTokenError) => AccessTokenError.isTransient(error) ? 503 : 502
 * ```
 *
 * @since 1.0.0
 * @category combinators
 */
export const isTransient = (error: unknown): boolean =>
  isAccessTokenError(error) &&
  (error._tag === "TokenExpiredError" || transient.includes(reasonOf(error)))

/** Another attempt helps after these reasons, if nothing else changes. */
const transient: ReadonlyArray<unknown> = [
  "Transport",
  "Timeout",
  "RateLimited",
  "Unavailable"
]

/** Another attempt is useless after these reasons, unless something else changes. */
const lasting: ReadonlyArray<unknown> = [
  "Certificate",
  "Proxy",
  "Redirect",
  "Closed",
  "InvalidClient",
  "InvalidRequest"
]

/** The reason of a request that failed or was refused. Other errors have none. */
const reasonOf = (error: AccessTokenError) =>
  error._tag === "TokenRequestError" || error._tag === "TokenRefusedError"
    ? error.reason
    : undefined

/**
 * Returns the earliest time for another attempt, by the wall clock, if it is known. None for errors of other families.
 *
 * @example
 * ```ts
 * import { AccessTokenError } from "@store-api/core"
 * import { DateTime, Option } from "effect"
 *
 * const retryAfterHeader = (error: unknown) =>
 *   Option.map(AccessTokenError.retryAt(error), (at) => DateTime.toDateUtc(at).toUTCString())
 * ```
 *
 * @since 1.0.0
 * @category combinators
 */
export const retryAt = (error: unknown): Option.Option<DateTime.Utc> =>
  Option.fromNullable(isAccessTokenError(error) ? error.retryAt : undefined)

/**
 * Returns a schedule that retries a transient error up to `times` times, each time at the `retryAt` of the error, or
 * after a second if it has none. Any other error ends it, so that you can use it for requests to an API as well.
 *
 * A shorter pause is useless: until `retryAt` the provider sends no token request, and every `get` fails with the same
 * error. The first pauses after an outage take about 1, 2 and 4 seconds, and a `Retry-After` may take up to an hour.
 *
 * @example
 * ```ts
 * import { AccessTokenError, AccessTokenProvider } from "@store-api/core"
 * import { Effect } from "effect"
 *
 * const token = Effect.flatMap(AccessTokenProvider.AccessTokenProvider, (provider) => provider.get).pipe(
 *   Effect.retry(AccessTokenError.atRetryAt(3))
 * )
 * ```
 *
 * @since 1.0.0
 * @category schedules
 */
export const atRetryAt = (times: number): Schedule.Schedule<unknown> =>
  Schedule.recurs(times).pipe(
    Schedule.passthrough,
    Schedule.whileInput(isTransient),
    // Last, because it waits: there is no next attempt when an earlier one has ended the schedule.
    Schedule.addDelayEffect((error) => Effect.as(waitForRetry(error), 0))
  )

const waitForRetry = (error: unknown): Effect.Effect<void> => {
  const untilRetry = Effect.map(Clock.currentTimeMillis, (now) => {
    const at = Option.getOrUndefined(retryAt(error))
    return at === undefined ? undefined : Math.max(at.epochMillis - now, 0)
  })
  return Effect.gen(function*() {
    yield* Effect.sleep((yield* untilRetry) ?? 1000)
    // A timer of a busy process may end a little too early. Not longer, because the wall clock may have been set back.
    yield* Effect.sleep(Math.min((yield* untilRetry) ?? 0, 100))
  })
}

/**
 * Returns the error with another `retryAt`, for your own `TokenSource`. Errors that another attempt does not fix
 * never have a `retryAt`: `CredentialsError`, `Certificate`, `Proxy`, `Redirect`, `Closed`, `InvalidClient` and
 * `InvalidRequest`.
 *
 * @example
 * ```ts
 * import { AccessTokenError } from "@store-api/core"
 * import { DateTime, Effect, Option } from "effect"
 *
 * const notBefore = (at: DateTime.Utc) => Effect.mapError(AccessTokenError.withRetryAt(Option.some(at)))
 * ```
 *
 * @since 1.0.0
 * @category combinators
 */
export const withRetryAt: {
  (retryAt: Option.Option<DateTime.Utc>): (error: AccessTokenError) => AccessTokenError
  (error: AccessTokenError, retryAt: Option.Option<DateTime.Utc>): AccessTokenError
} = /* @__PURE__ */ dual(
  2,
  (error: AccessTokenError, retryAt: Option.Option<DateTime.Utc>): AccessTokenError => {
    const isLasting = error._tag === "CredentialsError" || lasting.includes(reasonOf(error))
    const allowed = isLasting ? undefined : Option.getOrUndefined(retryAt)
    if (allowed?.epochMillis === error.retryAt?.epochMillis) return error
    // The class of the error makes the copy, so it is of the same class.
    return Reflect.construct(error.constructor, [{
      ...error,
      retryAt: allowed
    }]) as AccessTokenError
  }
)
