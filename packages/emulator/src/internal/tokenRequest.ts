/** Whether the body of a token request is what the specification asks for, byte for byte. */
import { Buffer } from "node:buffer"
import { unescape } from "node:querystring"
import * as Either from "effect/Either"
import * as Redacted from "effect/Redacted"
import type { Client } from "../Client.js"

/** An error answer of RFC 6749 section 5.2. */
export interface Refusal {
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
export const identify = (body: Buffer, clients: ReadonlyArray<Client>): Either.Either<Client, Refusal> => {
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
