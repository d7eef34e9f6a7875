import * as Exit from "effect/Exit"
import * as Option from "effect/Option"
import * as Redacted from "effect/Redacted"
import type { AccessToken } from "../../AccessToken.js"
import { TokenResponseError } from "../../AccessTokenError.js"

export type HeaderValue = (token: AccessToken) => Exit.Exit<string, TokenResponseError>

/**
 * Returns a function that creates the header value, once for each token. It fails for text that is not valid in a
 * header, because a custom `TokenSource` or `format` may return any text.
 */
export const make = (
  format: (accessToken: string) => string = (accessToken) => `Bearer ${accessToken}`
): HeaderValue => {
  const values = new WeakMap<AccessToken, Exit.Exit<string, TokenResponseError>>()
  const formatted = Option.liftThrowable(format)
  const create = (accessToken: string) => {
    if (!isSendable(accessToken)) return unsendable("access_token")
    const text = Option.getOrUndefined(formatted(accessToken))
    return isSendable(text) ? Exit.succeed(text) : unsendable("header.format")
  }
  return (token) => {
    const value = values.get(token) ?? create(Redacted.value(token.value))
    values.set(token, value)
    return value
  }
}

/** Whether the text is a valid header value: printable ASCII without a space at either end (RFC 9110 §5.5). */
const isSendable = (text: unknown): text is string =>
  typeof text === "string" && /^[\x21-\x7e]([\x20-\x7e]*[\x21-\x7e])?$/.test(text)

const unsendable = (path: string) =>
  Exit.fail(new TokenResponseError({ problems: [{ path, expected: "printable ASCII, to be sent in a header" }] }))
