/** The errors of a token request: without a response, or for a refusal by its status or its body. */
import type * as HttpClientError from "@effect/platform/HttpClientError"
import type * as HttpClientRequest from "@effect/platform/HttpClientRequest"
import type * as HttpClientResponse from "@effect/platform/HttpClientResponse"
import * as Option from "effect/Option"
import * as Predicate from "effect/Predicate"
import * as Redacted from "effect/Redacted"
import type { AccessToken } from "../../AccessToken.js"
import {
  TokenRefusedError,
  TokenRequestError,
  UntrustedOriginError
} from "../../AccessTokenError.js"
import type { ClientCredentials } from "../../ClientCredentials.js"
import * as dialects from "./dialects.js"
import { deepestCause, deepestPlace } from "./limits.js"
import * as sanitise from "./sanitise.js"
import * as sentRequest from "./sentRequest.js"

/** The body, and the objects in it that may contain a code or a text, the outer ones first. */
const placesIn = (
  json: unknown,
  depth = 0
): ReadonlyArray<{ readonly [key: string]: unknown }> => {
  const [object] = [json].flat()
  return Predicate.isReadonlyRecord(object) && depth < deepestPlace
    ? [object, ...dialects.containers.flatMap((key) => placesIn(object[key], depth + 1))]
    : []
}

/** The first text or number with one of these names, or an empty text. */
const textAt = (places: ReturnType<typeof placesIn>, names: ReadonlyArray<string>): string =>
  String(
    places.flatMap((place) => names.map((name) => place[name]))
      .find((value) => typeof value === "string" || typeof value === "number") ?? ""
  )

const isInvalidClient = (code: string): boolean => /(^|\.)invalid_?client/i.test(code)

/** An API has other codes (RFC 6750 §3.1), and sends a Bearer challenge in `WWW-Authenticate`. */
const isOfApi = (code: string, challenge = ""): boolean =>
  /(^|,)\s*bearer\b/i.test(challenge.replace(/"[^"]*"/g, "")) &&
  !sanitise.registeredCodes.has(code)

const refusalReasonOf = (
  status: number,
  code: string,
  challenge: string | undefined
): TokenRefusedError["reason"] => {
  if (status === 429) return "RateLimited"
  if (status === 408 || status >= 500) return "Unavailable"
  if (isInvalidClient(code)) return "InvalidClient"
  if (status === 401) return isOfApi(code, challenge) ? "Other" : "InvalidClient"
  // The status of a success says nothing, so the code decides.
  if (status < 300 && /^(server_error|temporarily_unavailable)$/.test(code)) {
    return "Unavailable"
  }
  return status === 400 || (status < 300 && sanitise.registeredCodes.has(code))
    ? "InvalidRequest"
    : "Other"
}

export interface Attempt {
  /** As it was given to the HTTP client. The request of a response also has what the client added. */
  readonly request: HttpClientRequest.HttpClientRequest
  /** As the request of the endpoint names it. */
  readonly authentication?: string | undefined
  readonly credentials: ClientCredentials
  /** The token to be replaced. */
  readonly replacing: AccessToken | undefined
}

/**
 * The error for a response that is a refusal: by its status, or because it has an error and no token. It is without the
 * credentials, the token, and what else the request carried.
 */
export const refusal = (
  { authentication, credentials, replacing, request }: Attempt,
  { headers, request: received, status }: Pick<
    HttpClientResponse.HttpClientResponse,
    "headers" | "request" | "status"
  >,
  body: string | undefined
): TokenRefusedError | undefined => {
  const json = Option.getOrUndefined(sentRequest.parseJson(body ?? ""))
  const places = placesIn(json)
  const code = textAt(places, dialects.codes)
  const text = textAt(places, dialects.texts)
  const has = (key: string) => Predicate.hasProperty(json, key) && json[key] !== null
  // Some endpoints respond to everything with 200. Their code for a success is 0.
  const hasFailed = has("error") ||
    (text !== "" && /[^0]/.test(code || textAt(places, ["status"])))
  if (status < 400 && (has("access_token") || !hasFailed)) return undefined
  const reason = refusalReasonOf(status, code, headers["www-authenticate"])
  const { clientId, clientSecret } = credentials
  const redacted = replacing === undefined ? [clientSecret] : [clientSecret, replacing.value]
  const carried = [request, received].flatMap((sent) => sentRequest.secretsIn(sent, clientId))
  const known = { clientId, secrets: [...redacted.map(Redacted.value), ...carried] }
  return new TokenRefusedError({
    reason,
    httpStatus: status,
    code: sanitise.code(code, known),
    description: sanitise.description(text, known),
    changedByFormDecoding: reason === "InvalidClient" &&
      sentRequest.isChangedByFormDecoding(request, credentials),
    suspect: reason === "InvalidClient"
      ? suspectOf(credentials, authentication === undefined)
      : undefined,
    authentication
  })
}

/** The marks that files of variables and editors leave in a value. */
const suspicions: ReadonlyArray<readonly [pattern: RegExp, reason: string]> = [
  [/^(["'`]).*\1$/s, "is in quotes"],
  [/^\uFEFF/, "starts with a byte order mark"],
  [/^\s|\s$/, "starts or ends with a space"]
]

/** The credential that looks wrong, if there is one. */
const suspectOf = ({ clientId, clientSecret }: ClientCredentials, isSecretSent: boolean) => {
  const reasonOf = (text: string) => suspicions.find(([pattern]) => pattern.test(text))?.[1]
  const ofId = reasonOf(clientId)
  if (ofId !== undefined) return { field: "clientId" as const, reason: ofId }
  const ofSecret = isSecretSent ? reasonOf(Redacted.value(clientSecret)) : undefined
  return ofSecret === undefined
    ? undefined
    : { field: "clientSecret" as const, reason: ofSecret }
}

/** A request without a usable response. */
export const failedRequest = (
  reason: TokenRequestError["reason"],
  code?: string
): TokenRequestError => new TokenRequestError({ reason, attempts: 1, code })

/**
 * Converts an error of the HTTP client, which contains the request with its body. Keeps only the error code of the
 * system.
 */
export const fromHttpClientError = (
  error: HttpClientError.HttpClientError
): TokenRequestError => {
  // `boundClient` stopped a redirect to another origin.
  if (error.cause instanceof UntrustedOriginError) return failedRequest("Redirect")
  const faults = chain(error.cause)
  // The code of undici says only that the request was aborted.
  if (faults.some(isRefusedByProxy)) return failedRequest("Proxy")
  const codes = faults.map(({ code }) => code).filter(isSystemCode)
  const [code] = codes
  if (codes.some((code) => clientClosedCode.test(code))) return failedRequest("Closed", code)
  // Only runtimes without codes need the message, which may repeat a host name.
  const isCertificateFault = code === undefined
    ? faults.some(({ message }) =>
      typeof message === "string" && certificateWord.test(message)
    )
    : codes.some((code) => certificateCode.test(code))
  return failedRequest(isCertificateFault ? "Certificate" : "Transport", code)
}

/** Whether a proxy answered 407: by the status in an error of Node, or by the message of undici or Bun. */
const isRefusedByProxy = ({ message, statusCode }: Fault): boolean =>
  statusCode === 407 || /^Proxy .*\b407\b/.test(String(message))

/** The codes of OpenSSL. */
const certificateCode =
  /CERT|ISSUER|CRL_|INVALID_(CA|PURPOSE)|HOSTNAME_MISMATCH|UNABLE_TO_VERIFY/

/** The word in a sentence, and not in a host name or a URL. */
const certificateWord = /(?<![\w./-])certificate(?![\w-]|\.\w)/i

/** The dispatcher of undici is closed. It cannot be opened again. */
const clientClosedCode = /^UND_ERR_(CLOSED|DESTROYED)$/

interface Fault {
  readonly [property: string]: unknown
}

/** An error and its causes. `fetch` puts the error of the system into the cause of its own error. */
const chain = (error: unknown, depth = 0): ReadonlyArray<Fault> =>
  Predicate.isReadonlyRecord(error) && depth < deepestCause
    ? [error, ...chain(error["cause"], depth + 1)]
    : []

const isSystemCode = (code: unknown): code is string =>
  typeof code === "string" && /^[A-Z][A-Z0-9_]{1,63}$/.test(code)
