/**
 * A successful response of the token endpoint.
 *
 * @since 0.1.0
 */
import * as Arr from "effect/Array"
import * as Either from "effect/Either"
import { identity } from "effect/Function"
import * as Option from "effect/Option"
import type * as ParseResult from "effect/ParseResult"
import * as Schema from "effect/Schema"
import { TokenResponseError } from "./AccessTokenError.js"
import { maxLife } from "./internal/tokenPolicy.js"

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
