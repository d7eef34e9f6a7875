/** The token endpoint answers 200: with a token, with a token's life that is none, with something else. */
import { Buffer } from "node:buffer"
import * as Fault from "../../Fault.js"
import { alike, overTls, scenario } from "./scenario.js"

const token = { access_token: "token-of-a-scenario", token_type: "bearer", expires_in: 3600 }
const body = JSON.stringify(token)
const html = (text: string) => `<!DOCTYPE html><html><body>${text}</body></html>`
const noToken = "TokenResponseError after one request"

export const good = {
  "token/specification": scenario("a token after one request", []),
  ...alike("token/", "a token after one request", {
    "charset": Fault.fields({}, { headers: { "Content-Type": "application/json;charset=UTF-8" } }),
    "bearer-capitalised": Fault.fields({ token_type: "Bearer" }),
    "bearer-upper-case": Fault.fields({ token_type: "BEARER" }),
    "only-required-fields": Fault.fields({
      expires_in: undefined,
      scope: undefined,
      application_name: undefined,
      "developer.email": undefined,
      issued_at: undefined,
      client_id: undefined
    }),
    "extra-fields": Fault.fields({ refresh_count: "0", nested: { of: ["anything", null] } }),
    "issued-at-number": Fault.fields({ issued_at: 1_700_000_000_000 }),
    "chunked": Fault.fields({}, { headers: { "Transfer-Encoding": "chunked" } }),
    "long-token": Fault.fields({ access_token: "t".repeat(8 * 1024) }),
    "slow-answer": Fault.delay("1 second"),
    "expires-in-absent": Fault.fields({ expires_in: undefined }),
    "expires-in-digits": Fault.fields({ expires_in: "1799" }),
    "expires-in-one": Fault.fields({ expires_in: 1 }),
    "expires-in-larger-than-an-hour": Fault.fields({ expires_in: 86_400 }),
    "expires-in-fraction": Fault.fields({ expires_in: 1799.9 }),
    "expires-in-huge": Fault.fields({ expires_in: 1e15 })
  }),
  ...alike("token/", "a token or TokenRequestError (Transport) or TokenResponseError", {
    "unasked-continue": Fault.unaskedContinue({ times: Infinity }),
    "unasked-gzip": Fault.gzip({ times: Infinity })
  })
}

export const lives = {
  ...alike("token/expires-in-", "TokenExpiredError after one request", {
    "zero": Fault.fields({ expires_in: 0 }),
    "negative": Fault.fields({ expires_in: -1 })
  }),
  ...alike("token/expires-in-", noToken, {
    "infinite": Fault.body(body.replace("3600", "1e999")),
    "word": Fault.fields({ expires_in: "an hour" }),
    "empty": Fault.fields({ expires_in: "" }),
    "null": Fault.fields({ expires_in: null }),
    "boolean": Fault.fields({ expires_in: true })
  })
}

export const fields = {
  ...alike("token/access-token-", noToken, {
    "absent": Fault.fields({ access_token: undefined }),
    "empty": Fault.fields({ access_token: "" }),
    "null": Fault.fields({ access_token: null }),
    "number": Fault.fields({ access_token: 12345 }),
    "object": Fault.fields({ access_token: { value: "token-of-a-scenario" } }),
    "with-line-break": Fault.fields({ access_token: "token\r\nX-Injected: 1" }),
    "with-trailing-line-feed": Fault.fields({ access_token: "token\n" }),
    "with-nul": Fault.fields({ access_token: "token\u0000" }),
    "with-space": Fault.fields({ access_token: "to ken" }),
    "not-ascii": Fault.fields({ access_token: "tök€n" }),
    "absurdly-long": Fault.fields({ access_token: "t".repeat(32 * 1024) })
  }),
  ...alike("token/token-type-", noToken, {
    "absent": Fault.fields({ token_type: undefined }),
    "other": Fault.fields({ token_type: "mac" }),
    "with-line-break": Fault.fields({ token_type: "bearer\r\nX-Injected: 1" })
  })
}

export const bodies = alike("token/body-", noToken, {
  "html": Fault.body(html("Welcome"), { headers: { "Content-Type": "text/html" } }),
  "form": Fault.body("access_token=token-of-a-scenario&token_type=bearer", {
    headers: { "Content-Type": "application/x-www-form-urlencoded" }
  }),
  "oauth-error": Fault.body(`{"error":"invalid_client","error_description":"Said with a 200"}`),
  "array": Fault.body(`[${body}]`),
  "null": Fault.body("null"),
  "string": Fault.body(`"token-of-a-scenario"`),
  "truncated": Fault.body(body.slice(0, -8)),
  "trailing": Fault.body(`${body}}`),
  "deeply-nested": Fault.body("[".repeat(10_000) + "]".repeat(10_000)),
  "utf-16": Fault.body(Buffer.from(body, "utf16le"), {
    headers: { "Content-Type": "application/json;charset=UTF-16" }
  }),
  "garbage": Fault.body(Buffer.from(Array.from({ length: 256 }, (_, index) => (index * 167 + 13) % 256))),
  "nothing": Fault.body(""),
  "no-content": Fault.status(204)
})

const refused = "TokenRequestError (Redirect) after one attempt"

export const redirects = {
  ...alike("token/redirect-", refused, {
    "301": Fault.redirect(301, "elsewhere"),
    "302": Fault.redirect(302, "elsewhere"),
    "303": Fault.redirect(303, "elsewhere"),
    "307": Fault.redirect(307, "elsewhere"),
    "308": Fault.redirect(308, "elsewhere"),
    "301-to-itself": Fault.redirect(301, "itself"),
    "302-to-itself": Fault.redirect(302, "itself"),
    "303-to-itself": Fault.redirect(303, "itself"),
    "307-to-itself": Fault.redirect(307, "itself"),
    "308-to-itself": Fault.redirect(308, "itself"),
    "loop": Fault.redirect(307, "loop", { times: Infinity }),
    "without-location": Fault.redirect(302, {}),
    "to-no-url": Fault.redirect(302, { location: "http://[" }),
    "to-another-scheme": Fault.redirect(302, { location: "ftp://store.example.invalid/token" }),
    "to-nothing": Fault.redirect(302, { location: "" }),
    "with-endless-body": Fault.flood(Infinity, { status: 302 })
  }),
  "token/redirect-302-to-http": overTls(refused, Fault.redirect(302, "elsewhere")),
  "token/redirect-307-to-http": overTls(refused, Fault.redirect(307, "elsewhere"))
}
