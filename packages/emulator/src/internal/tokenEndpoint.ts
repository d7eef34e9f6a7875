/** The token endpoint as in the specification or in RFC 6749, with errors as in section 5.2 of the latter. */
import { Buffer } from "node:buffer"
import { parse, type ParsedUrlQuery, unescape } from "node:querystring"
import * as HttpServerResponse from "@effect/platform/HttpServerResponse"
import * as DateTime from "effect/DateTime"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Redacted from "effect/Redacted"
import type { Client } from "../Client.js"
import type { ClientAuthentication } from "../EmulatorOptions.js"
import type { IssuedToken } from "../IssuedToken.js"
import type { Body, Request } from "./request.js"
import type { Settings } from "./settings.js"
import type { Tokens } from "./tokens.js"

export const maxBodyBytes = 64 * 1024

const contentType = "application/x-www-form-urlencoded"
const notStored = { "cache-control": "no-store", pragma: "no-cache" }

/** A refusal is a failure, which becomes a response at the end. */
export const respond = (request: Request, body: Body, settings: Settings, tokens: Tokens) =>
  Effect.gen(function*() {
    yield* refuseRequest(request, body, settings)
    const sent = body.bytes.toString()
    const read = isRaw(settings) ? readRaw(sent, settings) : readForm(request, parse(sent), settings)
    const { client, scope } = yield* read
    const { remaining, token } = yield* tokens.issue(client, scope)
    return granted(client, token, remaining)
  }).pipe(Effect.catchAll(Effect.succeed))

const isRaw = ({ methods }: Settings) => methods.includes("specification")

/** Compares without decoding: `+`, `/`, `=`, `%` and spaces in a secret are sent raw. */
const readRaw = (sent: string, { clients, lenient }: Settings) => {
  const text = lenient ? inOrder(sent) : sent
  const client = clients.find((candidate) => formOf(candidate) === text)
  return client === undefined ? refuseForm(text, clients) : Effect.succeed({ client, scope: "" })
}

const isBasic = (authorization: string) => /^basic\b/i.test(authorization)

/** Returns where a token request has credentials, accepted or not. */
export const methodsIn = ({ header }: Request, form: ParsedUrlQuery, settings: Settings) => [
  ...header("authorization").filter(isBasic).map((): ClientAuthentication => "client_secret_basic"),
  ...("client_id" in form || "client_secret" in form
    ? [isRaw(settings) ? "specification" as const : "client_secret_post" as const]
    : [])
]

/** Returns id and secret. The base64 must be that of RFC 4648, with padding. */
const readBasic = ([authorization = ""]: ReadonlyArray<string>) => {
  const sent = authorization.replace(/^\w+ +/, "")
  const bytes = Buffer.from(sent, "base64")
  const [id = "", ...secret] = bytes.toString("base64") === sent ? bytes.toString().split(":") : []
  return [id, secret.join(":")].map((value) => unescape(value.replaceAll("+", " ")))
}

/** RFC 6749 section 2.3.1: the form is decoded, and so are id and secret in a header. Ignores unknown fields. */
const readForm = (request: Request, form: ParsedUrlQuery, settings: Settings) => {
  const { clients, methods } = settings
  const sent = methodsIn(request, form, settings)
  const challenge = [...methods, ...sent].includes("client_secret_basic")
    ? { "www-authenticate": `Basic realm="store-api"` }
    : undefined
  const invalidClient = (description: string) => refused(401, "invalid_client", description, challenge)

  const known = [...fields, "scope"]
  const isRepeated = known.some((name) => Array.isArray(form[name]))
  if (isRepeated) return invalidRequest(`None of ${known.join(", ")} may be repeated.`)
  const [grantType, ...inBody] = fields.map((name) => form[name])
  if (!grantType) return invalidRequest("The body must hold grant_type.")
  if (grantType !== grant) return otherGrant
  const [method, ...more] = sent
  if (more.length > 0) return invalidRequest("The credentials must be sent once: in the header or the body.")
  if (method === undefined || !methods.includes(method)) {
    return invalidClient(`The client must authenticate with ${methods.join(" or ")}.`)
  }
  const [id, secret] = method === "client_secret_basic" ? readBasic(request.header("authorization")) : inBody
  const client = clients.find(({ clientId, clientSecret }) =>
    clientId === id && Redacted.value(clientSecret) === secret
  )
  return client === undefined
    ? invalidClient(`The client_id is unknown or the client_secret is wrong, or not encoded as ${method} requires.`)
    : Effect.succeed({ client, scope: String(form["scope"] ?? "") })
}

const granted = (client: Client, token: IssuedToken, remaining: Duration.Duration) =>
  HttpServerResponse.unsafeJson({
    access_token: Redacted.value(token.value),
    token_type: "bearer",
    expires_in: Math.floor(Duration.toSeconds(remaining)),
    scope: token.scope,
    application_name: client.applicationName ?? client.clientId,
    "developer.email": client.developerEmail ?? "developer@example.invalid",
    issued_at: String(DateTime.toEpochMillis(token.issuedAt)),
    client_id: client.clientId
  }, { headers: notStored })

/** The description is a fixed sentence, so that it holds no part of the request. */
const refused = (status: number, error: string, description: string, headers?: Readonly<Record<string, string>>) =>
  Effect.fail(
    HttpServerResponse.unsafeJson(
      { error, error_description: description },
      { status, headers: { ...notStored, ...headers } }
    )
  )

const invalidRequest = (description: string, status = 400, headers?: Readonly<Record<string, string>>) =>
  refused(status, "invalid_request", description, headers)

const refuseRequest = ({ header, method, query }: Request, { received }: Body, settings: Settings) => {
  if (method !== "POST") return invalidRequest("The method must be POST.", 405, { allow: "POST" })
  if (query !== undefined) return invalidRequest("The request must have no query parameters and no question mark.")
  const types = header("content-type").map((type) =>
    settings.lenient ? type.replace(/;.*/, "").trim().toLowerCase() : type
  )
  if (types.join() !== contentType) return invalidRequest(`Content-Type must be exactly ${contentType}.`, 415)
  // RFC 6749 section 2.3: a client must not use more than one authentication method. The specified one is the body.
  if (isRaw(settings) && header("authorization").some(isBasic)) {
    return invalidRequest("The credentials must be in the body only, without an Authorization header.")
  }
  if (received > maxBodyBytes) return invalidRequest(`The body is larger than ${maxBodyBytes} bytes.`, 413)
  return Effect.void
}

const fields = ["grant_type", "client_id", "client_secret"]
const grant = "client_credentials"
const otherGrant = refused(400, "unsupported_grant_type", `The only grant_type is ${grant}.`)

const formOf = ({ clientId, clientSecret }: Client) =>
  `grant_type=${grant}&client_id=${clientId}&client_secret=${Redacted.value(clientSecret)}`

const position = (pair: string) => fields.findIndex((name) => pair.startsWith(`${name}=`))

/** Puts the fields in the order of the specification. Unknown fields come first. */
const inOrder = (form: string) => form.split("&").sort((one, other) => position(one) - position(other)).join("&")

/** Returns the error for a form that matches no client. */
const refuseForm = (text: string, clients: ReadonlyArray<Client>) => {
  const decoded = [unescape(text), unescape(text.replaceAll("+", " "))]
  if (clients.some((client) => decoded.includes(formOf(client)))) {
    return refused(401, "invalid_client", "The values are encoded; the specification sends them raw, without encoding.")
  }
  const required = `${fields.join(", ")}, in this order, each once, and nothing else`
  if (text === "") return invalidRequest(`The body is empty; it must hold ${required}.`)
  const pairs = text.split("&")
  const grantType = /(?:^|&)grant_type=([^&]*)/.exec(text)?.[1]
  if (grantType && grantType !== grant) return otherGrant
  const names = pairs.map((pair) => pair.replace(/=.*/s, ""))
  if (names.join() !== fields.join()) return invalidRequest(`The body must hold ${required}.`)
  if (pairs.some((pair) => /^[^=]*=?$/.test(pair))) return invalidRequest(`None of ${fields.join(", ")} may be empty.`)
  return refused(401, "invalid_client", "The client_id is unknown or the client_secret is wrong.")
}
