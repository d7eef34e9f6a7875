/** Reads a token request: what the endpoint must not repeat, and whether servers read its credentials differently. */
import type * as HttpBody from "@effect/platform/HttpBody"
import * as HttpClientRequest from "@effect/platform/HttpClientRequest"
import * as Either from "effect/Either"
import * as Encoding from "effect/Encoding"
import * as Option from "effect/Option"
import * as Redacted from "effect/Redacted"
import type { ClientCredentials } from "../../ClientCredentials.js"
import { shortestSecret } from "./limits.js"
import { formDecode } from "./sanitise.js"

type Field = readonly [name: string, value: unknown]

/** Headers that describe the message. Our own have texts such as `application/json`. */
const descriptive =
  /^(accept|accept-encoding|content-(type|language|length|encoding)|user-agent)$/

/** Parameters with the client id, or with a constant of a protocol such as `grant_type` or `client_assertion_type`. */
const publicName = /^client_?id$|type$/i

/**
 * The values of headers and parameters with at least 8 characters. Without the client id, and without constants of the
 * protocol, because servers name them in errors: "the grant type client_credentials is not allowed".
 */
export const secretsIn = (
  request: HttpClientRequest.HttpClientRequest,
  clientId: string
): ReadonlyArray<string> => {
  const headers = Object.entries(request.headers)
    .filter(([name]) => !descriptive.test(name))
    .flatMap(([, value]) => partsOf(value))
  const parameters = [...queryOf(request), ...fieldsOf(request.body)]
    .filter(([name]) => !publicName.test(name))
    .map(([, value]) => String(value))
  return [...headers, ...parameters].filter((value) =>
    value.length >= shortestSecret && ![value, formDecode(value)].includes(clientId)
  )
}

/** How the request authenticates the client without a secret, as far as it shows. */
export const authenticationOf = (
  { body, headers }: HttpClientRequest.HttpClientRequest,
  { clientSecret }: ClientCredentials
): "clientAssertion" | "certificate" | undefined => {
  const names = fieldsOf(body).map(([name]) => name)
  if (names.includes("client_assertion")) return "clientAssertion"
  const isIdAlone = names.includes("client_id") && headers["authorization"] === undefined
  return isIdAlone && Redacted.value(clientSecret) === "" ? "certificate" : undefined
}

/** Whether servers differ in how they read the credentials: form-decoding changes what Basic or the body contains. */
export const isChangedByFormDecoding = (
  request: HttpClientRequest.HttpClientRequest,
  { clientId, clientSecret }: ClientCredentials
): boolean => {
  const body = `${textOf(request.body)}&`
  const unencoded = [clientId, Redacted.value(clientSecret)].filter((value) =>
    body.includes(`=${value}&`)
  )
  return /[%+]/.test(basicOf(request.headers["authorization"] ?? "") + unencoded.join())
}

/** A header, its value after the scheme, the parameters of a scheme or a cookie, and both credentials of Basic. */
const partsOf = (header: string): ReadonlyArray<string> => {
  const afterScheme = header.replace(/^[\w-]+ +/, "")
  const [, id = "", password = ""] = /^(.*?):(.*)$/s.exec(basicOf(header)) ?? []
  return [header, afterScheme, ...afterScheme.split(/[\s,;="]+/), id, password]
}

/** The id and the password of Basic, separated by a colon (RFC 7617 §2), or an empty text. */
const basicOf = (header: string): string => {
  const [, encoded = ""] = /^basic +(\S+)$/i.exec(header) ?? []
  return Either.getOrElse(Encoding.decodeBase64String(encoded), () => "")
}

export const queryOf = (request: HttpClientRequest.HttpClientRequest): ReadonlyArray<Field> =>
  Option.toArray(HttpClientRequest.toUrl(request)).flatMap((
    { searchParams }
  ) => [...searchParams])

/** None for a text that is not JSON. The visitor sees each field, with those inside of it first. */
export const parseJson = Option.liftThrowable(
  (text: string, visit?: (name: string, value: unknown) => unknown): unknown =>
    JSON.parse(text, visit)
)

/** The fields of a body: of a form, or of JSON at any depth. */
const fieldsOf = (body: HttpBody.HttpBody): ReadonlyArray<Field> => {
  if (body._tag === "FormData") return [...body.formData]
  const text = textOf(body)
  const fields: Array<Field> = [...new URLSearchParams(text)]
  parseJson(text, (name, value) => void fields.push([name, value]))
  return fields
}

/** Empty for a body that cannot be read twice. */
const textOf = (body: HttpBody.HttpBody): string => {
  if (body._tag === "Uint8Array") return new TextDecoder().decode(body.body)
  return body._tag === "Raw" ? String(body.body) : ""
}
