/** Requests without the library: controls, and the facts on the page about the server's responses. */
import { Effect, Redacted, Schema } from "effect"
import type { Running } from "./AuthorizationServer.js"
import { tokenPath } from "./loopback.js"

const WireToken = Schema.Struct({
  access_token: Schema.NonEmptyString,
  token_type: Schema.String,
  expires_in: Schema.Number,
  scope: Schema.optional(Schema.String)
})

export interface WireToken {
  readonly value: Redacted.Redacted
  readonly tokenType: string
  readonly expiresIn: number
  readonly scope: string
  /** The names of all fields that the server sent. */
  readonly fields: ReadonlyArray<string>
}

/** Sends the token request of RFC 6749, section 4, with `fetch`. */
export const requestToken = (
  { authUrl, credentials: { clientId, clientSecret } }: Running
): Effect.Effect<WireToken> =>
  Effect.gen(function*() {
    const response = yield* Effect.promise(() =>
      fetch(`${authUrl}${tokenPath}`, {
        method: "POST",
        body: new URLSearchParams({
          grant_type: "client_credentials",
          client_id: clientId,
          client_secret: Redacted.value(clientSecret)
        })
      })
    )
    const body = yield* Effect.promise(() => response.json() as Promise<object>)
    const token = yield* Effect.orDie(Schema.decodeUnknown(WireToken)(body))
    return {
      value: Redacted.make(token.access_token),
      tokenType: token.token_type,
      expiresIn: token.expires_in,
      scope: token.scope ?? "",
      fields: Object.keys(body).sort()
    }
  })

export interface ApiAnswer {
  readonly status: number
  readonly challenge: string
}

/** Calls the resource, with or without a token. */
export const callApi = ({ apiUrl }: Running, token?: Redacted.Redacted): Effect.Effect<ApiAnswer> =>
  Effect.promise(async () => {
    const headers = token === undefined ? {} : { authorization: `Bearer ${Redacted.value(token)}` }
    const response = await fetch(`${apiUrl}/v1/orders`, { headers })
    await response.text()
    return { status: response.status, challenge: response.headers.get("www-authenticate") ?? "" }
  })

export const postForm = (url: string, fields: Readonly<Record<string, string>>): Effect.Effect<Response> =>
  Effect.promise((signal) => fetch(url, { method: "POST", body: new URLSearchParams(fields), signal }))

/** Posts a form and returns the body; the status must be 200. */
export const postFormOk = (url: string, fields: Readonly<Record<string, string>>): Effect.Effect<string> =>
  Effect.gen(function*() {
    const response = yield* postForm(url, fields)
    const body = yield* Effect.promise(() => response.text())
    return response.status === 200 ? body : yield* Effect.dieMessage(`${url} answered ${response.status}: ${body}`)
  })
