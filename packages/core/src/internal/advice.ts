/** The parts of messages that depend on the reason of an error, and the names of options in them. */
import * as DateTime from "effect/DateTime"

/** The names that a program gives to options. */
export interface Names {
  readonly [option: string]: string | undefined
}

export const nameOf = (option: string, names: Names): string => names[option] ?? option

const credentialNames = { clientId: "client id", clientSecret: "client secret" }
const permission = "what the client is allowed to do"
const parameters = "the parameters of the token request"

/** The end of a message: the earliest time for another attempt. */
export const retryAfter = (retryAt: DateTime.Utc | undefined): string =>
  retryAt === undefined ? "." : `. Retry after ${DateTime.formatIso(retryAt)}.`

/** A sentence about each reason of a request without a usable response, and the advice. */
export const ofFailedRequest = (
  { attempts, code }: { readonly attempts: number; readonly code?: string | undefined },
  names: Names
) => {
  const authUrl = nameOf("authUrl", names)
  const count = attempts === 1 ? "1 attempt" : `${attempts} attempts`
  const details = code === undefined ? count : `${count}, ${code}`
  const closed = code === undefined
    ? "access token is closed"
    : `HTTP client is closed (${details})`
  return {
    Transport:
      `Cannot reach the token endpoint (${details}): check ${authUrl}, the network and the proxy`,
    Timeout: `The token endpoint did not respond in time (${details}): try again later`,
    Certificate: `The TLS certificate of the token endpoint is not trusted (${details}): ` +
      `check ${authUrl}, the system clock and the trusted certificate authorities`,
    Proxy: `The proxy refused the connection to the token endpoint (407, ${details}): ` +
      "check the user name and password for the proxy",
    Redirect:
      `The token endpoint redirected the request, which is not followed: set ${authUrl} to its target`,
    TooLarge: `The response of the token endpoint is too large for a token: check ${authUrl}`,
    Closed: `The layer of the ${closed}: keep its scope open`
  }
}

interface Refusal {
  readonly reason: "InvalidClient" | "InvalidRequest" | "RateLimited" | "Unavailable" | "Other"
  readonly httpStatus: number
  readonly code?: string | undefined
  readonly changedByFormDecoding: boolean
  readonly suspect?:
    | { readonly field: "clientId" | "clientSecret"; readonly reason: string }
    | undefined
  readonly authentication?: string | undefined
}

/** What to do about a refusal of the token endpoint. Some codes of RFC 6749 §5.2 and RFC 8707 §2 name the cause. */
export const ofRefusal = (
  {
    authentication: client = "the client id and secret",
    changedByFormDecoding,
    code,
    httpStatus,
    reason,
    suspect
  }: Refusal,
  names: Names
): string => {
  const authUrl = nameOf("authUrl", names)
  const path = `check ${authUrl} and the path of the token endpoint`
  switch (reason) {
    case "InvalidClient":
      if (suspect !== undefined) {
        const name = names[suspect.field] ?? `the ${credentialNames[suspect.field]}`
        return `check ${client}, because ${name} ${suspect.reason}`
      }
      if (!changedByFormDecoding) return `check ${client}`
      return `check ${client}, which contain characters that servers read differently, such as + or %, ` +
        `unless ${names["endpoint.request"] ?? "TokenRequest.clientSecretPost"} sends them`
    case "InvalidRequest":
      if (code === undefined) return path
      if (/^invalid_(scope|target)$/.test(code)) return `check ${parameters}`
      if (/^(unauthorized_client|invalid_grant)$/.test(code)) {
        return `check ${client}, and ${permission}`
      }
      if (code === "invalid_dpop_proof") {
        return "check the DPoP proof: its key, the clock, and whether the options are bound to a key"
      }
      return `check ${authUrl}, and ${parameters} if it has any`
    case "RateLimited":
      return "send fewer requests"
    case "Unavailable":
      return "try again later"
    case "Other":
      if (httpStatus === 401) return `check ${authUrl}, which leads to a protected API`
      if (httpStatus === 404 || httpStatus === 405) return path
      return `check ${authUrl} and ${permission}`
  }
}
