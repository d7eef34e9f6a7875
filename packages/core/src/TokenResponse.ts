/**
 * The wire: what a successful answer of the token endpoint looks like, and the dialects of its errors. Pure functions of
 * the body's text; no value that came from the server gets into an error unsanitised.
 *
 * @since 0.1.0
 */
import * as Arr from "effect/Array"
import type * as DateTime from "effect/DateTime"
import * as Either from "effect/Either"
import { identity, pipe } from "effect/Function"
import * as Option from "effect/Option"
import type * as ParseResult from "effect/ParseResult"
import type * as Redacted from "effect/Redacted"
import * as Schema from "effect/Schema"
import { TokenRefusedError, TokenResponseError } from "./AccessTokenError.js"
import * as sanitise from "./internal/sanitise.js"
import { maxLife } from "./TokenPolicy.js"

/** A field that may be missing and, being of no consequence, may also be of another type: then it counts as missing. */
const lenient = <A, I>(schema: Schema.Schema<A, I>) => {
  const decode = Schema.decodeUnknownOption(schema)
  return Schema.optionalWith(
    Schema.transform(Schema.Unknown, Schema.OptionFromSelf(Schema.typeSchema(schema)), {
      decode: (value) => decode(value),
      encode: identity
    }),
    { default: () => Option.none() }
  )
}

/** `b64token` (RFC 6750 §2.1): nothing in it can break a header. */
const BearerValue = Schema.String.pipe(Schema.maxLength(16 * 1024), Schema.pattern(/^[A-Za-z0-9\-._~+/]+=*$/))

/** `bearer` in any case (RFC 6749 §5.1), or what gateways call it. */
const TokenType = Schema.String.pipe(Schema.pattern(/^bearer(token)?$/i))

/** Seconds (RFC 6749 §5.1); gateways send them as digits in a string. */
const Seconds = Schema.Union(
  Schema.JsonNumber,
  Schema.String.pipe(
    Schema.pattern(/^-?\d+(\.\d+)?$/),
    Schema.compose(Schema.NumberFromString),
    Schema.filter(Number.isFinite)
  )
)

const Digits = Schema.Union(
  Schema.String.pipe(Schema.pattern(/^\d+$/)),
  Schema.transform(Schema.Number.pipe(Schema.nonNegative(), Schema.int()), Schema.String, {
    decode: String,
    encode: Number
  })
)

/**
 * The token response (the specification, "Token response"). `access_token` and `token_type` are required (RFC 6749 §5.1);
 * the other fields may be missing, unknown ones are ignored, and one of another type counts as missing, `expires_in`
 * excepted.
 *
 * @see decode
 *
 * @since 0.1.0
 * @category schemas
 */
export const TokenResponse = Schema.Struct({
  /** A `b64token` (RFC 6750 §2.1) of at most 16 KiB. Required. */
  access_token: Schema.Redacted(BearerValue),
  /** `bearer` in any case (RFC 6749 §5.1), or `BearerToken`, as gateways call it. Required. */
  token_type: TokenType,
  /** In seconds (RFC 6749 §5.1): a number, or digits in a string. Default 3600, the specification's 60 minutes. */
  expires_in: Schema.optionalWith(Seconds, { default: () => maxLife / 1000 }),
  /** What the token may be used for; may be empty. */
  scope: lenient(Schema.String),
  /** The client application's name. */
  application_name: lenient(Schema.String),
  /** The developer's address, under a name with a dot in it. */
  "developer.email": lenient(Schema.Redacted(Schema.String)),
  /** Digits, as they came or of a number; the specification does not show their time base. */
  issued_at: lenient(Digits),
  /** Whom the token was issued to. */
  client_id: lenient(Schema.String)
})

/**
 * A token response that was read: optional fields are `Option`s.
 *
 * @see decode
 *
 * @since 0.1.0
 * @interface
 * @category models
 */
export type TokenResponse = typeof TokenResponse.Type

/** All that can be wrong with a response: its other fields may hold anything. */
const problems: TokenResponseError["problems"] = [
  { path: "", expected: "a JSON object with access_token and token_type" },
  { path: "access_token", expected: "a bearer token of RFC 6750, of at most 16 KiB" },
  { path: "token_type", expected: "bearer" },
  { path: "expires_in", expected: "a number of seconds" }
]

const decodeJson = Schema.decodeUnknownEither(Schema.parseJson(TokenResponse), { errors: "all" })

/**
 * Reads the body of a successful answer, any text. Fails with `TokenResponseError`: the paths at fault and what was
 * expected there, never the values.
 *
 * @example
 * ```ts
 * import { TokenResponse } from "@store-api/core"
 * import { Either } from "effect"
 *
 * const life = TokenResponse.decode(`{"access_token":"an-invented-token","token_type":"bearer","expires_in":3600}`).pipe(
 *   Either.map((response) => response.expires_in) // 3600
 * )
 * ```
 *
 * @since 0.1.0
 * @category constructors
 */
export const decode = (body: string): Either.Either<TokenResponse, TokenResponseError> =>
  Either.mapLeft(decodeJson(body), ({ issue }) => {
    const paths = fieldsAtFault(issue)
    return new TokenResponseError({ problems: problems.filter(({ path }) => paths.includes(path)) })
  })

/** The top-level fields that an issue is about. Its values, which may be the token, are not looked at. */
const fieldsAtFault = (issue: ParseResult.ParseIssue): ReadonlyArray<string> => {
  switch (issue._tag) {
    case "Pointer":
      return [String(Arr.ensure(issue.path)[0])]
    case "Composite":
      return Arr.ensure(issue.issues).flatMap(fieldsAtFault)
    case "Transformation":
      return fieldsAtFault(issue.issue)
    default:
      return [""]
  }
}

/**
 * How long the token of a response lives, in milliseconds, counted from before the request was sent: the seconds of
 * `expires_in`, floored, at most the 60 minutes of the specification ("Limits"). Zero or less: it was dead on arrival.
 *
 * @example
 * ```ts
 * import { TokenResponse } from "@store-api/core"
 * import { Either } from "effect"
 *
 * const life = TokenResponse.decode(`{"access_token":"an-invented-token","token_type":"bearer","expires_in":"1800"}`).pipe(
 *   Either.map(TokenResponse.lifeOf) // 1 800 000
 * )
 * ```
 *
 * @since 0.1.0
 * @category conversions
 */
export const lifeOf = (response: TokenResponse): number => Math.min(Math.floor(response.expires_in) * 1000, maxLife)

const Text = lenient(Schema.String)

/** RFC 6749 §5.2, two dialects of gateways, and the suite's own: one struct, of which a body fills a part. */
const ErrorBody = Schema.parseJson(Schema.Struct({
  error: Text,
  error_description: Text,
  ErrorCode: Text,
  Error: Text,
  fault: lenient(Schema.Struct({ faultstring: Text, detail: lenient(Schema.Struct({ errorcode: Text })) })),
  errors: lenient(Schema.NonEmptyArray(Schema.Struct({ errorCode: Text, type: Text, reason: Text, message: Text })))
}))

const decodeErrorBody = Schema.decodeUnknownOption(ErrorBody)

const isInvalidClient = (code: string): boolean => /(^|\.)invalid_?client/i.test(code)

/** The codes of RFC 6749 §5.2. An API has codes of its own (RFC 6750 §3.1). */
const isTokenEndpointCode = (code: string): boolean =>
  isInvalidClient(code) || /^(invalid_(request|grant|scope)|un(authorized_client|supported_grant_type))$/.test(code)

const reasonOf = (
  status: number,
  code: Option.Option<string>,
  challenge: string | undefined
): TokenRefusedError["reason"] => {
  if (status === 429) return "RateLimited"
  if (status === 408 || status >= 500) return "Unavailable"
  if (Option.exists(code, isInvalidClient)) return "InvalidClient"
  if (status === 401) {
    const isOfApi = challenge !== undefined && /(^|,)\s*bearer\b/i.test(challenge.replace(/"[^"]*"/g, "")) &&
      !Option.exists(code, isTokenEndpointCode)
    return isOfApi ? "Other" : "InvalidClient"
  }
  return status === 400 ? "InvalidRequest" : "Other"
}

/**
 * The refusal that an answer with an error status stands for, as an error value. Its body may be that of RFC 6749 §5.2, one
 * of the dialects of gateways and of the suite, HTML, or nothing; code and description are kept when they are sane and
 * repeat none of the `secrets`.
 *
 * @example
 * ```ts
 * import { TokenResponse } from "@store-api/core"
 * import { Option } from "effect"
 *
 * const error = TokenResponse.refusal({
 *   status: 401,
 *   body: `{"error":"invalid_client","error_description":"unknown client"}`,
 *   secrets: [],
 *   rawCredentials: false,
 *   retryAt: Option.none()
 * }) // a TokenRefusedError: InvalidClient
 * ```
 *
 * @since 0.1.0
 * @category constructors
 */
export const refusal = (options: {
  /** The HTTP status of the answer. */
  readonly status: number
  /** The answer's body as text, cut off or not. */
  readonly body: string
  /** What must not be repeated: `ClientCredentials.secrets`, and tokens that were sent along. */
  readonly secrets: ReadonlyArray<Redacted.Redacted>
  /** Whether a server that form-decodes reads other credentials: `ClientCredentials.changeWhenDecoded`. */
  readonly rawCredentials: boolean
  /** The answer's `WWW-Authenticate`: an API, unlike a token endpoint, challenges for a Bearer token. Default none. */
  readonly challenge?: string | undefined
  /** When the endpoint wants to be asked again, by `Retry-After` (RFC 9110 §10.2.3). Dropped where that cannot help. */
  readonly retryAt: Option.Option<DateTime.Utc>
}): TokenRefusedError => {
  const { secrets, status } = options
  const body = decodeErrorBody(options.body)
  const said = (choices: (body: Schema.Schema.Type<typeof ErrorBody>) => ReadonlyArray<Option.Option<string>>) =>
    Option.flatMap(body, (body) => Option.firstSomeOf(choices(body)))
  const saidCode = said(({ ErrorCode, error, errors, fault }) => [
    error,
    ErrorCode,
    fault.pipe(Option.flatMap(({ detail }) => detail), Option.flatMap(({ errorcode }) => errorcode)),
    Option.flatMap(errors, ([first]) => Option.orElse(first.errorCode, () => first.type))
  ])
  const description = pipe(
    said(({ Error: sentence, error_description, errors, fault }) => [
      error_description,
      sentence,
      Option.flatMap(fault, ({ faultstring }) => faultstring),
      Option.flatMap(errors, ([first]) => Option.orElse(first.message, () => first.reason))
    ]),
    Option.flatMap((description) => sanitise.description(description, secrets))
  )
  const reason = reasonOf(status, saidCode, options.challenge)
  return new TokenRefusedError({
    reason,
    status,
    code: Option.flatMap(saidCode, (code) => sanitise.code(code, secrets)),
    description,
    rawCredentials: reason === "InvalidClient" && options.rawCredentials,
    retryAt: reason === "InvalidClient" || reason === "InvalidRequest" ? Option.none() : options.retryAt
  })
}
