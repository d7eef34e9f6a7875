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
  if (repeats(said, secrets)) return Option.none()
  const line = said.replace(/\s/g, " ").replace(unprintable, "").replace(/ +/g, " ").trim()
  return line === "" ? Option.none() : Option.some(line.length > maxDescription ? cut(line) : line)
}

/** Not through the middle of a character. */
const cut = (line: string): string => `${line.slice(0, maxDescription - 1).replace(/\p{Cs}$/u, "")}…`

/** An error code as a server sent it, when it is one: a short word, and none of the secrets. */
export const code = (said: string, secrets: ReadonlyArray<Redacted.Redacted>): Option.Option<string> =>
  /^[A-Za-z0-9_.:-]{1,100}$/.test(said) && !repeats(said, secrets) ? Option.some(said) : Option.none()

/**
 * Whether a text holds a secret, as it is or in one of the encodings in which servers echo what they were sent. Blanks
 * and what is invisible do not count: an echo may be broken over lines.
 */
const repeats = (text: string, secrets: ReadonlyArray<Redacted.Redacted>): boolean => {
  const said = compact(text)
  const haystacks = [said, percentDecoded(said), percentDecoded(said.replaceAll("+", ""))].map(compact)
  return secrets.some((secret) =>
    encodings(Redacted.value(secret)).map(compact).some((needle) =>
      needle !== "" && haystacks.some((haystack) => haystack.includes(needle))
    )
  )
}

const compact = (text: string): string => text.replace(/\s/g, "").replace(unprintable, "").toLowerCase()

/** What is encoded byte by byte; servers differ in which characters they encode. */
const percentDecoded = (text: string): string =>
  text.replace(/%([\da-f]{2})/gi, (_, hex: string) => String.fromCharCode(parseInt(hex, 16)))

const encodings = (secret: string): ReadonlyArray<string> => [
  secret,
  Encoding.encodeBase64(secret).replace(/=+$/, ""),
  Encoding.encodeBase64Url(secret),
  Encoding.encodeHex(secret)
]
