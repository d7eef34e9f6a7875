/** The scripts by name, each with the outcome that a correct client has. */
import { Buffer } from "node:buffer"
import * as Record from "effect/Record"
import * as Fault from "../Fault.js"

const scenario = (expected: string, script: Fault.Script) => ({ script, expected, tls: false })
const overTls = (expected: string, script: Fault.Script) => ({ ...scenario(expected, script), tls: true })

/** Scenarios with the same outcome. Each name is the prefix, the key and the suffix. */
const group = <Prefix extends string, Key extends string, Suffix extends string = "">(
  prefix: Prefix,
  expected: string,
  scripts: Record<Key, Fault.Script>,
  suffix = "" as Suffix // its default
) => Record.mapEntries(scripts, (script, key) => [`${prefix}${key}${suffix}` as const, scenario(expected, script)])

/** Scenarios in which the normal response has another value in the field of this name, written with hyphens. */
const field = <Name extends string, Key extends string>(name: Name, expected: string, values: Record<Key, unknown>) =>
  group(`token/${name}-`, expected, Record.map(values, (value) => Fault.fields({ [name.replace("-", "_")]: value })))

const always = { times: Infinity }
const contentType = (type: string) => ({ headers: { "Content-Type": type } })

const aToken = "a token after one request"
const noToken = "TokenResponseError after one request"
const severalAttempts = "TokenRequestError (Transport) after several attempts"
const timeout = "TokenRequestError (Timeout) after several attempts"
const untrusted = "TokenRequestError (Certificate) after one attempt"
const redirected = "TokenRequestError (Redirect) after one attempt"
const notForwarded = "the other origin does not receive the token"
const refused = (reason: string) => `TokenRefusedError (${reason}) after one request`

const token = JSON.stringify({ access_token: "token-of-a-scenario", token_type: "bearer", expires_in: 3600 })

const optionalFields = ["expires_in", "scope", "application_name", "developer.email", "issued_at", "client_id"]

const floods = (status: number) => ({
  "flood-100-mb": Fault.flood(100 * 1024 * 1024, { status }),
  "flood-endless": Fault.flood(Infinity, { status }),
  "bomb": Fault.bomb(100, { status })
})

/** Breaks off at each moment. */
const brokenOff = (fault: typeof Fault.reset) =>
  Record.map(
    { "on-accept": "connection", "before-headers": "answer", "in-headers": "headers", "in-body": "body" } as const,
    (moment) => fault(moment, always)
  )

/** A redirect with each status to one target. */
const redirectsTo = (target: Fault.RedirectTarget, options?: Fault.Options) =>
  Record.map(
    { "301": 301, "302": 302, "303": 303, "307": 307, "308": 308 },
    (status) => Fault.redirect(status, target, options)
  )

const html = { ...contentType("text/html"), body: "<html><body><h1>No</h1></body></html>" }
const gatewayError = { body: `{"fault":{"faultstring":"No","detail":{"errorcode":"oauth.v2.Invented"}}}` }
const oauthError = (error: string, description = "A description") => ({
  body: JSON.stringify({ error, error_description: description })
})

/** The token endpoint refuses the request with this status and each kind of body. */
const refusals = <const Status extends number>(status: Status, reason: string, error: string) =>
  group(`token/${status}-`, refused(reason), {
    "rfc": Fault.status(status, oauthError(error)),
    "gateway": Fault.status(status, gatewayError),
    "html": Fault.status(status, html),
    "nothing": Fault.status(status)
  })

/** A client always retries a 503. It retries a 429 only if `Retry-After` holds a time. */
const retryAfter = <const Status extends number>(status: Status, reason: string, withoutTime: string) => {
  const name = `token/${status}-retry-after-` as const
  const header = (...values: ReadonlyArray<string>) => Fault.status(status, { headers: { "Retry-After": values } })
  const retried = "a token after 2 requests"
  return {
    ...group(name, retried, { "seconds": header("1"), "date": Fault.retryDate(status, "2 seconds") }),
    ...group(name, retried, { "zero": header("0"), "past": header("Sun, 06 Nov 1994 08:49:37 GMT") }),
    ...group(name, withoutTime, { "negative": header("-5"), "fraction": header("0.5"), "junk": header("soon") }),
    ...group(name, retried, { "twice": header("1", "2") }),
    ...group(`token/${status}-`, withoutTime, { "without-retry-after": Fault.status(status) }),
    ...group(name, refused(reason), { "year": header("31536000") })
  }
}

const outage = <const Status extends number>(status: Status) =>
  group(`token/${status}-`, "TokenRefusedError (Unavailable) after 6 requests", {
    "json": Fault.status(status, { ...always, body: `{"errors":[{"errorCode":"Invented","message":"Out of order"}]}` }),
    "html": Fault.status(status, { ...html, ...always }),
    "nothing": Fault.status(status, always)
  })

const onApi = { on: "api" } as const
const unauthorized = (more: string, options: Fault.Options = { ...onApi, ...always }) =>
  Fault.status(401, { ...options, headers: { "WWW-Authenticate": `Bearer realm="store-api", error=${more}` } })

/** In the order of the README. */
export const scenarios = {
  // The token endpoint responds with 200.
  "token/specification": scenario(aToken, []),
  ...group("token/", aToken, {
    "charset": Fault.fields({}, contentType("application/json;charset=UTF-8")),
    "bearer-capitalised": Fault.fields({ token_type: "Bearer" }),
    "bearer-upper-case": Fault.fields({ token_type: "BEARER" }),
    "token-type-absent": Fault.fields({ token_type: undefined }),
    "only-required-fields": Fault.fields(Object.fromEntries(optionalFields.map((name) => [name, undefined]))),
    "extra-fields": Fault.fields({ refresh_count: "0", nested: { of: ["anything", null] } }),
    "issued-at-number": Fault.fields({ issued_at: 1_700_000_000_000 }),
    "chunked": Fault.fields({}, { headers: { "Transfer-Encoding": "chunked" } }),
    "long-token": Fault.fields({ access_token: "t".repeat(8 * 1024) }),
    "slow-answer": Fault.delay("1 second")
  }),
  ...field("expires-in", aToken, { "absent": undefined, "null": null, "digits": "1799", "one": 1 }),
  ...field("expires-in", aToken, { "larger-than-an-hour": 86_400, "fraction": 1799.9, "huge": 1e15 }),
  ...group("token/", "a token or TokenRequestError (Transport) or TokenResponseError", {
    "unasked-continue": Fault.unaskedContinue(always),
    "unasked-gzip": Fault.gzip(always)
  }),
  ...field("expires-in", "TokenExpiredError after one request", { "zero": 0, "negative": -1 }),
  "token/expires-in-infinite": scenario(noToken, Fault.body(token.replace("3600", "1e999"))),
  ...field("expires-in", noToken, { "word": "an hour", "empty": "", "boolean": true }),
  ...field("access-token", noToken, { "absent": undefined, "empty": "", "null": null, "number": 12345 }),
  ...field("access-token", noToken, { "object": { value: "token-of-a-scenario" } }),
  ...field("access-token", noToken, { "with-line-break": "token\r\nX-Injected: 1" }),
  ...field("access-token", noToken, { "with-trailing-line-feed": "token\n", "with-nul": "token\u0000" }),
  ...field("access-token", noToken, { "with-space": "to ken", "not-ascii": "tök€n" }),
  ...field("access-token", noToken, { "absurdly-long": "t".repeat(32 * 1024) }),
  ...field("token-type", noToken, { "other": "mac", "with-line-break": "bearer\r\nX-Injected: 1" }),
  ...group("token/body-", noToken, {
    "html": Fault.body("<!DOCTYPE html><html><body>Welcome</body></html>", contentType("text/html")),
    "form": Fault.body("access_token=token-of-a-scenario", contentType("application/x-www-form-urlencoded")),
    "array": Fault.body(`[${token}]`),
    "null": Fault.body("null"),
    "string": Fault.body(`"token-of-a-scenario"`),
    "truncated": Fault.body(token.slice(0, -8)),
    "trailing": Fault.body(`${token}}`),
    "deeply-nested": Fault.body("[".repeat(10_000) + "]".repeat(10_000)),
    "utf-16": Fault.body(Buffer.from(token, "utf16le"), contentType("application/json;charset=UTF-16")),
    "garbage": Fault.body(Buffer.from(Array.from({ length: 256 }, (_, index) => (index * 167 + 13) % 256))),
    "nothing": Fault.body(""),
    "no-content": Fault.status(204)
  }),
  "token/body-oauth-error": scenario(refused("InvalidClient"), Fault.status(200, oauthError("invalid_client"))),

  // The connection to the token endpoint fails, or the response is slow, large or invalid.
  ...group("token/reset-", severalAttempts, brokenOff(Fault.reset)),
  ...group("token/close-", severalAttempts, brokenOff(Fault.close)),
  ...group("token/", severalAttempts, {
    "not-http": Fault.notHttp(always),
    "bad-chunks": Fault.badChunks(always),
    "contradicting-lengths": Fault.contradictingLengths(always),
    "huge-headers": Fault.hugeHeaders(always)
  }),
  ...group("token/", timeout, {
    "silence-on-accept": Fault.silence("connection", always),
    "silence": Fault.hang(always),
    "silence-in-headers": Fault.silence("headers", always),
    "silence-in-body": Fault.silence("body", always),
    "drip": Fault.drip("50 millis", always)
  }),
  "token/drip-in-error": scenario(
    "TokenRefusedError (Unavailable) or TokenRequestError (Timeout) after several attempts",
    Fault.drip("50 millis", { ...always, status: 503 })
  ),
  ...group("token/", "TokenRequestError (TooLarge) after one attempt", floods(200)),
  ...group("token/", refused("InvalidRequest"), floods(400), "-in-error"),
  "token/fails-then-works": scenario("a token after 4 requests", [
    Fault.status(503),
    Fault.reset("body"),
    Fault.status(500)
  ]),
  "token/uneven-delays": scenario("a token after 3 requests", [
    Fault.status(503, { delay: "170 millis" }),
    Fault.status(500, { delay: "20 millis" }),
    Fault.delay("230 millis")
  ]),
  "token/stale-connection": scenario("a token after several requests", [Fault.status(503), Fault.stale()]),

  // TLS fails.
  "token/tls": overTls(aToken, []),
  "token/tls-self-signed": overTls(untrusted, Fault.tls("SelfSigned", always)),
  "token/tls-expired": overTls(untrusted, Fault.tls("Expired", always)),
  "token/tls-wrong-host": overTls(untrusted, Fault.tls("WrongHost", always)),
  "token/tls-1.1-only": overTls(severalAttempts, Fault.tls("Tls1.1", always)),
  "token/tls-unfinished-handshake": overTls(timeout, Fault.unfinishedHandshake(always)),

  // The token endpoint redirects.
  ...group("token/redirect-", redirected, redirectsTo("elsewhere")),
  ...group("token/redirect-", redirected, redirectsTo("itself"), "-to-itself"),
  ...group("token/redirect-", redirected, {
    "loop": Fault.redirect(307, "loop", always),
    "without-location": Fault.redirect(302, {}),
    "to-no-url": Fault.redirect(302, { location: "http://[" }),
    "to-another-scheme": Fault.redirect(302, { location: "ftp://store.example.invalid/token" }),
    "to-nothing": Fault.redirect(302, { location: "" }),
    "with-endless-body": Fault.flood(Infinity, { status: 302 })
  }),
  "token/redirect-302-to-http": overTls(redirected, Fault.redirect(302, "elsewhere")),
  "token/redirect-307-to-http": overTls(redirected, Fault.redirect(307, "elsewhere")),

  // The token endpoint responds with an error status.
  ...refusals(400, "InvalidRequest", "invalid_request"),
  ...refusals(401, "InvalidClient", "invalid_client"),
  ...refusals(403, "Other", "access_denied"),
  ...group("token/", refused("Other"), { "404": Fault.status(404, html) }),
  ...group("token/", refused("Other"), { "405": Fault.status(405), "413": Fault.status(413) }),
  ...group("token/", refused("InvalidRequest"), {
    "echo": Fault.echo(400),
    "control-characters": Fault.status(
      400,
      oauthError("invalid_request\u0007", "line\r\nbreak \u001b[31mred\u001b[0m \u202eturned \u0000 nul")
    )
  }),
  ...retryAfter(429, "RateLimited", refused("RateLimited")),
  ...retryAfter(503, "Unavailable", "a token after 2 requests"),
  "token/429-always": scenario(refused("RateLimited"), Fault.status(429, always)),
  ...{ ...outage(500), ...outage(502), ...outage(503), ...outage(504), ...outage(529), ...outage(599) },

  // The API rejects, refuses or redirects.
  "api/401-once": scenario(
    "one new token, one repeat if the body can be sent again; the caller gets the second response",
    unauthorized(`"invalid_token"`, onApi)
  ),
  "api/401-always": scenario(
    "two requests and one new token, then the caller gets the 401; many calls: five at once, then one per minute",
    unauthorized(`"invalid_token"`)
  ),
  "api/401-hundred-at-once": scenario("one new token for all of them", Fault.revoke(onApi)),
  ...group("api/", "one request, no new token", {
    "missing-scope": unauthorized(`"insufficient_scope"`),
    "missing-product": unauthorized(
      `"invalid_token", error_description="oauth.v2.InvalidApiKeyForGivenResource: NoApiProductMatch"`
    ),
    "403": Fault.status(403, { ...onApi, ...always, body: `{"message":"no entitlement"}` })
  }),
  ...group("api/redirect-", notForwarded, redirectsTo("elsewhere", onApi)),
  "api/redirect-to-http": overTls(notForwarded, Fault.redirect(302, "elsewhere", onApi)),
  "api/pointed-elsewhere": scenario("UntrustedOriginError, nothing is sent", []),
  "api/only-literal-bearer": scenario("the literal Bearer, with any token_type", Fault.fields({ token_type: "bearer" }))
}
