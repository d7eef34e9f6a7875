/** Any other path: an API that wants a token, refuses as RFC 6750 section 3 has it, and tells what it was sent. */
import * as HttpServerResponse from "@effect/platform/HttpServerResponse"
import * as Effect from "effect/Effect"
import type { Body } from "./body.js"
import { type Exchange, tokenPath } from "./exchange.js"
import type { Settings } from "./settings.js"
import type { Found, Tokens } from "./tokens.js"

export const maxBodyBytes = 1024 * 1024

const realm = `Bearer realm="store-api"`

export const answer = (
  exchange: Exchange,
  body: Body,
  settings: Settings,
  tokens: Tokens
): Effect.Effect<HttpServerResponse.HttpServerResponse> => {
  const values = exchange.header(settings.header.name)
  const token = presented(values[0], settings)
  if (values.length > 1) return Effect.succeed(malformed)
  if (token === undefined) return Effect.succeed(tokenMissing(settings))
  return Effect.map(tokens.find(token), (found) => {
    if (found._tag !== "Live") return tokenInvalid(found._tag)
    return body.tooLarge ? tooLarge : describeRequest(exchange, body, token, found.token.clientId)
  })
}

/** The scheme is compared letter by letter: servers exist that refuse `bearer`, so this one does. */
const presented = (value: string | undefined, { header: { prefix } }: Settings) =>
  value !== undefined && value.startsWith(prefix) && value.length > prefix.length
    ? value.slice(prefix.length)
    : undefined

const json = (status: number, body: unknown, challenge?: string) =>
  HttpServerResponse.unsafeJson(body, {
    status,
    headers: { "cache-control": "no-store", ...(challenge === undefined ? {} : { "www-authenticate": challenge }) }
  })

const challenged = (status: number, error: string, description: string) =>
  json(
    status,
    { error, error_description: description },
    `${realm}, error="${error}", error_description="${description}"`
  )

const malformed = challenged(400, "invalid_request", "The token was sent more than once")

const tooLarge = json(413, { message: `The body is larger than ${maxBodyBytes} bytes.` })

/** No error code: the client did not say who it is, or not in a way that this API knows. */
const tokenMissing = (settings: Settings) =>
  json(401, {
    message: `Send ${settings.header.name}: ${settings.header.prefix}<access token>; ` +
      `tokens come from POST ${tokenPath(settings)}.`
  }, realm)

const tokenInvalid = (tag: Exclude<Found["_tag"], "Live">) =>
  challenged(
    401,
    "invalid_token",
    {
      Unknown: "The access token is unknown",
      Revoked: "The access token was revoked",
      Expired: "The access token expired"
    }[
      tag
    ]
  )

/** What arrived, so that a test of a client can look at it; the token itself never goes back. */
const describeRequest = (exchange: Exchange, body: Body, token: string, clientId: string) => {
  const withoutToken = (text: string) =>
    text.replaceAll(token, "<redacted>").replaceAll(encodeURIComponent(token), "<redacted>")
  return json(200, {
    method: exchange.method,
    path: withoutToken(exchange.path),
    query: withoutToken(exchange.query ?? ""),
    clientId,
    ...(body.received > 0 ? { body: withoutToken(body.bytes.toString("utf8")) } : {})
  })
}
