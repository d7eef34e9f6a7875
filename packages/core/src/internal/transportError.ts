import type * as HttpClientError from "@effect/platform/HttpClientError"
import * as Option from "effect/Option"
import * as Predicate from "effect/Predicate"
import { TokenRequestError } from "../AccessTokenError.js"

/**
 * What an error of the HTTP client means, without anything that it holds: it carries the request with its body. Only the
 * name that the system gave to the fault is kept.
 */
export const fromHttpClientError = (error: HttpClientError.HttpClientError): TokenRequestError => {
  const causes = chain(error.cause)
  const code = Option.firstSomeOf(causes.map(systemCode))
  return new TokenRequestError({
    reason: causes.some(isCertificateFault) ? "Certificate" : "Transport",
    attempts: 1,
    code
  })
}

/** An error and the causes behind it: `fetch` hides the system's error in the cause of its own. */
const chain = (cause: unknown, depth = 0): ReadonlyArray<object> =>
  Predicate.isObject(cause) && depth < 5
    ? [cause, ...chain(Predicate.hasProperty(cause, "cause") ? cause.cause : undefined, depth + 1)]
    : []

const systemCode = (error: object): Option.Option<string> =>
  Predicate.hasProperty(error, "code") && typeof error.code === "string" && /^[A-Z][A-Z0-9_]{1,63}$/.test(error.code)
    ? Option.some(error.code)
    : Option.none()

/** By the codes of OpenSSL, and by the words of the runtimes that give none. */
const isCertificateFault = (error: object): boolean =>
  Option.exists(
    systemCode(error),
    (code) => /CERT|ISSUER|CRL_|INVALID_CA|INVALID_PURPOSE|HOSTNAME_MISMATCH|UNABLE_TO_VERIFY/.test(code)
  ) ||
  (Predicate.hasProperty(error, "message") && typeof error.message === "string" &&
    /certificate/i.test(error.message))
