/**
 * Every way in which having a token can fail, one family: `AccessTokenError`. Two errors stand beside it:
 * `ConfigurationError`, raised while a layer is built, and `UntrustedOriginError`, raised by the authorized client.
 *
 * No error holds a secret, a token, or a request or response of the HTTP client; what a server said is kept only as a
 * short code and a sanitised description.
 *
 * @since 0.1.0
 */
import * as DateTime from "effect/DateTime"
import * as Equal from "effect/Equal"
import * as Option from "effect/Option"
import * as Schema from "effect/Schema"

const optional = <A, I>(schema: Schema.Schema<A, I>) =>
  Schema.optionalWith(schema, { as: "Option" }).pipe(Schema.withConstructorDefault(() => Option.none<A>()))

/** When asking again makes sense: what the endpoint said, or the end of the provider's cooldown. */
const RetryAt = optional(Schema.DateTimeUtc)

const OptionalText = optional(Schema.String)

/**
 * What a program calls the options of this library, for messages in its own words: `{ authUrl: "--auth-url" }`. Others keep
 * their names.
 *
 * @see TokenRequestError
 *
 * @since 0.1.0
 * @category models
 */
export interface OptionNames {
  readonly [option: string]: string | undefined
}

const nameOf = (option: string, names: OptionNames): string => names[option] ?? option

/** The end of a message: the moment from when asking again may help. */
const retryAfter = (retryAt: Option.Option<DateTime.Utc>): string =>
  Option.match(retryAt, { onNone: () => "", onSome: (at) => ` Retry after ${DateTime.formatIso(at)}.` })

/**
 * A token that is past its life (the specification, "States and transitions"), as something a caller can match on.
 *
 * - `Elapsed`: its 60 minutes (or what `expires_in` said) are over.
 * - `ClockMovedBack`: the wall clock stands before the moment the token was acquired, so its age is unknown.
 * - `DeadOnArrival`: the endpoint answered with a token that has no life left.
 *
 * What to do: ask `AccessTokenProvider.get` for another one; when it is `DeadOnArrival`, check the clock of this machine
 * and the `expires_in` that the endpoint sends.
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
 * @since 0.1.0
 * @category errors
 */
export class TokenExpiredError extends Schema.TaggedError<TokenExpiredError>("@store-api/core/TokenExpiredError")(
  "TokenExpiredError",
  {
    /** Which of the three it is. */
    reason: Schema.Literal("Elapsed", "ClockMovedBack", "DeadOnArrival"),
    /** The end of the token's life, by the wall clock. */
    expiredAt: Schema.DateTimeUtc,
    /** The moment of the check, by the wall clock. */
    checkedAt: Schema.DateTimeUtc,
    /** The end of the provider's cooldown, when it is in one. Default none. */
    retryAt: RetryAt
  }
) {
  override get message(): string {
    return this.describe()
  }

  /** The message. It names no option. */
  describe(): string {
    const expired = DateTime.formatIso(this.expiredAt)
    const sentences = {
      Elapsed: `The access token expired at ${expired}: ask AccessTokenProvider.get for a new one.`,
      ClockMovedBack: "The clock of this machine was moved to before the access token was acquired, " +
        "so its age is unknown: ask AccessTokenProvider.get for a new one.",
      DeadOnArrival: `The token endpoint answered with a token that was already dead at ${expired}: ` +
        "check the clock of this machine and the expires_in that the endpoint sends."
    }
    return sentences[this.reason] + retryAfter(this.retryAt)
  }
}

/**
 * The client's credentials are missing, unreadable, or cannot be sent as the specification wants them: raw, so without
 * `&`, control characters and anything beyond ASCII.
 *
 * What to do: correct the configuration, or ask the store for credentials that can be sent (RFC 6749 §A.1, §A.2, and the
 * specification, "Endpoints": no encoding).
 *
 * @example
 * ```ts
 * import { ClientCredentials } from "@store-api/core"
 * import { Effect, Redacted } from "effect"
 *
 * const credentials = ClientCredentials.make({ clientId: "demo-client", clientSecret: Redacted.make("one&two") }).pipe(
 *   Effect.catchTag("CredentialsError", ({ field, reason }) => Effect.dieMessage(`${field} ${reason}`))
 * )
 * ```
 *
 * @since 0.1.0
 * @category errors
 */
export class CredentialsError extends Schema.TaggedError<CredentialsError>("@store-api/core/CredentialsError")(
  "CredentialsError",
  {
    /** The one at fault. */
    field: Schema.Literal("clientId", "clientSecret"),
    /** What is wrong with it, as the end of a sentence: "is empty". Never the value. */
    reason: Schema.String,
    /** The end of the provider's cooldown, when it is in one. Default none. */
    retryAt: RetryAt
  }
) {
  override get message(): string {
    return this.describe()
  }

  /** The message, with the names that a program gives to the options. */
  describe(names: OptionNames = {}): string {
    return `The ${nameOf(this.field, names)} ${this.reason}: correct the client credentials.`
  }
}

/**
 * The token request had no usable answer.
 *
 * - `Transport`: no connection, or one that broke.
 * - `Timeout`: no answer within the deadline.
 * - `Certificate`: the endpoint's TLS certificate cannot be trusted.
 * - `Redirect`: the endpoint redirected; credentials follow no redirect.
 * - `TooLarge`: the answer was longer than `maxResponseBytes`.
 * - `Closed`: the layer's scope has ended.
 *
 * What to do: retry `Transport` and `Timeout` (at `retryAt`, if there); the others need a person.
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
 * @since 0.1.0
 * @category errors
 */
export class TokenRequestError extends Schema.TaggedError<TokenRequestError>("@store-api/core/TokenRequestError")(
  "TokenRequestError",
  {
    /** Which of the six it is. */
    reason: Schema.Literal("Transport", "Timeout", "Certificate", "Redirect", "TooLarge", "Closed"),
    /** How many requests were sent, or tried to be, for this one acquisition. */
    attempts: Schema.NonNegativeInt,
    /** The system's name for what went wrong (`ECONNREFUSED`), if it gave one. Default none. */
    code: OptionalText,
    /** The end of the provider's cooldown, when it is in one. Default none. */
    retryAt: RetryAt
  }
) {
  override get message(): string {
    return this.describe()
  }

  /** The message, with the names that a program gives to the options. */
  describe(names: OptionNames = {}): string {
    const authUrl = nameOf("authUrl", names)
    const attempts = this.attempts === 1 ? "1 attempt" : `${this.attempts} attempts`
    const details = [attempts, ...Option.toArray(this.code)].join(", ")
    const sentences = {
      Transport: `The token endpoint could not be reached (${details}): check ${authUrl}, the network and the proxy.`,
      Timeout: `The token endpoint did not answer in time (${details}): try again later.`,
      Certificate: `The TLS certificate of the token endpoint cannot be trusted (${details}): ` +
        `check ${authUrl}, the clock of this machine and the certificate authorities it knows.`,
      Redirect: "The token endpoint redirected the request, and credentials are not sent to another URL: " +
        `set ${authUrl} to its target.`,
      TooLarge: `The answer of the token endpoint is too large to be a token: check ${authUrl}.`,
      Closed: "The layer that holds the access token is closed: keep its scope open for as long as tokens are used."
    }
    return sentences[this.reason] + retryAfter(this.retryAt)
  }
}

/**
 * The token endpoint said no (RFC 6749 §5.2, or a gateway's dialect of it).
 *
 * - `InvalidClient`: it does not accept these credentials. Correct them.
 * - `InvalidRequest`: it does not accept the request. Check that `authUrl` is the base of the access-token service.
 * - `RateLimited`: too many requests. Ask less often, and not before `retryAt`.
 * - `Unavailable`: it is out of order (408, 5xx). Retry.
 * - `Other`: any other status, or a 401 of an API. Check `authUrl`, and what the client is allowed to do.
 *
 * `code` and `description` are the endpoint's own words, sanitised, and dropped when they repeat a credential or a token.
 *
 * @example
 * ```ts
 * import { AccessTokenProvider } from "@store-api/core"
 * import { Effect } from "effect"
 *
 * const token = Effect.flatMap(AccessTokenProvider.AccessTokenProvider, (provider) => provider.get).pipe(
 *   Effect.catchTag("TokenRefusedError", (error) =>
 *     error.reason === "InvalidClient" ? Effect.dieMessage(error.message) : Effect.fail(error))
 * )
 * ```
 *
 * @since 0.1.0
 * @category errors
 */
export class TokenRefusedError extends Schema.TaggedError<TokenRefusedError>("@store-api/core/TokenRefusedError")(
  "TokenRefusedError",
  {
    /** Which of the five it is. */
    reason: Schema.Literal("InvalidClient", "InvalidRequest", "RateLimited", "Unavailable", "Other"),
    /** The HTTP status of the answer. */
    status: Schema.Int,
    /** The endpoint's code, a word of at most 100 characters (`invalid_client`). Default none. */
    code: OptionalText,
    /** The endpoint's sentence, at most 256 characters of RFC 6749 §5.2. Default none. */
    description: OptionalText,
    /**
     * True when the endpoint refused credentials that hold `+` or `%`: a server that form-decodes the body reads another
     * value than the one that was sent. Default `false`.
     */
    changedByFormDecoding: Schema.propertySignature(Schema.Boolean).pipe(Schema.withConstructorDefault(() => false)),
    /** What `Retry-After` asked for (RFC 9110 §10.2.3), or the end of the provider's cooldown. Default none. */
    retryAt: RetryAt
  }
) {
  override get message(): string {
    return this.describe()
  }

  /** The message, with the names that a program gives to the options. */
  describe(names: OptionNames = {}): string {
    const authUrl = nameOf("authUrl", names)
    const details = [`status ${this.status}`, ...Option.toArray(this.code), ...Option.toArray(this.description)]
    const advice = {
      InvalidClient: this.changedByFormDecoding
        ? "check the client id and secret; they hold + or %, which are sent as they are, " +
          "and a server that form-decodes the body reads them differently."
        : "check the client id and secret.",
      InvalidRequest: `check that ${authUrl} is the base of the access-token service.`,
      RateLimited: "ask less often.",
      Unavailable: "try again later.",
      Other: this.status === 401
        ? `check ${authUrl}, which leads to an API that wants a token, not to the access-token service.`
        : `check ${authUrl} and what the client is allowed to do.`
    }
    return `The token endpoint refused the request (${details.join(", ")}): ${advice[this.reason]}` +
      retryAfter(this.retryAt)
  }
}

/**
 * A successful answer that is no token (RFC 6749 §5.1, and the specification, "Token response"), or a token that no header
 * can carry. What to do: check `authUrl`; the server is not the specification's, or has changed.
 *
 * @example
 * ```ts
 * import { TokenResponse } from "@store-api/core"
 * import { Effect } from "effect"
 *
 * const response = TokenResponse.decode(`{"token_type":"bearer"}`).pipe(
 *   Effect.catchTag("TokenResponseError", ({ problems }) => Effect.dieMessage(problems.map(({ path }) => path).join()))
 * )
 * ```
 *
 * @since 0.1.0
 * @category errors
 */
export class TokenResponseError extends Schema.TaggedError<TokenResponseError>("@store-api/core/TokenResponseError")(
  "TokenResponseError",
  {
    /** What is at fault: its path in the answer, `""` for the whole of it, and what was expected there. Never a value. */
    problems: Schema.Array(Schema.Struct({ path: Schema.String, expected: Schema.String })),
    /** The end of the provider's cooldown, when it is in one. Default none. */
    retryAt: RetryAt
  }
) {
  override get message(): string {
    return this.describe()
  }

  /** The message, with the names that a program gives to the options. */
  describe(names: OptionNames = {}): string {
    const problems = this.problems.map(({ expected, path }) => `${path === "" ? "the body" : path} must be ${expected}`)
    return `The token endpoint answered with something that is no token (${problems.join("; ")}): ` +
      `check ${nameOf("authUrl", names)}.${retryAfter(this.retryAt)}`
  }
}

/**
 * An option or variable that cannot be used; raised while a layer is built, so no part of `AccessTokenError`. What to do:
 * correct the option that it names.
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
 * @since 0.1.0
 * @category errors
 */
export class ConfigurationError extends Schema.TaggedError<ConfigurationError>("@store-api/core/ConfigurationError")(
  "ConfigurationError",
  {
    /** The name of the option, or of the variable: `authUrl`, `HTTPS_PROXY`. */
    option: Schema.String,
    /** What is wrong with it, as the end of a sentence: "must not have a query". Never the value. */
    reason: Schema.String,
    /** The option that permits this value, if there is one: `allowInsecure`. Default none. */
    permittedBy: OptionalText
  }
) {
  override get message(): string {
    return this.describe()
  }

  /** The message, with the names that a program gives to the options. */
  describe(names: OptionNames = {}): string {
    const unless = Option.match(this.permittedBy, {
      onNone: () => "",
      onSome: (option) => `, unless ${nameOf(option, names)} is set`
    })
    return `${names[this.option] ?? `The option ${this.option}`} ${this.reason}${unless}.`
  }
}

/**
 * A request to an origin that the token may not go to (RFC 6750 §5.3). It was not sent. What to do: correct the request's
 * URL, or name the origin in `trustedOrigins`.
 *
 * @example
 * ```ts
 * import { AuthorizedHttpClient } from "@store-api/core"
 * import { Effect } from "effect"
 *
 * const image = Effect.flatMap(AuthorizedHttpClient.AuthorizedHttpClient, (client) =>
 *   client.get("https://images.example/1.png")).pipe(
 *     Effect.catchTag("UntrustedOriginError", ({ origin }) => Effect.dieMessage(`no token for ${origin}`))
 *   )
 * ```
 *
 * @since 0.1.0
 * @category errors
 */
export class UntrustedOriginError
  extends Schema.TaggedError<UntrustedOriginError>("@store-api/core/UntrustedOriginError")(
    "UntrustedOriginError",
    {
      /** The origin of the request, or what it was in place of one ("an invalid URL"). */
      origin: Schema.String,
      /** The origins that the token may go to: that of `apiUrl`, and `trustedOrigins`. */
      trusted: Schema.Array(Schema.String)
    }
  )
{
  override get message(): string {
    return this.describe()
  }

  /** The message, with the names that a program gives to the options. */
  describe(names: OptionNames = {}): string {
    return `The access token may not go to ${this.origin}, only to ${this.trusted.join(", ")}; ` +
      `the request was not sent: correct its URL, or add the origin to ${nameOf("trustedOrigins", names)}.`
  }
}

/**
 * Every way in which having a token can fail: what `AccessTokenProvider.get` and `TokenSource.acquire` fail with. Each
 * member has a `message`, one sentence that says what to do, and a `retryAt`.
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
 * @since 0.1.0
 * @category errors
 */
export type AccessTokenError =
  | TokenExpiredError
  | CredentialsError
  | TokenRequestError
  | TokenRefusedError
  | TokenResponseError

/**
 * The family as one schema, to send errors across processes: encoded, they are plain objects, without a secret.
 *
 * @example
 * ```ts
 * import { AccessTokenError } from "@store-api/core"
 * import { Schema } from "effect"
 *
 * const toJson = Schema.encode(Schema.parseJson(AccessTokenError.AccessTokenError))
 * ```
 *
 * @since 0.1.0
 * @category schemas
 */
export const AccessTokenError = Schema.Union(
  TokenExpiredError,
  CredentialsError,
  TokenRequestError,
  TokenRefusedError,
  TokenResponseError
)

/**
 * Tells whether a value is one of `AccessTokenError`, among the other errors of a program. `ConfigurationError` and
 * `UntrustedOriginError` are not.
 *
 * @example
 * ```ts
 * import { AccessTokenError, AuthorizedHttpClient } from "@store-api/core"
 * import { Effect } from "effect"
 *
 * const orders = Effect.flatMap(AuthorizedHttpClient.AuthorizedHttpClient, (client) => client.get("/orders")).pipe(
 *   Effect.catchIf(AccessTokenError.isAccessTokenError, (error) => Effect.dieMessage(error.message))
 * )
 * ```
 *
 * @since 0.1.0
 * @category refinements
 */
export const isAccessTokenError: (error: unknown) => error is AccessTokenError = Schema.is(AccessTokenError)

/**
 * Tells whether asking again later may succeed with nothing changed: for `Effect.retry`'s `while`. True for
 * `Transport`, `Timeout`, `RateLimited`, `Unavailable` and an expired token; false for the rest, and for errors that
 * are not of this family.
 *
 * @example
 * ```ts
 * import { AccessTokenError, AccessTokenProvider } from "@store-api/core"
 * import { Effect } from "effect"
 *
 * const token = Effect.flatMap(AccessTokenProvider.AccessTokenProvider, (provider) => provider.get).pipe(
 *   Effect.retry({ while: AccessTokenError.isTransient, times: 3 })
 * )
 * ```
 *
 * @since 0.1.0
 * @category combinators
 */
export const isTransient = (error: unknown): boolean =>
  isAccessTokenError(error) && (error._tag === "TokenExpiredError" || hasReason(error, transient))

const transient: ReadonlyArray<string> = ["Transport", "Timeout", "RateLimited", "Unavailable"]

/** The `reason` of a `CredentialsError` is a text. */
const hasReason = (error: AccessTokenError, reasons: ReadonlyArray<string>): boolean =>
  error._tag !== "CredentialsError" && "reason" in error && reasons.includes(error.reason)

/**
 * When asking again makes sense, by the wall clock, if that is known; none for errors that are not of this family.
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
 * @since 0.1.0
 * @category combinators
 */
export const retryAt = (error: unknown): Option.Option<DateTime.Utc> =>
  isAccessTokenError(error) ? error.retryAt : Option.none()

/**
 * Returns the error with another `retryAt`, for sources of your own that know when to ask again. Errors that asking again
 * does not help have none and stay as they are: `CredentialsError`; `Certificate`, `Redirect` and `Closed`; `InvalidClient`
 * and `InvalidRequest`.
 *
 * @example
 * ```ts
 * import { AccessTokenError } from "@store-api/core"
 * import { DateTime, Option } from "effect"
 *
 * const notBefore = (error: AccessTokenError.AccessTokenError, at: DateTime.Utc) =>
 *   AccessTokenError.withRetryAt(error, Option.some(at))
 * ```
 *
 * @since 0.1.0
 * @category combinators
 */
export const withRetryAt = (error: AccessTokenError, retryAt: Option.Option<DateTime.Utc>): AccessTokenError => {
  const allowed = isPermanent(error) ? Option.none() : retryAt
  return Equal.equals(allowed, error.retryAt)
    ? error
    // Each class takes the fields of its own error, which the compiler cannot tell of a union.
    : new classes[error._tag]({ ...error, retryAt: allowed } as never)
}

const permanent: ReadonlyArray<string> = ["Certificate", "Redirect", "Closed", "InvalidClient", "InvalidRequest"]

const isPermanent = (error: AccessTokenError): boolean =>
  error._tag === "CredentialsError" || hasReason(error, permanent)

const classes = { TokenExpiredError, CredentialsError, TokenRequestError, TokenRefusedError, TokenResponseError }
