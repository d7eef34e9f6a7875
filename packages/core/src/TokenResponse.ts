/**
 * A successful response of the token endpoint.
 *
 * @since 1.0.0
 */
import * as Either from "effect/Either"
import * as Option from "effect/Option"
import type * as ParseResult from "effect/ParseResult"
import * as Schema from "effect/Schema"
import { TokenResponseError } from "./AccessTokenError.js"
import { maxLife } from "./internal/lifetime.js"

/** An optional field of little importance. It counts as missing if it has another type. */
const lenient = <A, I>(schema: Schema.Schema<A, I>) => {
  const decode = Schema.decodeUnknownOption(schema)
  return Schema.optionalWith(
    Schema.transform(Schema.Unknown, Schema.OptionFromSelf(Schema.typeSchema(schema)), {
      decode: (value) => decode(value),
      encode: (value) => value
    }),
    { default: () => Option.none() }
  )
}

/** What a header carries unchanged. Some endpoints send more characters than a `b64token` has (RFC 6750 §2.1). */
const BearerValue = Schema.String.pipe(Schema.pattern(/^[\x21-\x7e]{1,16384}$/))

/** Any printable text but the types that need a proof beside the token. Some endpoints have another name for bearer. */
const BearerType = Schema.String.pipe(Schema.pattern(/^(?! *(d?pop|mac) *$)[\x20-\x7e]*$/i))

/** The type of a token that is bound to a key (RFC 9449 §5). */
const DPoPType = Schema.String.pipe(Schema.pattern(/^ *dpop *$/i))

/** The default of `expires_in` in seconds: the 60 minutes of the specification. */
const defaultLife = maxLife / 1000

/** Seconds (RFC 6749 §5.1). Gateways send them as a string of digits. A number beyond all bounds is infinite. */
const Seconds = Schema.Union(
  Schema.Number,
  Schema.String.pipe(
    Schema.pattern(/^-?\d+(\.\d+)?$/),
    Schema.compose(Schema.NumberFromString)
  )
)

const Digits = Schema.Union(
  Schema.String.pipe(Schema.pattern(/^\d+$/)),
  Schema.transform(Schema.NonNegativeInt, Schema.String, { decode: String, encode: Number })
)

/** The words of a scope (RFC 6749 §3.3). Some servers send them as a list. */
const Scope = Schema.Union(
  Schema.String,
  Schema.transform(Schema.Array(Schema.String), Schema.String, {
    decode: (words) => words.join(" "),
    encode: (words) => words.split(" ")
  })
)

/**
 * The schema of a successful response (the specification, "Token response"). Only `access_token` is required (RFC 6749
 * §5.1). Unknown fields are ignored. A field of another type counts as missing, except for `token_type` and
 * `expires_in`.
 *
 * @see decode
 *
 * @since 1.0.0
 * @category schemas
 */
export const TokenResponse = Schema.Struct({
  /** Visible ASCII characters, at most 16 384. Required. */
  access_token: Schema.Redacted(BearerValue),
  /** Any type but DPoP, MAC and PoP, which need more than a header. Missing or null: `bearer` (RFC 6749 §5.1). */
  token_type: Schema.optionalWith(BearerType, { nullable: true, default: () => "bearer" }),
  /**
   * Seconds (RFC 6749 §5.1), as a number or a string of digits. Missing or null: 3600, the 60 minutes of the
   * specification.
   */
  expires_in: Schema.optionalWith(Seconds, { nullable: true, default: () => defaultLife }),
  /** The scope of the token, which may be empty. From a text or a list of words. */
  scope: lenient(Scope),
  /** The name of the client application. */
  application_name: lenient(Schema.String),
  /** The address of the developer. The name of this field contains a dot. */
  "developer.email": lenient(Schema.Redacted(Schema.String)),
  /** Digits, from a string or a number. The specification does not define their unit. */
  issued_at: lenient(Digits),
  /** The client that the token was issued to. */
  client_id: lenient(Schema.String)
})

/**
 * A decoded token response, with optional fields as `Option`s.
 *
 * @see decode
 *
 * @since 1.0.0
 * @interface
 * @category models
 */
export type TokenResponse = typeof TokenResponse.Type

/** All problems that a response can have. Its other fields may contain anything. */
const problemsOf = (tokenType: "Bearer" | "DPoP"): TokenResponseError["problems"] => [
  { path: "", expected: "a JSON object with access_token" },
  { path: "access_token", expected: "1 to 16384 visible ASCII characters" },
  {
    path: "token_type",
    expected: tokenType === "DPoP" ? "DPoP" : "a type other than DPoP, MAC and PoP"
  },
  { path: "expires_in", expected: "a number of seconds" }
]

const decodeAs = <I>(response: Schema.Schema<TokenResponse, I>) =>
  Schema.decodeUnknownEither(Schema.parseJson(response), { errors: "all" })

/** Made for each response: most programs need only one of the two, about once an hour. */
const decoderOf = (tokenType: "Bearer" | "DPoP") =>
  tokenType === "Bearer"
    ? decodeAs(TokenResponse)
    : decodeAs(Schema.Struct({ ...TokenResponse.fields, token_type: DPoPType }))

/**
 * Decodes the body of a successful response. Fails with `TokenResponseError`, which lists the paths of unusable fields
 * and what was expected, never a value. `tokenType` is the type that the request expects,
 * by default `Bearer`: any but DPoP, MAC and PoP.
 *
 * @example
 * ```ts
 * import { TokenResponse } from "@store-api/core"
 * import { Either } from "effect"
 *
 * const body = `{"access_token":"an-invented-token","token_type":"bearer","expires_in":3600}`
 * const lifetime = TokenResponse.decode(body).pipe(
 *   Either.map((response) => response.expires_in)
 * )
 * ```
 *
 * @since 1.0.0
 * @category constructors
 */
export const decode = (
  body: string,
  tokenType: "Bearer" | "DPoP" = "Bearer"
): Either.Either<TokenResponse, TokenResponseError> =>
  Either.mapLeft(decoderOf(tokenType)(body), ({ issue }) => {
    const paths = fieldsAtFault(issue)
    return new TokenResponseError({
      problems: problemsOf(tokenType).filter(({ path }) => paths.includes(path))
    })
  })

/** The top-level fields of an issue. Never reads its values, one of which may be the token. */
const fieldsAtFault = (issue: ParseResult.ParseIssue): ReadonlyArray<string> => {
  if (issue._tag === "Pointer") return [String([issue.path].flat()[0])]
  if (issue._tag === "Composite") return [issue.issues].flat().flatMap(fieldsAtFault)
  return "issue" in issue ? fieldsAtFault(issue.issue) : [""]
}
