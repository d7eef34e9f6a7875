/** The error for a refusal: a response with an error status, or a success with an error in its body. */
import type * as HttpClientResponse from "@effect/platform/HttpClientResponse"
import * as Option from "effect/Option"
import * as Predicate from "effect/Predicate"
import * as Redacted from "effect/Redacted"
import * as Schema from "effect/Schema"
import type { AccessToken } from "../../AccessToken.js"
import { TokenRefusedError } from "../../AccessTokenError.js"
import type { ClientCredentials } from "../../ClientCredentials.js"
import * as sanitise from "./sanitise.js"
import * as tokenRequest from "./tokenRequest.js"

const decodeJson = Schema.decodeUnknownOption(Schema.parseJson())

/** The places in RFC 6749 §5.2, in the responses of two gateways, and in those of the store API suite. */
const codes = ["error", "ErrorCode", "fault.detail.errorcode", "errors.0.errorCode", "errors.0.type"]
const descriptions = ["error_description", "Error", "fault.faultstring", "errors.0.message", "errors.0.reason"]

/** The text at the first place that has one, or an empty text. */
const textAt = (body: unknown, places: ReadonlyArray<string>): string =>
  places.map((place) =>
    place.split(".").reduce((value, key) => Predicate.hasProperty(value, key) ? value[key] : undefined, body)
  ).find(Predicate.isString) ?? ""

const isInvalidClient = (code: string): boolean => /(^|\.)invalid_?client/i.test(code)

/** An API has other codes (RFC 6750 §3.1), and sends a Bearer challenge in `WWW-Authenticate`. */
const isOfApi = (code: string, challenge = ""): boolean =>
  /(^|,)\s*bearer\b/i.test(challenge.replace(/"[^"]*"/g, "")) && !sanitise.registered.has(code)

const reasonOf = (status: number, code: string, challenge: string | undefined): TokenRefusedError["reason"] => {
  if (status === 429) return "RateLimited"
  if (status === 408 || status >= 500) return "Unavailable"
  if (isInvalidClient(code)) return "InvalidClient"
  if (status === 401) return isOfApi(code, challenge) ? "Other" : "InvalidClient"
  // The status of a success says nothing, so the code decides.
  if (status < 300 && /^(server_error|temporarily_unavailable)$/.test(code)) return "Unavailable"
  return status === 400 || (status < 300 && sanitise.registered.has(code)) ? "InvalidRequest" : "Other"
}

export interface Attempt {
  readonly credentials: ClientCredentials
  /** The token to be replaced. */
  readonly replacing: AccessToken | undefined
}

/**
 * The error for a response that is a refusal: by its status, or because it has an error and no token. It is without the
 * credentials and the token.
 */
export const refusal = (
  { credentials, replacing }: Attempt,
  { headers, status }: Pick<HttpClientResponse.HttpClientResponse, "headers" | "status">,
  body: string | undefined
): TokenRefusedError | undefined => {
  const json = Option.getOrUndefined(decodeJson(body))
  const has = (key: string) => Predicate.hasProperty(json, key) && json[key] !== null
  if (status < 400 && (!has("error") || has("access_token"))) return undefined
  const code = textAt(json, codes)
  const reason = reasonOf(status, code, headers["www-authenticate"])
  const { clientId, clientSecret } = credentials
  const secrets = [clientSecret, ...replacing === undefined ? [] : [replacing.value]].map(Redacted.value)
  return new TokenRefusedError({
    reason,
    status,
    code: Option.fromNullable(sanitise.code(code, { clientId, secrets })),
    description: Option.fromNullable(sanitise.description(textAt(json, descriptions), { clientId, secrets })),
    changedByFormDecoding: reason === "InvalidClient" && tokenRequest.changeWhenDecoded(credentials)
  })
}
