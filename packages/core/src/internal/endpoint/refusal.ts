/**
 * The error for a response with an error status. Code and description come from the server, and are kept only if they
 * are harmless and contain no secret.
 */
import type * as DateTime from "effect/DateTime"
import * as Option from "effect/Option"
import * as Predicate from "effect/Predicate"
import type * as Redacted from "effect/Redacted"
import * as Schema from "effect/Schema"
import { TokenRefusedError } from "../../AccessTokenError.js"
import * as sanitise from "./sanitise.js"

const decodeJson = Schema.decodeUnknownOption(Schema.parseJson())

type Path = ReadonlyArray<string>

/** The paths in RFC 6749 §5.2, in the responses of two gateways, and in those of the store API suite. */
const codes: ReadonlyArray<Path> = [
  ["error"],
  ["ErrorCode"],
  ["fault", "detail", "errorcode"],
  ["errors", "0", "errorCode"],
  ["errors", "0", "type"]
]
const descriptions: ReadonlyArray<Path> = [
  ["error_description"],
  ["Error"],
  ["fault", "faultstring"],
  ["errors", "0", "message"],
  ["errors", "0", "reason"]
]

/** The text at the first path that exists. */
const textAt = (body: unknown, paths: ReadonlyArray<Path>): Option.Option<string> =>
  Option.firstSomeOf(paths.map((path) => {
    const found = path.reduce((value, key) => Predicate.hasProperty(value, key) ? value[key] : undefined, body)
    return Option.liftPredicate(found, Predicate.isString)
  }))

const isInvalidClient = (code: string): boolean => /(^|\.)invalid_?client/i.test(code)

/** The codes of RFC 6749 §5.2. An API has other codes (RFC 6750 §3.1). */
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

export const refusal = ({ body, challenge, changedByFormDecoding, retryAt, secrets, status }: {
  readonly status: number
  readonly body: string
  /** The credentials, and the token to be replaced: a description that contains one is dropped. */
  readonly secrets: ReadonlyArray<Redacted.Redacted>
  /** Whether a server that form-decodes the body reads other credentials than those that were sent. */
  readonly changedByFormDecoding: boolean
  /** `WWW-Authenticate`. An API, unlike a token endpoint, sends a Bearer challenge. */
  readonly challenge?: string | undefined
  /** The time of `Retry-After`. Dropped if another attempt cannot help. */
  readonly retryAt: Option.Option<DateTime.Utc>
}): TokenRefusedError => {
  const json = Option.getOrUndefined(decodeJson(body))
  const code = textAt(json, codes)
  const reason = reasonOf(status, code, challenge)
  return new TokenRefusedError({
    reason,
    status,
    code: Option.flatMap(code, (code) => sanitise.code(code, secrets)),
    description: Option.flatMap(textAt(json, descriptions), (text) => sanitise.description(text, secrets)),
    changedByFormDecoding: reason === "InvalidClient" && changedByFormDecoding,
    retryAt: reason === "InvalidClient" || reason === "InvalidRequest" ? Option.none() : retryAt
  })
}
