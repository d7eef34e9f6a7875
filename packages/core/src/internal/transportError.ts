import type * as HttpClientError from "@effect/platform/HttpClientError"
import * as Option from "effect/Option"
import * as Predicate from "effect/Predicate"
import { TokenRequestError, UntrustedOriginError } from "../AccessTokenError.js"

/**
 * Converts an error of the HTTP client, which contains the request with its body. Keeps only the error code of the
 * system.
 */
export const fromHttpClientError = (error: HttpClientError.HttpClientError): TokenRequestError => {
  const causes = chain(error.cause)
  const code = Option.firstSomeOf(causes.map(systemCode))
  // `boundClient` stopped a redirect to another origin.
  const isRedirect = error.cause instanceof UntrustedOriginError
  return new TokenRequestError({
    reason: isRedirect ? "Redirect" : causes.some(isCertificateFault) ? "Certificate" : "Transport",
    attempts: 1,
    code
  })
}

interface Fault {
  readonly [property: string]: unknown
}

/** An error and its causes. `fetch` puts the error of the system into the cause of its own error. */
const chain = (error: unknown, depth = 0): ReadonlyArray<Fault> =>
  Predicate.isReadonlyRecord(error) && depth < 5 ? [error, ...chain(error["cause"], depth + 1)] : []

const systemCode = ({ code }: Fault): Option.Option<string> =>
  Option.filter(Option.liftPredicate(code, Predicate.isString), (code) => /^[A-Z][A-Z0-9_]{1,63}$/.test(code))

/** By the codes of OpenSSL, or by the message in runtimes without codes. */
const isCertificateFault = (error: Fault): boolean =>
  Option.exists(
    systemCode(error),
    (code) => /CERT|ISSUER|CRL_|INVALID_CA|INVALID_PURPOSE|HOSTNAME_MISMATCH|UNABLE_TO_VERIFY/.test(code)
  ) ||
  Predicate.isString(error["message"]) && /certificate/i.test(error["message"])
