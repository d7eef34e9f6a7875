/** The scripts by name, each with the outcome that a correct client has. */
import { Buffer } from "node:buffer"
import * as Fault from "../Fault.js"

const scenarioWith =
  <const Options>(options: Options) =>
  <const Outcome>(outcome: Outcome, script: Fault.Script) => ({
    outcome,
    script,
    options
  })

const scenario = scenarioWith({})
const overTls = scenarioWith({ tls: true })
const withAssertion = scenarioWith({ clientAuthentication: "private_key_jwt" })
const withAssertionAndNonce = scenarioWith({
  clientAuthentication: "private_key_jwt",
  dpop: "nonce"
})
const withProof = scenarioWith({ dpop: "no-nonce" })
const withNonce = scenarioWith({ dpop: "nonce" })
const withNoncePerRequest = scenarioWith({ dpop: "nonce-per-request" })

const aToken = { requests: 1 }
const tokenAfterRetry = { requests: 2 }
const noToken = { error: "TokenResponseError", requests: 1 } as const
const expiredToken = { error: "TokenExpiredError", requests: 1 } as const
const severalAttempts = {
  error: "TokenRequestError",
  reason: "Transport",
  attempts: "several"
} as const
const timeout = { error: "TokenRequestError", reason: "Timeout", attempts: "several" } as const
const untrustedCertificate = {
  error: "TokenRequestError",
  reason: "Certificate",
  attempts: 1
} as const
const refusedRedirect = {
  error: "TokenRequestError",
  reason: "Redirect",
  attempts: 1
} as const
const tooLarge = { error: "TokenRequestError", reason: "TooLarge", attempts: 1 } as const
const outage = { error: "TokenRefusedError", reason: "Unavailable", requests: 6 } as const
const refusal = (
  reason: string
) => ({ error: "TokenRefusedError", reason, requests: 1 } as const)

/** Some clients accept what nobody asked for. */
const unreadableBody = {
  or: [{ error: "TokenRequestError", reason: "Transport" }, { error: "TokenResponseError" }]
} as const

const always = { times: Infinity }
const onApi = { on: "api" } as const
const contentType = (type: string) => ({ headers: { "Content-Type": type } })
const retryAfter = (...values: ReadonlyArray<string>) => ({
  headers: { "Retry-After": values }
})

const token = JSON.stringify({
  access_token: "token-of-a-scenario",
  token_type: "bearer",
  expires_in: 3600
})

const html = {
  headers: { "Content-Type": "text/html" },
  body: "<html><body><h1>No</h1></body></html>"
}
const persistentHtml = { ...html, times: Infinity }
const persistentJson = {
  times: Infinity,
  body: `{"errors":[{"errorCode":"Invented","message":"Out of order"}]}`
}
const gatewayError = {
  body: `{"fault":{"faultstring":"No","detail":{"errorcode":"oauth.v2.Invented"}}}`
}
const oauthError = (error: string, description = "A description") => ({
  body: JSON.stringify({ error, error_description: description })
})

const rejectToken = (
  error: string,
  options: Fault.Options = { on: "api", times: Infinity }
) =>
  Fault.status(401, {
    ...options,
    headers: { "WWW-Authenticate": `Bearer realm="store-api", error=${error}` }
  })

const refuseBoundToken = (error: string, options: Fault.Options = onApi) =>
  Fault.status(401, {
    ...options,
    headers: { "WWW-Authenticate": `DPoP realm="store-api", error="${error}"` }
  })

/** In the order of the README. */
export const scenarios = {
  // The token endpoint responds with 200.
  "token/specification": scenario(aToken, []),
  "token/charset": scenario(
    aToken,
    Fault.fields({}, contentType("application/json;charset=UTF-8"))
  ),
  "token/bearer-capitalised": scenario(aToken, Fault.fields({ token_type: "Bearer" })),
  "token/bearer-upper-case": scenario(aToken, Fault.fields({ token_type: "BEARER" })),
  "token/token-type-absent": scenario(aToken, Fault.fields({ token_type: undefined })),
  "token/only-required-fields": scenario(
    aToken,
    Fault.fields({
      expires_in: undefined,
      scope: undefined,
      application_name: undefined,
      "developer.email": undefined,
      issued_at: undefined,
      client_id: undefined
    })
  ),
  "token/extra-fields": scenario(
    aToken,
    Fault.fields({ refresh_count: "0", nested: { of: ["anything", null] } })
  ),
  "token/issued-at-number": scenario(aToken, Fault.fields({ issued_at: 1_700_000_000_000 })),
  "token/chunked": scenario(
    aToken,
    Fault.fields({}, { headers: { "Transfer-Encoding": "chunked" } })
  ),
  "token/long-token": scenario(aToken, Fault.fields({ access_token: "t".repeat(8 * 1024) })),
  "token/slow-answer": scenario(aToken, Fault.delay("1 second")),
  "token/expires-in-absent": scenario(aToken, Fault.fields({ expires_in: undefined })),
  "token/expires-in-null": scenario(aToken, Fault.fields({ expires_in: null })),
  "token/expires-in-digits": scenario(aToken, Fault.fields({ expires_in: "1799" })),
  "token/expires-in-one": scenario(aToken, Fault.fields({ expires_in: 1 })),
  "token/expires-in-larger-than-an-hour": scenario(
    aToken,
    Fault.fields({ expires_in: 86_400 })
  ),
  "token/expires-in-fraction": scenario(aToken, Fault.fields({ expires_in: 1799.9 })),
  "token/expires-in-huge": scenario(aToken, Fault.fields({ expires_in: 1e15 })),
  "token/unasked-continue": scenario(unreadableBody, Fault.unaskedContinue(always)),
  "token/unasked-gzip": scenario(unreadableBody, Fault.gzip(always)),
  "token/expires-in-zero": scenario(expiredToken, Fault.fields({ expires_in: 0 })),
  "token/expires-in-negative": scenario(expiredToken, Fault.fields({ expires_in: -1 })),
  "token/expires-in-infinite": scenario(aToken, Fault.body(token.replace("3600", "1e999"))),
  "token/expires-in-word": scenario(noToken, Fault.fields({ expires_in: "an hour" })),
  "token/expires-in-empty": scenario(noToken, Fault.fields({ expires_in: "" })),
  "token/expires-in-boolean": scenario(noToken, Fault.fields({ expires_in: true })),
  "token/access-token-absent": scenario(noToken, Fault.fields({ access_token: undefined })),
  "token/access-token-empty": scenario(noToken, Fault.fields({ access_token: "" })),
  "token/access-token-null": scenario(noToken, Fault.fields({ access_token: null })),
  "token/access-token-number": scenario(noToken, Fault.fields({ access_token: 12345 })),
  "token/access-token-object": scenario(
    noToken,
    Fault.fields({ access_token: { value: "token-of-a-scenario" } })
  ),
  "token/access-token-with-line-break": scenario(
    noToken,
    Fault.fields({ access_token: "token\r\nX-Injected: 1" })
  ),
  "token/access-token-with-trailing-line-feed": scenario(
    noToken,
    Fault.fields({ access_token: "token\n" })
  ),
  "token/access-token-with-nul": scenario(
    noToken,
    Fault.fields({ access_token: "token\u0000" })
  ),
  "token/access-token-with-space": scenario(noToken, Fault.fields({ access_token: "to ken" })),
  "token/access-token-not-ascii": scenario(noToken, Fault.fields({ access_token: "tök€n" })),
  "token/access-token-absurdly-long": scenario(
    noToken,
    Fault.fields({ access_token: "t".repeat(32 * 1024) })
  ),
  "token/token-type-other": scenario(noToken, Fault.fields({ token_type: "mac" })),
  "token/token-type-with-line-break": scenario(
    noToken,
    Fault.fields({ token_type: "bearer\r\nX-Injected: 1" })
  ),
  "token/body-html": scenario(
    noToken,
    Fault.body("<!DOCTYPE html><html><body>Welcome</body></html>", contentType("text/html"))
  ),
  "token/body-form": scenario(
    noToken,
    Fault.body(
      "access_token=token-of-a-scenario",
      contentType("application/x-www-form-urlencoded")
    )
  ),
  "token/body-array": scenario(noToken, Fault.body(`[${token}]`)),
  "token/body-null": scenario(noToken, Fault.body("null")),
  "token/body-string": scenario(noToken, Fault.body(`"token-of-a-scenario"`)),
  "token/body-truncated": scenario(noToken, Fault.body(token.slice(0, -8))),
  "token/body-trailing": scenario(noToken, Fault.body(`${token}}`)),
  "token/body-deeply-nested": scenario(
    noToken,
    Fault.body("[".repeat(10_000) + "]".repeat(10_000))
  ),
  "token/body-utf-16": scenario(
    noToken,
    Fault.body(Buffer.from(token, "utf16le"), contentType("application/json;charset=UTF-16"))
  ),
  "token/body-garbage": scenario(
    noToken,
    Fault.body(
      Buffer.from(Array.from({ length: 256 }, (_, index) => (index * 167 + 13) % 256))
    )
  ),
  "token/body-nothing": scenario(noToken, Fault.body("")),
  "token/body-no-content": scenario(noToken, Fault.status(204)),
  "token/body-oauth-error": scenario(
    refusal("InvalidClient"),
    Fault.status(200, oauthError("invalid_client"))
  ),

  // The connection to the token endpoint fails, or the response is slow, large or invalid.
  "token/reset-on-accept": scenario(severalAttempts, Fault.reset("connection", always)),
  "token/reset-before-headers": scenario(severalAttempts, Fault.reset("answer", always)),
  "token/reset-in-headers": scenario(severalAttempts, Fault.reset("headers", always)),
  "token/reset-in-body": scenario(severalAttempts, Fault.reset("body", always)),
  "token/close-on-accept": scenario(severalAttempts, Fault.close("connection", always)),
  "token/close-before-headers": scenario(severalAttempts, Fault.close("answer", always)),
  "token/close-in-headers": scenario(severalAttempts, Fault.close("headers", always)),
  "token/close-in-body": scenario(severalAttempts, Fault.close("body", always)),
  "token/not-http": scenario(severalAttempts, Fault.notHttp(always)),
  "token/bad-chunks": scenario(severalAttempts, Fault.badChunks(always)),
  "token/contradicting-lengths": scenario(severalAttempts, Fault.contradictingLengths(always)),
  "token/huge-headers": scenario(severalAttempts, Fault.hugeHeaders(always)),
  "token/silence-on-accept": scenario(timeout, Fault.silence("connection", always)),
  "token/silence": scenario(timeout, Fault.hang(always)),
  "token/silence-in-headers": scenario(timeout, Fault.silence("headers", always)),
  "token/silence-in-body": scenario(timeout, Fault.silence("body", always)),
  "token/drip": scenario(timeout, Fault.drip("50 millis", always)),
  "token/drip-in-error": scenario({
    error: "TokenRefusedError",
    reason: "Unavailable",
    or: [{ error: "TokenRequestError", reason: "Timeout" }],
    attempts: "several"
  }, Fault.drip("50 millis", { times: Infinity, status: 503 })),
  "token/flood-100-mb": scenario(tooLarge, Fault.flood(100 * 1024 * 1024)),
  "token/flood-endless": scenario(tooLarge, Fault.flood(Infinity)),
  "token/bomb": scenario(tooLarge, Fault.bomb(100)),
  "token/flood-100-mb-in-error": scenario(
    refusal("InvalidRequest"),
    Fault.flood(100 * 1024 * 1024, { status: 400 })
  ),
  "token/flood-endless-in-error": scenario(
    refusal("InvalidRequest"),
    Fault.flood(Infinity, { status: 400 })
  ),
  "token/bomb-in-error": scenario(refusal("InvalidRequest"), Fault.bomb(100, { status: 400 })),
  "token/fails-then-works": scenario({ requests: 4 }, [
    Fault.status(503),
    Fault.reset("body"),
    Fault.status(500)
  ]),
  "token/uneven-delays": scenario({ requests: 3 }, [
    Fault.status(503, { delay: "170 millis" }),
    Fault.status(500, { delay: "20 millis" }),
    Fault.delay("230 millis")
  ]),
  "token/stale-connection": scenario({ requests: "several" }, [
    Fault.status(503),
    Fault.stale()
  ]),

  // TLS fails.
  "token/tls": overTls(aToken, []),
  "token/tls-self-signed": overTls(untrustedCertificate, Fault.tls("SelfSigned", always)),
  "token/tls-expired": overTls(untrustedCertificate, Fault.tls("Expired", always)),
  "token/tls-wrong-host": overTls(untrustedCertificate, Fault.tls("WrongHost", always)),
  "token/tls-1.1-only": overTls(severalAttempts, Fault.tls("Tls1.1", always)),
  "token/tls-unfinished-handshake": overTls(timeout, Fault.unfinishedHandshake(always)),

  // The token endpoint redirects.
  "token/redirect-301": scenario(refusedRedirect, Fault.redirect(301, "elsewhere")),
  "token/redirect-302": scenario(refusedRedirect, Fault.redirect(302, "elsewhere")),
  "token/redirect-303": scenario(refusedRedirect, Fault.redirect(303, "elsewhere")),
  "token/redirect-307": scenario(refusedRedirect, Fault.redirect(307, "elsewhere")),
  "token/redirect-308": scenario(refusedRedirect, Fault.redirect(308, "elsewhere")),
  "token/redirect-301-to-itself": scenario(refusedRedirect, Fault.redirect(301, "itself")),
  "token/redirect-302-to-itself": scenario(refusedRedirect, Fault.redirect(302, "itself")),
  "token/redirect-303-to-itself": scenario(refusedRedirect, Fault.redirect(303, "itself")),
  "token/redirect-307-to-itself": scenario(refusedRedirect, Fault.redirect(307, "itself")),
  "token/redirect-308-to-itself": scenario(refusedRedirect, Fault.redirect(308, "itself")),
  "token/redirect-loop": scenario(refusedRedirect, Fault.redirect(307, "loop", always)),
  "token/redirect-without-location": scenario(refusedRedirect, Fault.redirect(302, {})),
  "token/redirect-to-no-url": scenario(
    refusedRedirect,
    Fault.redirect(302, { location: "http://[" })
  ),
  "token/redirect-to-another-scheme": scenario(
    refusedRedirect,
    Fault.redirect(302, { location: "ftp://store.example.invalid/token" })
  ),
  "token/redirect-to-nothing": scenario(
    refusedRedirect,
    Fault.redirect(302, { location: "" })
  ),
  "token/redirect-with-endless-body": scenario(
    refusedRedirect,
    Fault.flood(Infinity, { status: 302 })
  ),
  "token/redirect-302-to-http": overTls(refusedRedirect, Fault.redirect(302, "elsewhere")),
  "token/redirect-307-to-http": overTls(refusedRedirect, Fault.redirect(307, "elsewhere")),

  // The token endpoint responds with an error status.
  "token/400-rfc": scenario(
    refusal("InvalidRequest"),
    Fault.status(400, oauthError("invalid_request"))
  ),
  "token/400-gateway": scenario(refusal("InvalidRequest"), Fault.status(400, gatewayError)),
  "token/400-html": scenario(refusal("InvalidRequest"), Fault.status(400, html)),
  "token/400-nothing": scenario(refusal("InvalidRequest"), Fault.status(400)),
  "token/401-rfc": scenario(
    refusal("InvalidClient"),
    Fault.status(401, oauthError("invalid_client"))
  ),
  "token/401-gateway": scenario(refusal("InvalidClient"), Fault.status(401, gatewayError)),
  "token/401-html": scenario(refusal("InvalidClient"), Fault.status(401, html)),
  "token/401-nothing": scenario(refusal("InvalidClient"), Fault.status(401)),
  "token/403-rfc": scenario(refusal("Other"), Fault.status(403, oauthError("access_denied"))),
  "token/403-gateway": scenario(refusal("Other"), Fault.status(403, gatewayError)),
  "token/403-html": scenario(refusal("Other"), Fault.status(403, html)),
  "token/403-nothing": scenario(refusal("Other"), Fault.status(403)),
  "token/404": scenario(refusal("Other"), Fault.status(404, html)),
  "token/405": scenario(refusal("Other"), Fault.status(405)),
  "token/413": scenario(refusal("Other"), Fault.status(413)),
  "token/echo": scenario(refusal("InvalidRequest"), Fault.echo(400)),
  "token/control-characters": scenario(
    refusal("InvalidRequest"),
    Fault.status(
      400,
      oauthError(
        "invalid_request\u0007",
        "line\r\nbreak \u001b[31mred\u001b[0m \u202eturned \u0000 nul"
      )
    )
  ),
  "token/429-retry-after-seconds": scenario(
    tokenAfterRetry,
    Fault.status(429, retryAfter("1"))
  ),
  "token/429-retry-after-date": scenario(tokenAfterRetry, Fault.retryDate(429, "2 seconds")),
  "token/429-retry-after-zero": scenario(tokenAfterRetry, Fault.status(429, retryAfter("0"))),
  "token/429-retry-after-past": scenario(
    tokenAfterRetry,
    Fault.status(429, retryAfter("Sun, 06 Nov 1994 08:49:37 GMT"))
  ),
  "token/429-retry-after-negative": scenario(
    refusal("RateLimited"),
    Fault.status(429, retryAfter("-5"))
  ),
  "token/429-retry-after-fraction": scenario(
    refusal("RateLimited"),
    Fault.status(429, retryAfter("0.5"))
  ),
  "token/429-retry-after-junk": scenario(
    refusal("RateLimited"),
    Fault.status(429, retryAfter("soon"))
  ),
  "token/429-retry-after-twice": scenario(
    tokenAfterRetry,
    Fault.status(429, retryAfter("1", "2"))
  ),
  "token/429-without-retry-after": scenario(refusal("RateLimited"), Fault.status(429)),
  "token/429-retry-after-year": scenario(
    refusal("RateLimited"),
    Fault.status(429, retryAfter("31536000"))
  ),
  "token/503-retry-after-seconds": scenario(
    tokenAfterRetry,
    Fault.status(503, retryAfter("1"))
  ),
  "token/503-retry-after-date": scenario(tokenAfterRetry, Fault.retryDate(503, "2 seconds")),
  "token/503-retry-after-zero": scenario(tokenAfterRetry, Fault.status(503, retryAfter("0"))),
  "token/503-retry-after-past": scenario(
    tokenAfterRetry,
    Fault.status(503, retryAfter("Sun, 06 Nov 1994 08:49:37 GMT"))
  ),
  "token/503-retry-after-negative": scenario(
    tokenAfterRetry,
    Fault.status(503, retryAfter("-5"))
  ),
  "token/503-retry-after-fraction": scenario(
    tokenAfterRetry,
    Fault.status(503, retryAfter("0.5"))
  ),
  "token/503-retry-after-junk": scenario(
    tokenAfterRetry,
    Fault.status(503, retryAfter("soon"))
  ),
  "token/503-retry-after-twice": scenario(
    tokenAfterRetry,
    Fault.status(503, retryAfter("1", "2"))
  ),
  "token/503-without-retry-after": scenario(tokenAfterRetry, Fault.status(503)),
  "token/503-retry-after-year": scenario(
    refusal("Unavailable"),
    Fault.status(503, retryAfter("31536000"))
  ),
  "token/429-always": scenario(refusal("RateLimited"), Fault.status(429, always)),
  "token/500-json": scenario(outage, Fault.status(500, persistentJson)),
  "token/500-html": scenario(outage, Fault.status(500, persistentHtml)),
  "token/500-nothing": scenario(outage, Fault.status(500, always)),
  "token/502-json": scenario(outage, Fault.status(502, persistentJson)),
  "token/502-html": scenario(outage, Fault.status(502, persistentHtml)),
  "token/502-nothing": scenario(outage, Fault.status(502, always)),
  "token/503-json": scenario(outage, Fault.status(503, persistentJson)),
  "token/503-html": scenario(outage, Fault.status(503, persistentHtml)),
  "token/503-nothing": scenario(outage, Fault.status(503, always)),
  "token/504-json": scenario(outage, Fault.status(504, persistentJson)),
  "token/504-html": scenario(outage, Fault.status(504, persistentHtml)),
  "token/504-nothing": scenario(outage, Fault.status(504, always)),
  "token/529-json": scenario(outage, Fault.status(529, persistentJson)),
  "token/529-html": scenario(outage, Fault.status(529, persistentHtml)),
  "token/529-nothing": scenario(outage, Fault.status(529, always)),
  "token/599-json": scenario(outage, Fault.status(599, persistentJson)),
  "token/599-html": scenario(outage, Fault.status(599, persistentHtml)),
  "token/599-nothing": scenario(outage, Fault.status(599, always)),

  // The token endpoint binds the token to a key, or the client signs an assertion.
  "token/dpop": withProof(aToken, []),
  "token/dpop-bearer": withProof(noToken, Fault.fields({ token_type: "Bearer" })),
  "token/dpop-wrong-clock": withProof(
    refusal("InvalidRequest"),
    Fault.status(400, oauthError("invalid_dpop_proof"))
  ),
  "token/dpop-nonce": withNonce(tokenAfterRetry, []),
  "token/dpop-stale-nonce": withNonce({ requests: 3 }, Fault.forgetNonces({ times: 2 })),
  "token/dpop-nonce-always-stale": withNonce(
    { error: "TokenRefusedError", reason: "InvalidRequest", requests: 6 },
    Fault.forgetNonces(always)
  ),
  "token/dpop-nonce-per-request": withNoncePerRequest(tokenAfterRetry, []),
  "token/assertion": withAssertion(aToken, []),
  "token/assertion-refused": withAssertion(
    refusal("InvalidClient"),
    Fault.status(401, oauthError("invalid_client"))
  ),
  "token/assertion-valid-once": withAssertionAndNonce(tokenAfterRetry, []),

  // The API rejects, refuses or redirects.
  "api/401-once": scenario(
    { status: 200, requests: 2, newTokens: 1 },
    rejectToken(`"invalid_token"`, onApi)
  ),
  "api/401-always": scenario(
    { status: 401, requests: 2, newTokens: 1 },
    rejectToken(`"invalid_token"`)
  ),
  "api/401-hundred-at-once": scenario(
    { status: 200, calls: 100, requests: 200, newTokens: 1 },
    Fault.revoke(onApi)
  ),
  "api/missing-scope": scenario(
    { status: 401, requests: 1, newTokens: 0 },
    rejectToken(`"insufficient_scope"`)
  ),
  "api/missing-product": scenario(
    { status: 401, requests: 1, newTokens: 0 },
    rejectToken(
      `"invalid_token", error_description="oauth.v2.InvalidApiKeyForGivenResource: NoApiProductMatch"`
    )
  ),
  "api/403": scenario(
    { status: 403, requests: 1, newTokens: 0 },
    Fault.status(403, { on: "api", times: Infinity, body: `{"message":"no entitlement"}` })
  ),
  "api/redirect-301": scenario(
    { status: 301, requests: 1, newTokens: 0 },
    Fault.redirect(301, "elsewhere", onApi)
  ),
  "api/redirect-302": scenario(
    { status: 302, requests: 1, newTokens: 0 },
    Fault.redirect(302, "elsewhere", onApi)
  ),
  "api/redirect-303": scenario(
    { status: 303, requests: 1, newTokens: 0 },
    Fault.redirect(303, "elsewhere", onApi)
  ),
  "api/redirect-307": scenario(
    { status: 307, requests: 1, newTokens: 0 },
    Fault.redirect(307, "elsewhere", onApi)
  ),
  "api/redirect-308": scenario(
    { status: 308, requests: 1, newTokens: 0 },
    Fault.redirect(308, "elsewhere", onApi)
  ),
  "api/redirect-to-http": overTls(
    { status: 302, requests: 1, newTokens: 0 },
    Fault.redirect(302, "elsewhere", onApi)
  ),
  "api/pointed-elsewhere": scenario({
    error: "UntrustedOriginError",
    requests: 0,
    newTokens: 0
  }, []),
  "api/only-literal-bearer": scenario(
    { status: 200, requests: 1, newTokens: 0 },
    Fault.fields({ token_type: "bearer" })
  ),

  // The API requires a proof of the key.
  "api/dpop": withProof({ status: 200, requests: 1, newTokens: 0 }, []),
  "api/dpop-revoked": withProof(
    { status: 200, requests: 2, newTokens: 1 },
    Fault.revoke(onApi)
  ),
  "api/dpop-another-key": withProof(
    { status: 200, requests: 2, newTokens: 1 },
    refuseBoundToken("invalid_token")
  ),
  "api/dpop-wrong-clock": withProof(
    { status: 401, requests: 1, newTokens: 0 },
    refuseBoundToken("invalid_dpop_proof", { on: "api", times: Infinity })
  ),
  "api/dpop-stale-nonce": withNonce(
    { status: 200, requests: 2, newTokens: 0 },
    Fault.forgetNonces(onApi)
  ),
  "api/dpop-nonce-always-stale": withNonce(
    { status: 401, requests: 2, newTokens: 0 },
    Fault.forgetNonces({ on: "api", times: Infinity })
  ),
  "api/dpop-nonce-per-request": withNoncePerRequest(
    { status: 200, calls: 20, requests: 40, newTokens: 0 },
    []
  )
}
