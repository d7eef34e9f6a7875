import type * as HttpClientError from "@effect/platform/HttpClientError"
import * as Option from "effect/Option"
import * as Predicate from "effect/Predicate"
import { TokenRequestError, UntrustedOriginError } from "../../AccessTokenError.js"

/**
 * Converts an error of the HTTP client, which contains the request with its body. Keeps only the error code of the
 * system.
 */
export const fromHttpClientError = (error: HttpClientError.HttpClientError): TokenRequestError => {
  const causes = chain(error.cause)
  const codes = causes.map(({ code }) => code).filter(isSystemCode)
  // `boundClient` stopped a redirect to another origin.
  const isRedirect = error.cause instanceof UntrustedOriginError
  // By the codes of OpenSSL, or by the message in runtimes without codes.
  const isCertificateFault = codes.some((code) => certificateCode.test(code)) ||
    causes.some(({ message }) => Predicate.isString(message) && /certificate/i.test(message))
  return new TokenRequestError({
    reason: isRedirect ? "Redirect" : isCertificateFault ? "Certificate" : "Transport",
    attempts: 1,
    code: Option.fromNullable(codes[0])
  })
}

const certificateCode = /CERT|ISSUER|CRL_|INVALID_CA|INVALID_PURPOSE|HOSTNAME_MISMATCH|UNABLE_TO_VERIFY/

interface Fault {
  readonly [property: string]: unknown
}

/** An error and its causes. `fetch` puts the error of the system into the cause of its own error. */
const chain = (error: unknown, depth = 0): ReadonlyArray<Fault> =>
  Predicate.isReadonlyRecord(error) && depth < 5 ? [error, ...chain(error["cause"], depth + 1)] : []

const isSystemCode = (code: unknown): code is string => Predicate.isString(code) && /^[A-Z][A-Z0-9_]{1,63}$/.test(code)
