/** `POST {base}/v1/oauth/accesstoken` as in the specification, with errors as in RFC 6749 section 5.2. */
import { unescape } from "node:querystring"
import * as HttpServerResponse from "@effect/platform/HttpServerResponse"
import * as DateTime from "effect/DateTime"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Redacted from "effect/Redacted"
import type { Client } from "../Client.js"
import type { IssuedToken } from "../IssuedToken.js"
import type { Body, Request } from "./request.js"
import type { Settings } from "./settings.js"
import type { Tokens } from "./tokens.js"

export const maxBodyBytes = 64 * 1024

const contentType = "application/x-www-form-urlencoded"
const notStored = { "cache-control": "no-store", pragma: "no-cache" }

export const respond = (request: Request, body: Body, settings: Settings, tokens: Tokens) => {
  const refusal = refuseRequest(request, body, settings)
  if (refusal !== undefined) return Effect.succeed(refusal)
  const sent = body.bytes.toString()
  const text = settings.lenient ? inOrder(sent) : sent
  // Compares without decoding: `+`, `/`, `=`, `%` and spaces in a secret are sent raw.
  const client = settings.clients.find((candidate) => formOf(candidate) === text)
  return client === undefined
    ? Effect.succeed(refuseForm(text, settings.clients))
    : Effect.map(tokens.issue(client), ({ remaining, token }) => granted(client, token, remaining))
}

const granted = (client: Client, token: IssuedToken, remaining: Duration.Duration) =>
  HttpServerResponse.unsafeJson({
    access_token: Redacted.value(token.value),
    token_type: "bearer",
    expires_in: Math.floor(Duration.toSeconds(remaining)),
    scope: "",
    application_name: client.applicationName ?? client.clientId,
    "developer.email": client.developerEmail ?? "developer@example.invalid",
    issued_at: String(DateTime.toEpochMillis(token.issuedAt)),
    client_id: client.clientId
  }, { headers: notStored })

/** The description is a fixed sentence, so that it holds no part of the request. */
const refused = (status: number, error: string, description: string, headers?: Readonly<Record<string, string>>) =>
  HttpServerResponse.unsafeJson(
    { error, error_description: description },
    { status, headers: { ...notStored, ...headers } }
  )

const invalidRequest = (description: string, status = 400, headers?: Readonly<Record<string, string>>) =>
  refused(status, "invalid_request", description, headers)

const refuseRequest = ({ header, method, query }: Request, { received }: Body, { lenient }: Settings) => {
  if (method !== "POST") return invalidRequest("The method must be POST.", 405, { allow: "POST" })
  if (query !== undefined) return invalidRequest("The request must have no query parameters and no question mark.")
  const types = header("content-type").map((type) => lenient ? type.replace(/;.*/, "").trim().toLowerCase() : type)
  if (types.join() !== contentType) return invalidRequest(`Content-Type must be exactly ${contentType}.`, 415)
  // RFC 6749 section 2.3: a client must not use more than one authentication method. The specified one is the body.
  if (header("authorization").some((value) => /^basic\b/i.test(value))) {
    return invalidRequest("The credentials must be in the body only, without an Authorization header.")
  }
  if (received > maxBodyBytes) return invalidRequest(`The body is larger than ${maxBodyBytes} bytes.`, 413)
  return undefined
}

const fields = ["grant_type", "client_id", "client_secret"]

const formOf = ({ clientId, clientSecret }: Client) =>
  `grant_type=client_credentials&client_id=${clientId}&client_secret=${Redacted.value(clientSecret)}`

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
  const pairs = text.split("&").map((pair) => {
    const [name = "", ...value] = pair.split("=")
    return { name, value: value.join("=") }
  })
  const grantType = pairs.find(({ name }) => name === "grant_type")?.value
  if (grantType && grantType !== "client_credentials") {
    return refused(400, "unsupported_grant_type", "The only grant_type is client_credentials.")
  }
  if (pairs.map(({ name }) => name).join() !== fields.join()) return invalidRequest(`The body must hold ${required}.`)
  if (pairs.some(({ value }) => value === "")) return invalidRequest(`None of ${fields.join(", ")} may be empty.`)
  return refused(401, "invalid_client", "The client_id is unknown or the client_secret is wrong.")
}
