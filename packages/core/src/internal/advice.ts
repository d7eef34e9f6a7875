/** What to do about an error: the second half of its message. */
import * as DateTime from "effect/DateTime"

/** The names that a program gives to options. */
export interface Names {
  readonly [option: string]: string | undefined
}

export const nameOf = (option: string, names: Names): string => names[option] ?? option

const client = "the client id and secret"
const permission = "what the client is allowed to do"
const parameters = "the parameters of the token request"

/** The end of a message: the earliest time for another attempt. */
export const retryAfter = (retryAt: DateTime.Utc | undefined): string =>
  retryAt === undefined ? "" : ` Retry after ${DateTime.formatIso(retryAt)}.`

/** For a request without a usable response, by the reason. */
export const ofFailedRequest = (names: Names) => {
  const authUrl = nameOf("authUrl", names)
  return {
    Transport: `check ${authUrl}, the network and the proxy`,
    Timeout: "try again later",
    Certificate: `check ${authUrl}, the system clock and its certificate authorities`,
    Proxy: "check the user name and password for the proxy",
    Redirect: `set ${authUrl} to its target`,
    TooLarge: `check ${authUrl}`,
    Closed: "keep its scope open"
  }
}

interface Refusal {
  readonly httpStatus: number
  readonly code?: string | undefined
  readonly changedByFormDecoding: boolean
}

/** For a refusal of the token endpoint, by the reason. */
export const ofRefusal = (refusal: Refusal, names: Names) => ({
  InvalidClient: ofRefusedClient(refusal, names),
  InvalidRequest: ofRefusedRequest(refusal, names),
  RateLimited: "send fewer requests",
  Unavailable: "try again later",
  Other: ofOtherStatus(refusal, names)
})

const ofRefusedClient = ({ changedByFormDecoding }: Refusal, names: Names): string => {
  if (!changedByFormDecoding) return `check ${client}`
  return `check ${client}, which contain characters that servers read differently, such as + or %, ` +
    `unless ${names["endpoint.request"] ?? "TokenRequest.clientSecretPost"} sends them`
}

/** Some codes of RFC 6749 §5.2 and RFC 8707 §2 name the cause. */
const ofRefusedRequest = ({ code }: Refusal, names: Names): string => {
  if (code === undefined) return ofPath(names)
  if (/^invalid_(scope|target)$/.test(code)) return `check ${parameters}`
  if (/^(unauthorized_client|invalid_grant)$/.test(code)) return `check ${client}, and ${permission}`
  return `check ${nameOf("authUrl", names)}, and ${parameters} if it has any`
}

const ofOtherStatus = ({ httpStatus }: Refusal, names: Names): string => {
  const authUrl = nameOf("authUrl", names)
  if (httpStatus === 401) return `check ${authUrl}, which leads to a protected API`
  if (httpStatus === 404 || httpStatus === 405) return ofPath(names)
  return `check ${authUrl} and ${permission}`
}

const ofPath = (names: Names): string => `check ${nameOf("authUrl", names)} and the path of the token endpoint`
