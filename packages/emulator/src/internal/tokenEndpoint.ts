/** The token endpoint as in the specification or in RFC 6749, with errors as in section 5.2 of the latter. */
import { Buffer } from "node:buffer"
import { unescape } from "node:querystring"
import * as DateTime from "effect/DateTime"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Redacted from "effect/Redacted"
import type { Client } from "../Client.js"
import type { ClientAuthentication } from "../EmulatorOptions.js"
import { type Body, type Exchange, jsonResponse, refuse, type Request } from "./request.js"
import type { Settings } from "./settings.js"
import type { Signatures } from "./signatures.js"

export const maxBodyBytes = 64 * 1024

const contentType = "application/x-www-form-urlencoded"
const fields = ["grant_type", "client_id", "client_secret"]
const grant = "client_credentials"

export const respond = (
  { body, request, settings, tokens, update }: Exchange,
  signatures: Signatures
) =>
  Effect.gen(function*() {
    yield* refuseRequest(request, body, settings)
    const { client, scope } = yield* readForm(request, body.text, settings, signatures)
    const thumbprint = settings.dpop === undefined
      ? undefined
      : yield* Effect.catchAll(
        signatures.checkProof(request),
        ({ error, reason }) => refuse(400, reason, error)
      )
    const { remaining, token } = yield* tokens.issue(client, scope, thumbprint)
    update({ token: Option.some(token) })
    return jsonResponse({
      access_token: Redacted.value(token.value),
      token_type: settings.dpop === undefined ? "bearer" : "DPoP",
      expires_in: Math.floor(Duration.toSeconds(remaining)),
      scope: token.scope,
      application_name: client.applicationName ?? client.clientId,
      "developer.email": client.developerEmail ?? "developer@example.invalid",
      issued_at: String(DateTime.toEpochMillis(token.issuedAt)),
      client_id: client.clientId
    })
  })

const invalidRequest = (
  reason: string,
  status = 400,
  headers?: Readonly<Record<string, string>>
) => refuse(status, reason, "invalid_request", headers)

const refuseRequest = (
  { header, method, query }: Request,
  { receivedBytes: received }: Body,
  { lenient }: Settings
) => {
  if (method !== "POST") {
    return invalidRequest("The method must be POST.", 405, { allow: "POST" })
  }
  if (query !== undefined) {
    return invalidRequest("The request must have no query parameters and no question mark.")
  }
  const types = header("content-type").map((type) =>
    lenient ? type.replace(/;.*/, "").trim().toLowerCase() : type
  )
  if (types.join() !== contentType) {
    return invalidRequest(`Content-Type must be exactly ${contentType}.`, 415)
  }
  if (received > maxBodyBytes) {
    return invalidRequest(`The body is larger than ${maxBodyBytes} bytes.`, 413)
  }
  return Effect.void
}

/** Returns where a token request has credentials, accepted or not. */
export const methodsIn = (
  { header }: Request,
  form: URLSearchParams,
  settings: Settings
): ReadonlyArray<ClientAuthentication> => [
  ...header("authorization").filter((value) => /^basic\b/i.test(value)).map(() =>
    "client_secret_basic" as const
  ),
  ...methodsInBody(form, settings)
]

const methodsInBody = (
  form: URLSearchParams,
  { isRaw, methods }: Settings
): ReadonlyArray<ClientAuthentication> => {
  const hasSecret = form.has("client_secret")
  if (isRaw) return hasSecret || form.has("client_id") ? ["specification"] : []
  if (form.has("client_assertion")) {
    return hasSecret ? ["private_key_jwt", "client_secret_post"] : ["private_key_jwt"]
  }
  if (hasSecret) return ["client_secret_post"]
  if (!form.has("client_id")) return []
  return [methods.includes("none") ? "none" : "client_secret_post"]
}

/** Without decoding, because the specification sends `+`, `/`, `=`, `%` and spaces in a secret as they are. */
const parseRawForm = (text: string) =>
  new URLSearchParams(
    text.split("&").map((pair) => [pair.replace(/=.*/s, ""), pair.replace(/^[^=]*=?/, "")])
  )

/** Decoders would keep a `%` without two hexadecimal digits. */
const isBadlyEncoded = (text: string) => /%(?![\da-f]{2})/i.test(text)

/** Returns id and secret. The base64 must be that of RFC 4648, with padding. */
const readBasic = ([authorization = ""]: ReadonlyArray<string>) => {
  const encoded = authorization.replace(/^\w+ +/, "")
  const bytes = Buffer.from(encoded, "base64")
  const [id = "", ...secret] = bytes.toString("base64") === encoded
    ? bytes.toString().split(":")
    : []
  return [id, secret.join(":")].map((value) =>
    isBadlyEncoded(value) ? undefined : unescape(value.replaceAll("+", " "))
  )
}

/** RFC 6749 section 2.3.1: the form is decoded, and so are id and secret in a header. */
const readForm = (
  request: Request,
  text: string,
  settings: Settings,
  signatures: Signatures
) => {
  const { clients, isRaw, methods } = settings
  // Without the ampersand, `URLSearchParams` would remove a question mark at the start.
  const form = isRaw ? parseRawForm(text) : new URLSearchParams(`&${text}`)
  const [method, ...more] = methodsIn(request, form, settings)
  const [grantType, ...inBody] = fields.map((name) => form.get(name))
  const [id, secret] = method === "client_secret_basic"
    ? readBasic(request.header("authorization"))
    : isRaw || !isBadlyEncoded(text)
    ? inBody
    : []
  const client = clients.find(({ clientId, clientSecret }) =>
    grantType === grant && clientId === id &&
    (method === "none" || Redacted.value(clientSecret) === secret)
  )
  const challenge = [...methods, method].includes("client_secret_basic")
    ? { "www-authenticate": `Basic realm="store-api"` }
    : undefined
  const invalidClient = (reason: string) => refuse(401, reason, "invalid_client", challenge)

  if (more.length > 0 || isRaw && method === "client_secret_basic") {
    return invalidRequest(
      `The credentials must be sent once: in ${isRaw ? "" : "the header or "}the body.`
    )
  }
  if (client === undefined && isRaw && isEncoded(text, clients)) {
    return invalidClient(
      "The values are encoded; the specification sends them raw, without encoding."
    )
  }
  if (grantType && grantType !== grant) {
    return refuse(400, `The only grant_type is ${grant}.`, "unsupported_grant_type")
  }
  const problem = problemOf(form, settings)
  if (problem !== undefined) return invalidRequest(problem)
  if (method === undefined || !methods.includes(method)) {
    return invalidClient(`The client must authenticate with ${methods.join(" or ")}.`)
  }
  if (method === "private_key_jwt") return readAssertion(request, form, settings, signatures)
  const hint = isRaw ? "" : `, or not encoded as ${method} requires`
  return client === undefined
    ? invalidClient(`The client_id is unknown or the client_secret is wrong${hint}.`)
    : Effect.succeed({ client, scope: form.get("scope") ?? "" })
}

const assertionType = "urn:ietf:params:oauth:client-assertion-type:jwt-bearer"

/** RFC 7523 section 3, and RFC 7521 section 4.2 for a `client_id` beside the assertion. */
const readAssertion = (
  request: Request,
  form: URLSearchParams,
  { clients }: Settings,
  signatures: Signatures
) =>
  Effect.gen(function*() {
    const id = form.get("client_id")
    const candidates = clients.filter(({ clientId }) => id === null || id === clientId)
    const signer = form.get("client_assertion_type") === assertionType
      ? signatures.findSigner(request, form.get("client_assertion") ?? "", candidates)
      : Effect.fail(`needs the client_assertion_type ${assertionType}`)
    const client = yield* Effect.catchAll(signer, (problem) =>
      refuse(401, `The client_assertion ${problem}.`, "invalid_client"))
    return { client, scope: form.get("scope") ?? "" }
  })

/** Whether a client encoded, in either way, the form that the specification sends raw. */
const isEncoded = (text: string, clients: ReadonlyArray<Client>) => {
  const decodedTexts = [unescape(text), unescape(text.replaceAll("+", " "))]
  return clients.some(({ clientId, clientSecret }) =>
    decodedTexts.includes(
      `grant_type=${grant}&client_id=${clientId}&client_secret=${Redacted.value(clientSecret)}`
    )
  )
}

/** Returns the problem with the fields of a form, if there is one. The specification allows no others. */
const problemOf = (form: URLSearchParams, { isRaw, lenient }: Settings) => {
  const names = [...form.keys()]
  if (isRaw) {
    const areAll = fields.every((name, index) =>
      form.get(name) && (lenient || names[index] === name)
    )
    return areAll && names.length === fields.length
      ? undefined
      : `The body must hold ${
        fields.join(", ")
      }, in this order, each once and not empty, and nothing else.`
  }
  const singleFields = [...fields, "scope", "client_assertion", "client_assertion_type"]
  if (singleFields.some((name) => form.getAll(name).length > 1)) {
    return `None of ${singleFields.join(", ")} may be repeated.`
  }
  return form.get("grant_type") ? undefined : "The body must hold grant_type."
}
