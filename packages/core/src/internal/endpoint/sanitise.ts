/** Keeps credentials, tokens and control characters out of what a server says. */
import * as Encoding from "effect/Encoding"
import { deepestEscape, longestDescription, shortestSecret } from "./limits.js"

export interface Known {
  /** Searched for if it has at least 8 characters. */
  readonly clientId: string
  /** The client secret, the token to be replaced, and what else the request carried. */
  readonly secrets: ReadonlyArray<string>
}

/**
 * Returns the description of an error as one line of at most 256 characters, or undefined if it contains a secret.
 * Other characters could start a line of a log (CWE-117), control a terminal, or hide text.
 */
export const description = (
  text: string,
  { clientId, secrets }: Known
): string | undefined => {
  const line = withoutId(text, clientId).slice(0, longestDescription).replace(
    /[\p{C}\p{Zl}\p{Zp}]/gu,
    " "
  )
  return line.trim() === "" || containsAny(text, secrets) ? undefined : line
}

/** Returns an error code if it is registered, or a short word without a credential or token. */
export const code = (text: string, { clientId, secrets }: Known): string | undefined => {
  const isHarmless = /^[\w.:-]{1,100}$/.test(text) && withoutId(text, clientId) === text &&
    !containsAny(text, secrets)
  return isHarmless || registeredCodes.has(text) ? text : undefined
}

/** The codes of RFC 6749, and the registered extensions for a token endpoint without users. */
export const registeredCodes: ReadonlySet<string> = new Set([
  "invalid_request",
  "invalid_client",
  "invalid_grant",
  "unauthorized_client",
  "unsupported_grant_type",
  "invalid_scope",
  "server_error",
  "temporarily_unavailable",
  "invalid_target",
  "invalid_dpop_proof",
  "use_dpop_nonce"
])

const withoutId = (text: string, clientId: string): string =>
  clientId.length < shortestSecret ? text : text.replaceAll(clientId, "<client id>")

/** Searches for each secret as it is, without its escapes, and in base64. The text may be escaped too. */
const containsAny = (text: string, secrets: ReadonlyArray<string>): boolean => {
  const texts = formsOf(text)
  return secrets.some((secret) =>
    [...formsOf(secret), ...base64(secret).map(plain)]
      .some((form) => form !== "" && texts.some((text) => text.includes(form)))
  )
}

/** Only a text without letters and digits may need the forms that are not plain. */
const formsOf = (text: string): ReadonlyArray<string> =>
  [text, withoutEscapes(text)].flatMap((form) => [form, plain(form)])

/** Removes what the forms of base64, a line break, a form or an escape for HTML or JSON may change. */
const plain = (text: string): string => text.replace(/[-+_/\\&<>"'`=\s\p{C}]/gu, "")

/** Decodes escapes. Those of characters that `plain` removes become spaces, which it removes too. */
const withoutEscapes = (text: string, depth = deepestEscape): string => {
  const decoded = formDecode(text)
    .replace(/\\u([\da-f]{4})/gi, (_, code: string) => String.fromCharCode(parseInt(code, 16)))
    .replace(/&(amp|#0*38|#x0*26);/gi, "&")
    .replace(/\\[bfnrt]|&(#\w+|lt|gt|quot|apos);/gi, " ")
  return depth === 1 ? decoded : withoutEscapes(decoded, depth - 1)
}

/** Keeps a `%` that encodes nothing. A `+` becomes a space. */
export const formDecode = (text: string): string =>
  new URLSearchParams(`=${text.replaceAll("&", "%26")}`).get("") ?? ""

/** Whole groups of three bytes, whose base64 does not depend on the bytes around them. */
const base64 = (secret: string): ReadonlyArray<string> => {
  const bytes = new TextEncoder().encode(secret)
  return [0, 1, 2].map((start) =>
    Encoding.encodeBase64(bytes.subarray(start, bytes.length - (bytes.length - start) % 3))
  )
}
