/** The body of the token request. */
import * as HttpBody from "@effect/platform/HttpBody"
import * as Redacted from "effect/Redacted"
import type { ClientCredentials } from "../../ClientCredentials.js"

/** The body, unencoded (the specification, "Endpoints"; RFC 6749 §4.4.2). Contains the secret in clear text. */
export const body = ({ clientId, clientSecret }: ClientCredentials): HttpBody.Uint8Array =>
  HttpBody.uint8Array(
    new TextEncoder().encode(
      `grant_type=client_credentials&client_id=${clientId}&client_secret=${Redacted.value(clientSecret)}`
    ),
    "application/x-www-form-urlencoded"
  )

/** Whether a server that form-decodes the body (RFC 6749, appendix B) reads other credentials than these. */
export const changeWhenDecoded = ({ clientId, clientSecret }: ClientCredentials): boolean =>
  /[+%]/.test(clientId + Redacted.value(clientSecret))
