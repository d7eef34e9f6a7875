import * as Encoding from "effect/Encoding"
import * as Option from "effect/Option"
import * as Redacted from "effect/Redacted"

/**
 * Keeps the description of an error if it has at most 256 characters of RFC 6749 §5.2, which neither control a terminal
 * nor start another log line (CWE-117), and contains no secret. Drops a description with `&`, which may be the form
 * that was sent, or a secret with HTML escapes.
 */
export const description = (text: string, secrets: ReadonlyArray<Redacted.Redacted>): Option.Option<string> =>
  /^[ !#-%\x27-[\]-~]{1,256}$/.test(text) && !contains(text, secrets) ? Option.some(text) : Option.none()

/** Keeps an error code if it is registered, or a short word that contains no secret. */
export const code = (text: string, secrets: ReadonlyArray<Redacted.Redacted>): Option.Option<string> =>
  registered.has(text) || (/^[A-Za-z0-9_.:-]{1,100}$/.test(text) && !contains(text, secrets))
    ? Option.some(text)
    : Option.none()

/** The codes of RFC 6749, and the registered extensions for a token endpoint without users. */
const registered: ReadonlySet<string> = new Set(
  ("invalid_request invalid_client invalid_grant unauthorized_client unsupported_grant_type invalid_scope " +
    "server_error temporarily_unavailable invalid_target invalid_dpop_proof use_dpop_nonce").split(" ")
)

/** A text contains a secret if it has this many of its characters in a row, or all of a shorter secret. */
const piece = 12

/**
 * Whether a text contains a secret or a part of it: as sent, form-decoded, percent-encoded, in base64, in hex, or as a
 * list of bytes. Searches again in letters and digits only, in lower case, so that separators do not hide a secret.
 */
const contains = (text: string, secrets: ReadonlyArray<Redacted.Redacted>): boolean => {
  // The last one removes the `0x` and the indexes that programs print with bytes.
  const texts = [text, decoded(text), decoded(decoded(text)), text.replace(/0x|\d+:/gi, "")]
  return secrets.map(Redacted.value).some((secret) => {
    const bytes = new TextEncoder().encode(secret)
    // Whole groups of three bytes, whose base64 does not depend on the bytes around them.
    const base64 = [bytes, new TextEncoder().encode(encodeURIComponent(new TextDecoder().decode(bytes)))].flatMap((
      bytes
    ) =>
      [0, 1, 2].map((start) => Encoding.encodeBase64(bytes.subarray(start, bytes.length - (bytes.length - start) % 3)))
    )
    return [secret, decoded(secret), ...base64, Encoding.encodeHex(bytes), bytes.join()].some((form) =>
      texts.some((text) => share(text, form) || share(compact(text), compact(form)))
    )
  })
}

const share = (text: string, form: string): boolean => {
  const length = Math.min(piece, form.length)
  return length > 0 &&
    Array.from(text, (_, start) => text.slice(start, start + length)).some((part) =>
      part.length === length && form.includes(part)
    )
}

const compact = (text: string): string => text.toLowerCase().replace(/[^a-z0-9]/g, "")

const decoded = (text: string): string =>
  text.replace(/%([\da-f]{2})/gi, (_, hex: string) => String.fromCharCode(parseInt(hex, 16)))
