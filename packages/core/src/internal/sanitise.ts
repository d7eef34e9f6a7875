import * as Encoding from "effect/Encoding"
import * as Option from "effect/Option"
import * as Redacted from "effect/Redacted"

const maxDescription = 256

/** Control characters, and the invisible ones that turn the direction of text or break its lines. */
const unprintable = /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Cs}]/gu

/**
 * What a server said, fit for an error message: one line of printable text of at most 256 characters (CWE-117), and
 * nothing at all when its beginning repeats one of the secrets.
 */
export const description = (said: string, secrets: ReadonlyArray<Redacted.Redacted>): Option.Option<string> => {
  const beginning = said.slice(0, 4 * maxDescription)
  const whole = beginning.replace(/\s/g, " ").replace(unprintable, "").replace(/ +/g, " ").trim()
  const line = whole.length > maxDescription ? cut(whole) : whole
  return line === "" || repeats(beginning, secrets) ? Option.none() : Option.some(line)
}

/** Not through the middle of a character. */
const cut = (line: string): string => `${line.slice(0, maxDescription - 1).replace(/\p{Cs}$/u, "")}…`

/** An error code as a server sent it, when it is one: a short word, and none of the secrets. */
export const code = (said: string, secrets: ReadonlyArray<Redacted.Redacted>): Option.Option<string> =>
  /^[A-Za-z0-9_.:-]{1,100}$/.test(said) && !repeats(said, secrets) ? Option.some(said) : Option.none()

/** So many bytes of a secret are too many; of a shorter one, the whole. */
const piece = 12

/**
 * Whether a text holds a secret or a piece of one: as it is, as a server that decodes forms reads it, or in one of the
 * encodings in which servers echo what they were sent. Blanks and what is invisible do not count: an echo may be broken
 * over lines. Base64 is looked for at each of its three alignments, since an echo may stand in the midst of something.
 */
const repeats = (text: string, secrets: ReadonlyArray<Redacted.Redacted>): boolean => {
  const said = compact(text)
  const once = decoded(said)
  const texts = [said, entitiesDecoded(said), percentDecoded(said), percentDecoded(said.replaceAll("+", "")), once]
    .concat(decoded(once), unescaped(said)).map(compact)
  const base64 = [said, once].map((text) => text.replaceAll("-", "+").replaceAll("_", "/"))
  const hex = [said, said.replace(/0x|[,:]/g, "")]
  const numbers = [said, said.replace(/"?\d+"?:(?=\d)/g, "")] // without the indexes of a list that was printed as an object
  return secrets.map(Redacted.value).filter((secret) => compact(secret) !== "").some((secret) => {
    const bytes = new TextEncoder().encode(secret)
    const size = Math.min(bytes.length, piece)
    return [secret, secret.replaceAll("+", "")].some((form) =>
      [form, decoded(form)].some((form) => shares(compact(form), texts, size))
    ) ||
      [0, 1, 2].some((shift) => {
        const form = Encoding.encodeBase64(Uint8Array.of(...new Uint8Array(shift), ...bytes))
        return shares(form.replace(/=+$/, "").toLowerCase(), base64, Math.ceil(size * 7 / 6))
      }) ||
      shares(Encoding.encodeHex(bytes), hex, 2 * size) ||
      shares(bytes.join(","), numbers, 3 * size - 1)
  })
}

/** Whether a form of a secret and one of the texts have so many characters in common; of a shorter form, all. */
const shares = (form: string, texts: ReadonlyArray<string>, length: number): boolean => {
  const pieces = new Set(windows(form, Math.min(length, form.length)))
  return texts.some((text) => windows(text, Math.min(length, form.length)).some((at) => pieces.has(at)))
}

const windows = (text: string, length: number): ReadonlyArray<string> =>
  Array.from({ length: Math.max(text.length - length + 1, 0) }, (_, start) => text.slice(start, start + length))

const compact = (text: string): string => text.replace(/\s/g, "").replace(unprintable, "").toLowerCase()

const percentDecoded = (text: string): string =>
  text.replace(/%([\da-f]{2})/gi, (_, hex: string) => character(parseInt(hex, 16)))

/** The characters that HTML needs to write otherwise, or that libraries write so to be sure; also when escaped twice. */
const entitiesDecoded = (text: string): string =>
  text.replace(/&amp;/gi, "&").replace(
    /&(?:#(\d+)|#x([\da-f]+)|([a-z]+));/gi,
    (entity, code: string | undefined, hex: string | undefined, name: string) =>
      code !== undefined
        ? character(Number(code))
        : hex !== undefined
        ? character(parseInt(hex, 16))
        : named[name] ?? entity
  )

const named: Readonly<Record<string, string>> = {
  ...{ lt: "<", gt: ">", quot: "\"", apos: "'" },
  ...{ plus: "+", sol: "/", equals: "=", percnt: "%", lowbar: "_" }
}

/** As a string of JSON holds quotes, slashes and backslashes. */
const unescaped = (text: string): string => text.replace(/\\(["\\/])/g, "$1")

/** `%41`, the escapes of JSON and JavaScript for the same, and `&#65;`. */
const decoded = (text: string): string =>
  percentDecoded(entitiesDecoded(text.replace(/\\u00|\\x/gi, "%").replace(/\\u\{([\da-f]{2})\}/gi, "%$1")))

const character = (code: number): string => String.fromCharCode(code)
