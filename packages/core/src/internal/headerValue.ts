import * as Either from "effect/Either"
import * as Option from "effect/Option"
import * as Redacted from "effect/Redacted"
import type { AccessToken } from "../AccessToken.js"
import { TokenResponseError } from "../AccessTokenError.js"

/**
 * Makes the value of the header, once for each token. A token from a source of the user's may hold anything: what could
 * break a header is refused here.
 */
export const make = (
  format: (accessToken: string) => string = (accessToken) => `Bearer ${accessToken}`
): (token: AccessToken) => Either.Either<string, TokenResponseError> => {
  const values = new WeakMap<AccessToken, Either.Either<string, TokenResponseError>>()
  return (token) => {
    const known = values.get(token)
    if (known !== undefined) return known
    const accessToken = Redacted.value(token.value)
    const text = Option.filter(Option.liftThrowable(format)(accessToken), isSendable)
    const value = isSendable(accessToken)
      ? Option.match(text, { onNone: () => Either.left(unsendable("header.format")), onSome: Either.right })
      : Either.left(unsendable("access_token"))
    values.set(token, value)
    return value
  }
}

/** Printable ASCII, with no blank at either end: what a header can carry (RFC 9110 §5.5). */
const isSendable = (text: unknown): boolean =>
  typeof text === "string" && /^[\x21-\x7e]([\x20-\x7e]*[\x21-\x7e])?$/.test(text)

const unsendable = (path: string) =>
  new TokenResponseError({ problems: [{ path, expected: "printable ASCII, to be sent in a header" }] })
