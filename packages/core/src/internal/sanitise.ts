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
  const whole = said.replace(/\s/g, " ").replace(unprintable, "").replace(/ +/g, " ").trim()
  const line = whole.length > maxDescription ? cut(whole) : whole
  return line === "" || repeatsPiece(line, secrets) ? Option.none() : Option.some(line)
}

/** Not through the middle of a character. */
const cut = (line: string): string => `${line.slice(0, maxDescription - 1).replace(/\p{Cs}$/u, "")}…`

/** An error code as a server sent it, when it is one: a short word, and none of the secrets. */
export const code = (said: string, secrets: ReadonlyArray<Redacted.Redacted>): Option.Option<string> =>
  /^[A-Za-z0-9_.:-]{1,100}$/.test(said) && !repeats(said, secrets) && !repeatsPiece(said, secrets)
    ? Option.some(said)
    : Option.none()

/**
 * Whether a text holds a secret, as it is, as a server that decodes forms reads it, or in one of the encodings in which
 * servers echo what they were sent. Blanks and what is invisible do not count: an echo may be broken over lines.
 */
const repeats = (text: string, secrets: ReadonlyArray<Redacted.Redacted>): boolean => {
  const said = compact(text)
  const haystacks = [said, entitiesDecoded(said), percentDecoded(said), percentDecoded(said.replaceAll("+", ""))].map(
    compact
  )
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

/** The few characters that HTML needs to write otherwise. */
const entitiesDecoded = (text: string): string =>
  text.replace(
    /&(?:#(\d+)|(lt|gt|quot|apos));/g,
    (_, code: string | undefined, name: string) =>
      code === undefined ? { lt: "<", gt: ">", quot: "\"", apos: "'" }[name] ?? "" : String.fromCharCode(Number(code))
  )

const encodings = (secret: string): ReadonlyArray<string> => [
  secret,
  percentDecoded(secret),
  secret.replaceAll("+", ""),
  percentDecoded(secret.replaceAll("+", "")),
  Encoding.encodeBase64(secret).replace(/=+$/, ""),
  Encoding.encodeBase64Url(secret),
  Encoding.encodeHex(secret)
]

/** So many bytes of a secret are too many: of a shorter one only the whole is looked for. */
const piece = 12

/**
 * Whether a short text holds a piece of a secret: an echo that was cut off, or one in the midst of something else, which
 * changes its base64, or written byte by byte.
 */
const repeatsPiece = (text: string, secrets: ReadonlyArray<Redacted.Redacted>): boolean => {
  const said = compact(text)
  const once = bytesDecoded(said)
  const twice = bytesDecoded(once)
  const numbers = said.replace(/"?\d+"?:(?=\d)/g, "").match(/\d+(,\d+)+/g) ?? []
  const pieces = (texts: ReadonlyArray<string>, length: number) =>
    texts.flatMap((text) => windows([...text], length, ""))
  const texts = pieces([said, once, twice, bytesDecoded(said.replaceAll("+", ""))].map(compact), piece)
  const base64 = pieces([said, once].map((text) => text.replaceAll("-", "+").replaceAll("_", "/")), 16)
  const hex = pieces([said.replace(/0x|[,:]/g, "")], 2 * piece)
  const lists = numbers.flatMap((list) => windows(list.split(","), piece, ",")).map((list) => `,${list},`)
  return secrets.map(Redacted.value).filter((secret) => secret.length >= piece).some((secret) => {
    const bytes = new TextEncoder().encode(secret)
    const holds = (form: string, pieces: ReadonlyArray<string>) => pieces.some((piece) => form.includes(piece))
    return holds(compact(secret), texts) ||
      holds(compact(secret.replaceAll("+", "")), texts) ||
      [0, 1, 2].some((shift) =>
        holds(Encoding.encodeBase64(Uint8Array.of(...new Uint8Array(shift), ...bytes)).toLowerCase(), base64)
      ) ||
      holds(Encoding.encodeHex(bytes), hex) ||
      holds(`,${bytes.join(",")},`, lists)
  })
}

/** `%41`, and the escapes of JSON and JavaScript for the same. */
const bytesDecoded = (text: string): string =>
  text.replace(/(?:%|\\u00|\\x)([\da-f]{2})/gi, (_, hex: string) => String.fromCharCode(parseInt(hex, 16)))

const windows = (units: ReadonlyArray<string>, length: number, separator: string): ReadonlyArray<string> =>
  Array.from(
    { length: Math.max(units.length - length + 1, 0) },
    (_, start) => units.slice(start, start + length).join(separator)
  )
