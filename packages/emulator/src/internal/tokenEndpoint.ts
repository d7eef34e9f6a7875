/** `POST {base}/v1/oauth/accesstoken`, as the specification has it; errors as RFC 6749 section 5.2 has them. */
import { Buffer } from "node:buffer"
import { unescape } from "node:querystring"
import * as HttpServerResponse from "@effect/platform/HttpServerResponse"
import * as DateTime from "effect/DateTime"
import * as Effect from "effect/Effect"
import * as Either from "effect/Either"
import * as Redacted from "effect/Redacted"
import type { Client } from "../Client.js"
import type { Body } from "./body.js"
import type { Exchange } from "./exchange.js"
import type { Settings } from "./settings.js"
import type { Tokens } from "./tokens.js"

/** Far beyond any id and secret. */
export const maxBodyBytes = 64 * 1024

const contentType = "application/x-www-form-urlencoded"
const notStored = { "cache-control": "no-store", pragma: "no-cache" }

export const answer = (
  exchange: Exchange,
  body: Body,
  settings: Settings,
  tokens: Tokens
): Effect.Effect<HttpServerResponse.HttpServerResponse> =>
  Either.match(authenticate(exchange, body, settings.clients), {
    onLeft: (refusal) => Effect.succeed(refused(refusal)),
    onRight: (client) => Effect.map(tokens.issue(client), (issued) => granted(client, issued))
  })

const authenticate = (exchange: Exchange, body: Body, clients: ReadonlyArray<Client>) => {
  const invalid = (status: number, description: string, headers?: Refusal["headers"]) =>
    Either.left<Refusal>({ status, error: "invalid_request", description, headers })

  if (exchange.method !== "POST") return invalid(405, "The method must be POST.", { allow: "POST" })
  if (exchange.query !== undefined) {
    return invalid(400, "The request is sent without any query parameters, and without a question mark.")
  }
  const contentTypes = exchange.header("content-type")
  if (contentTypes.length !== 1 || contentTypes[0] !== contentType) {
    return invalid(415, `Content-Type must be exactly ${contentType}.`)
  }
  if (body.tooLarge) return invalid(413, `The body is larger than ${maxBodyBytes} bytes.`)
  return identify(body.bytes, clients)
}

const refused = ({ description, error, headers, status }: Refusal) =>
  HttpServerResponse.unsafeJson(
    { error, error_description: description },
    { status, headers: { ...notStored, ...headers } }
  )

const granted = (client: Client, { remainingMillis, token }: Effect.Effect.Success<ReturnType<Tokens["issue"]>>) =>
  HttpServerResponse.unsafeJson({
    access_token: Redacted.value(token.value),
    token_type: "bearer",
    expires_in: Math.floor(remainingMillis / 1000),
    scope: "",
    application_name: client.applicationName ?? client.clientId,
    "developer.email": client.developerEmail ?? "developer@example.invalid",
    issued_at: String(DateTime.toEpochMillis(token.issuedAt)),
    client_id: client.clientId
  }, { headers: notStored })

/** An error answer of RFC 6749 section 5.2. */
interface Refusal {
  readonly status: number
  readonly error: "invalid_request" | "invalid_client" | "unsupported_grant_type"
  /** A fixed sentence: nothing of the request is ever in it. */
  readonly description: string
  readonly headers?: Readonly<Record<string, string>> | undefined
}

const fields = ["grant_type", "client_id", "client_secret"]

const bodyOf = (client: Client) =>
  `grant_type=client_credentials&client_id=${client.clientId}&client_secret=${Redacted.value(client.clientSecret)}`

const refuse = (status: number, error: Refusal["error"], description: string) =>
  Either.left<Refusal>({ status, error, description })

/** Compares bytes and decodes nothing: a secret may hold `+`, `/`, `=`, `%` and spaces, and they stand for themselves. */
const identify = (body: Buffer, clients: ReadonlyArray<Client>): Either.Either<Client, Refusal> => {
  const client = clients.find((candidate) => body.equals(Buffer.from(bodyOf(candidate))))
  if (client !== undefined) return Either.right(client)

  const text = body.toString("utf8")
  const decoded = [unescape(text), unescape(text.replaceAll("+", " "))]
  if (clients.some((candidate) => decoded.includes(bodyOf(candidate)))) {
    return refuse(401, "invalid_client", "The values are encoded; the specification sends them raw, without encoding.")
  }
  return explain(text)
}

const explain = (text: string) => {
  if (text === "") {
    return refuse(400, "invalid_request", `The body is empty; it holds ${fields.join(", ")}, in this order.`)
  }
  const pairs = text.split("&").map((pair) => {
    const [name = "", ...value] = pair.split("=")
    return { name, value: value.join("=") }
  })
  const grantType = pairs.find(({ name }) => name === "grant_type")?.value ?? ""
  if (grantType !== "" && grantType !== "client_credentials") {
    return refuse(400, "unsupported_grant_type", "The only grant_type is client_credentials.")
  }
  if (pairs.map(({ name }) => name).join() !== fields.join()) {
    return refuse(
      400,
      "invalid_request",
      `The body holds ${fields.join(", ")}, in this order, each once, nothing else.`
    )
  }
  if (pairs.some(({ value }) => value === "")) {
    return refuse(400, "invalid_request", `None of ${fields.join(", ")} may be empty.`)
  }
  return refuse(401, "invalid_client", "The client_id is unknown or the client_secret is wrong.")
}
