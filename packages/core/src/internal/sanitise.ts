import * as Encoding from "effect/Encoding"
import * as Option from "effect/Option"
import * as Redacted from "effect/Redacted"

const maxDescription = 256

/** Control characters, and the invisible ones that turn the direction of text or break its lines. */
const unprintable = /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Cs}]/gu

/**
 * What a server said, fit for an error message: one line of printable text of at most 256 characters (CWE-117), and
 * nothing at all when it repeats one of the secrets.
 */
export const description = (said: string, secrets: ReadonlyArray<Redacted.Redacted>): Option.Option<string> => {
  const stripped = said.replace(/\s/g, " ").replace(unprintable, "")
  if (repeats(said, secrets) || repeats(stripped, secrets)) return Option.none()
  const line = stripped.replace(/ +/g, " ").trim()
  return line === "" ? Option.none() : Option.some(
    line.length > maxDescription ? `${line.slice(0, maxDescription - 1)}…` : line
  )
}

/** An error code as a server sent it, when it is one: a short word, and none of the secrets. */
export const code = (said: string, secrets: ReadonlyArray<Redacted.Redacted>): Option.Option<string> =>
  /^[A-Za-z0-9_.:-]{1,100}$/.test(said) && !repeats(said, secrets) ? Option.some(said) : Option.none()

/** Whether a text holds a secret, as it is or in one of the encodings in which servers echo what they were sent. */
const repeats = (text: string, secrets: ReadonlyArray<Redacted.Redacted>): boolean => {
  const haystack = text.toLowerCase()
  return secrets.some((secret) =>
    encodings(Redacted.value(secret)).some((needle) => needle !== "" && haystack.includes(needle.toLowerCase()))
  )
}

const encodings = (secret: string): ReadonlyArray<string> => {
  const percent = encodeURIComponent(secret)
  return [
    secret,
    percent,
    percent.replaceAll("%20", "+"),
    Encoding.encodeBase64(secret).replace(/=+$/, ""),
    Encoding.encodeBase64Url(secret),
    Encoding.encodeHex(secret)
  ]
}
