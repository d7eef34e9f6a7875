/**
 * An API that requires a token and describes the request in its response. Its errors are those of RFC 6750 section 3.
 */
import { Buffer } from "node:buffer"
import * as Effect from "effect/Effect"
import { write } from "./performFault.js"
import { type Body, type Exchange, jsonResponse, refuse, type Request } from "./request.js"
import type { Settings } from "./settings.js"
import { algorithms, type Signatures } from "./signatures.js"

export const maxBodyBytes = 1024 * 1024

export const respond = (
  { body, request, settings, tokens }: Exchange,
  signatures: Signatures
) =>
  Effect.gen(function*() {
    const { basePath, header: { name, prefix }, tokenPath } = settings
    if (request.kind === "other") {
      return yield* refuse(404, `This server has no path outside ${basePath}/.`)
    }
    const refuseToken = refuseTokenOf(settings)
    const [value = "", ...repeated] = request.header(name)
    if (repeated.length > 0) {
      return yield* refuseToken(400, "invalid_request", "The token was sent more than once")
    }
    const token = value.slice(prefix.length)
    // RFC 9110 section 11.1: the scheme is case-insensitive.
    if (token === "" || value.slice(0, prefix.length).toLowerCase() !== prefix.toLowerCase()) {
      if (isTokenRequest(request, body, settings)) {
        return yield* refuse(404, `The path of the token endpoint is exactly ${tokenPath}.`)
      }
      const reason =
        `Send ${name}: ${prefix}<access token>. Request a token with POST ${tokenPath}.`
      // RFC 6750 section 3.1: a request without authentication information gets no error code.
      return yield* refuse(401, reason, undefined, { "www-authenticate": realmOf(settings) })
    }
    const { clientId, thumbprint } = yield* tokens.find(token).pipe(
      Effect.catchAll((reason) =>
        refuseToken(401, "invalid_token", `The access token ${reason}`)
      )
    )
    if (settings.dpop !== undefined) {
      const key = yield* signatures.checkProof(request, token).pipe(
        Effect.catchAll(({ error, reason }) => refuseToken(401, error, reason))
      )
      if (key !== thumbprint) {
        return yield* refuseToken(401, "invalid_token", "The access token is of another key")
      }
    }
    if (body.receivedBytes > maxBodyBytes) {
      return yield* refuse(413, `The body is larger than ${maxBodyBytes} bytes.`)
    }
    return sendConfigured(request, settings) ?? describeRequest(request, body, token, clientId)
  })

const realmOf = ({ dpop }: Settings) =>
  dpop === undefined
    ? `Bearer realm="store-api"`
    : `DPoP realm="store-api", algs="${algorithms.join(" ")}"`

const refuseTokenOf =
  (settings: Settings) => (status: number, error: string, reason: string) =>
    refuse(status, reason, error, {
      "www-authenticate": `${
        realmOf(settings)
      }, error="${error}", error_description="${reason}"`
    })

/** Whether a request without a token is a token request to a wrong path. */
const isTokenRequest = (
  { header, method, path }: Request,
  body: Body,
  { basePath }: Settings
) => {
  const isForm = header("content-type").some((type) =>
    /^application\/x-www-form-urlencoded\b/i.test(type)
  )
  const isGrant = isForm && /(^|&)grant_type=/.test(body.text)
  return method === "POST" && (isGrant || path.startsWith(`${basePath}/v1/oauth`))
}

/** The response that the options name for this request. */
const sendConfigured = (
  { method, outgoing, path }: Request,
  { basePath, responses }: Settings
) => {
  const response = responses.find((response) =>
    `${basePath}${response.path}` === path &&
    (response.method ?? method).toUpperCase() === method
  )
  if (response === undefined) return undefined
  const { body = "", headers = {}, status = 200 } = response
  return write(
    outgoing,
    status,
    headers,
    Buffer.from(typeof body === "string" ? body : JSON.stringify(body))
  )
}

/** Describes the request without the token. */
const describeRequest = (
  { method, path, query = "" }: Request,
  body: Body,
  token: string,
  clientId: string
) => {
  const hide = (text: string) =>
    text.replaceAll(token, "<redacted>").replaceAll(encodeURIComponent(token), "<redacted>")
  return jsonResponse({
    method,
    path: hide(path),
    query: hide(query),
    clientId,
    body: hide(body.text) || undefined
  })
}
