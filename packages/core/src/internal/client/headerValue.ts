import * as Exit from "effect/Exit"
import * as Option from "effect/Option"
import * as Redacted from "effect/Redacted"
import type { AccessToken } from "../../AccessToken.js"
import { TokenResponseError } from "../../AccessTokenError.js"

/**
 * Returns a function that creates the header value, once for each token. It fails for text that is not valid in a
 * header, because a custom `TokenSource` or `format` may return any text.
 */
export const make = (
  format: (accessToken: string) => string = (accessToken) => `Bearer ${accessToken}`
): (token: AccessToken) => Exit.Exit<string, TokenResponseError> => {
  const values = new WeakMap<AccessToken, Exit.Exit<string, TokenResponseError>>()
  return (token) => {
    const cached = values.get(token)
    if (cached !== undefined) return cached
    const accessToken = Redacted.value(token.value)
    const text = Option.filter(Option.liftThrowable(format)(accessToken), isSendable)
    const value = isSendable(accessToken)
      ? Option.match(text, { onNone: () => unsendable("header.format"), onSome: Exit.succeed })
      : unsendable("access_token")
    values.set(token, value)
    return value
  }
}

/** Whether the text is a valid header value: printable ASCII without a space at either end (RFC 9110 §5.5). */
const isSendable = (text: unknown): boolean =>
  typeof text === "string" && /^[\x21-\x7e]([\x20-\x7e]*[\x21-\x7e])?$/.test(text)

const unsendable = (path: string) =>
  Exit.fail(new TokenResponseError({ problems: [{ path, expected: "printable ASCII, to be sent in a header" }] }))
