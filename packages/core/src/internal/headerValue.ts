import * as Effect from "effect/Effect"
import * as Redacted from "effect/Redacted"
import type { AccessToken } from "../AccessToken.js"
import { TokenResponseError } from "../AccessTokenError.js"

/**
 * Makes the value of the header, once for each token. A token from a source of the user's may hold anything: what could
 * break a header is refused here.
 */
export const make = (
  format: (accessToken: string) => string = (accessToken) => `Bearer ${accessToken}`
): (token: AccessToken) => Effect.Effect<string, TokenResponseError> => {
  const values = new WeakMap<AccessToken, Effect.Effect<string, TokenResponseError>>()
  return (token) => {
    const known = values.get(token)
    if (known !== undefined) return known
    const text = format(Redacted.value(token.value))
    const value = /^[\x21-\x7e]([\x20-\x7e]*[\x21-\x7e])?$/.test(text) ? Effect.succeed(text) : Effect.fail(unsendable)
    values.set(token, value)
    return value
  }
}

const unsendable = new TokenResponseError({
  problems: [{ path: "access_token", expected: "printable ASCII, to be sent in a header" }]
})
