import * as Encoding from "effect/Encoding"
import * as Option from "effect/Option"
import * as Redacted from "effect/Redacted"

/**
 * Keeps the description of an error if it is a line of at most 256 characters of RFC 6749 §5.2, none of which controls a
 * terminal or starts another line of a log (CWE-117), and repeats none of the secrets. A description with `&` is dropped:
 * it may be the form that was sent, or a secret with its signs escaped as in HTML.
 */
export const description = (text: string, secrets: ReadonlyArray<Redacted.Redacted>): Option.Option<string> =>
  /^[ !#-%\x27-[\]-~]{1,256}$/.test(text) && !repeats(text, secrets) ? Option.some(text) : Option.none()

/** Keeps an error code if it is registered, which makes it public, or is a short word that repeats none of the secrets. */
export const code = (text: string, secrets: ReadonlyArray<Redacted.Redacted>): Option.Option<string> =>
  registered.has(text) || (/^[A-Za-z0-9_.:-]{1,100}$/.test(text) && !repeats(text, secrets))
    ? Option.some(text)
    : Option.none()

/** The codes of RFC 6749, and those that its registry of extensions adds for a token endpoint without a user. */
const registered: ReadonlySet<string> = new Set(
  ("invalid_request invalid_client invalid_grant unauthorized_client unsupported_grant_type invalid_scope " +
    "server_error temporarily_unavailable invalid_target invalid_dpop_proof use_dpop_nonce").split(" ")
)

/** As many characters in common with a secret are too many; of a shorter secret, all. */
const piece = 12

/**
 * Whether a text holds a secret, or a piece of one, as it was sent, form-decoded, percent-encoded, in base64, in hex or as
 * a list of bytes. Looks a second time at letters and digits only, in any case, so that what stands between does not hide it.
 */
const repeats = (text: string, secrets: ReadonlyArray<Redacted.Redacted>): boolean => {
  // The last one is without what a program prints around bytes: `0x`, and the indexes of an object.
  const texts = [text, decoded(text), decoded(decoded(text)), text.replace(/0x|\d+:/gi, "")]
  return secrets.map(Redacted.value).some((secret) => {
    const bytes = new TextEncoder().encode(secret)
    // Whole groups of three bytes, which look the same wherever they stand in a longer text.
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
