/**
 * An API that requires a token and describes the request in its response. Its errors are those of RFC 6750 section 3.
 */
import { Buffer } from "node:buffer"
import * as HttpServerResponse from "@effect/platform/HttpServerResponse"
import * as Effect from "effect/Effect"
import { write } from "./performFault.js"
import type { Body, Request } from "./request.js"
import type { Settings } from "./settings.js"
import type { Tokens } from "./tokens.js"

export const maxBodyBytes = 1024 * 1024

export const respond = (request: Request, body: Body, settings: Settings, tokens: Tokens) =>
  Effect.gen(function*() {
    const { name, prefix } = settings.header
    const [value = "", ...repeated] = request.header(name)
    if (repeated.length > 0) return refused(400, "invalid_request", "The token was sent more than once")
    const token = value.slice(prefix.length)
    // RFC 9110 section 11.1: the scheme is case-insensitive.
    if (token === "" || value.slice(0, prefix.length).toLowerCase() !== prefix.toLowerCase()) {
      return isTokenRequest(request, body, settings) ? notTokenPath(settings) : tokenMissing(settings)
    }
    const { clientId } = yield* tokens.find(token)
    if (body.received > maxBodyBytes) return tooLarge
    return canned(request, settings) ?? describeRequest(request, body, token, clientId)
  }).pipe(Effect.catchAll((reason) => Effect.succeed(refused(401, "invalid_token", `The access token ${reason}`))))

const realm = `Bearer realm="store-api"`

const json = (status: number, body: unknown, challenge?: string) =>
  HttpServerResponse.unsafeJson(body, {
    status,
    headers: { "cache-control": "no-store", ...(challenge === undefined ? {} : { "www-authenticate": challenge }) }
  })

const refused = (status: number, error: string, description: string) =>
  json(
    status,
    { error, error_description: description },
    `${realm}, error="${error}", error_description="${description}"`
  )

/** RFC 6750 section 3.1: a request without authentication information gets no error code. */
const tokenMissing = (settings: Settings) => {
  const { header: { name, prefix }, tokenPath } = settings
  const message = `Send ${name}: ${prefix}<access token>. Request a token with POST ${tokenPath}.`
  return json(401, { message }, realm)
}

/** Whether a request without a token is a token request to a wrong path. */
const isTokenRequest = ({ header, method, path }: Request, body: Body, { basePath }: Settings) => {
  const isForm = header("content-type").some((type) => /^application\/x-www-form-urlencoded\b/i.test(type))
  const isGrant = isForm && /(^|&)grant_type=/.test(body.bytes.toString())
  return method === "POST" && (isGrant || path.startsWith(`${basePath}/v1/oauth`))
}

const notTokenPath = ({ tokenPath }: Settings) =>
  json(404, { message: `The path of the token endpoint is exactly ${tokenPath}.` })

const tooLarge = json(413, { message: `The body is larger than ${maxBodyBytes} bytes.` })

/** The response that the options name for this request. */
const canned = ({ method, outgoing, path }: Request, { basePath, responses }: Settings) => {
  const found = responses.find((response) =>
    `${basePath}${response.path}` === path && (response.method ?? method).toUpperCase() === method
  )
  if (found === undefined) return undefined
  const { body = "", headers = {}, status = 200 } = found
  return write(outgoing, status, headers, Buffer.from(typeof body === "string" ? body : JSON.stringify(body)))
}

/** Describes the request without the token. */
const describeRequest = ({ method, path, query = "" }: Request, body: Body, token: string, clientId: string) => {
  const withoutToken = (text: string) =>
    text.replaceAll(token, "<redacted>").replaceAll(encodeURIComponent(token), "<redacted>")
  return json(200, {
    method,
    path: withoutToken(path),
    query: withoutToken(query),
    clientId,
    ...(body.received > 0 ? { body: withoutToken(body.bytes.toString()) } : {})
  })
}
