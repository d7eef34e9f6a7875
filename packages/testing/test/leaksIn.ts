/**
 * Canaries: unique values that must not appear in any output, and the search for them in any encoding. The search
 * removes escapes, percent encoding and line breaks from the text. For base64, hex and lists of bytes, it searches for
 * the encoded canary. A piece of 12 characters is a finding.
 */
import { randomBytes } from "node:crypto"
import { inspect, stripVTControlCharacters } from "node:util"
import type { Output } from "./renderings.js"

export interface Canary {
  readonly name: string
  readonly value: string
}

const part = () => randomBytes(4).toString("hex")

/** A random secret with every character that an encoding changes. */
export const secret = (): Canary => ({
  name: "secret",
  value: `Sec${part()}+${part()}/${part()}=${part()}%7E${part()}~${part()}`
})

/** A token in the form that the endpoint issues. */
export const token = (value: string = randomBytes(32).toString("base64")): Canary => ({
  name: "token",
  value
})

const bytes = (value: string) => Array.from(Buffer.from(value))
const hex = (byte: number) => byte.toString(16).padStart(2, "0")

/** Base64 of a longer text that contains the value. The text before it shifts the bits of the value by 0, 2 or 4. */
const base64 = (encoding: "base64" | "base64url", before: string) => (value: string) =>
  Buffer.from(`${before}${value}&more=1`).toString(encoding)

export const encodings: Readonly<Record<string, (value: string) => string>> = {
  "raw": (value) => value,
  "a piece of 12": (value) => value.slice(9, 21),
  "the last 12": (value) => value.slice(-12),
  "over lines": (value) => (value.match(/.{1,7}/g) ?? []).join("\n  "),
  "as joined strings": (value) => `'${value.slice(0, 5)}' +\n '${value.slice(5)}'`,
  "percent": encodeURIComponent,
  "percent, lower case": (value) =>
    encodeURIComponent(value).replace(/%../g, (code) => code.toLowerCase()),
  "percent, each byte": (value) => bytes(value).map((byte) => `%${hex(byte)}`).join(""),
  "percent, twice": (value) => encodeURIComponent(encodeURIComponent(value)),
  "form": (value) => new URLSearchParams({ value }).toString().slice("value=".length),
  "form-decoded": (value) => value.replaceAll("+", " "),
  "base64": base64("base64", ""),
  "base64, shifted by 2": base64("base64", "id:"),
  "base64, shifted by 4": base64("base64", "id::"),
  "base64, shifted by 6": base64("base64", "id:::"),
  "base64url": base64("base64url", ""),
  "base64url, shifted by 2": base64("base64url", "id:"),
  "base64url, shifted by 4": base64("base64url", "id::"),
  "hex": (value) => bytes(value).map(hex).join(""),
  "hex, upper case": (value) => bytes(value).map(hex).join("").toUpperCase(),
  "hex literals": (value) => bytes(value).map((byte) => `0x${hex(byte)}`).join(", "),
  "Buffer": (value) => inspect(Buffer.from(value)),
  "Buffer as JSON": (value) => JSON.stringify(Buffer.from(value)),
  "decimal bytes": (value) => bytes(value).join(", "),
  "decimal bytes over lines": (value) =>
    inspect(new Uint8Array(bytes(value)), { breakLength: 30 }),
  "decimal bytes by index": (value) => JSON.stringify(new Uint8Array(bytes(value))),
  "decimal bytes in JSON over lines": (value) => JSON.stringify(bytes(value), null, 2),
  "JSON escapes": (value) => bytes(value).map((byte) => `\\u00${hex(byte)}`).join(""),
  "JavaScript escapes": (value) => bytes(value).map((byte) => `\\x${hex(byte)}`).join(""),
  "JSON in JSON": (value) => JSON.stringify(JSON.stringify({ value: `"${value}"` }))
}

export interface Finding {
  readonly canary: string
  readonly encoding: string
}

const piece = 12

const forms = ["joined", "decoded", "base64", "lower", "numbers"] as const

type Form = (typeof forms)[number]

interface Needle {
  readonly canary: string
  readonly encoding: string
  readonly form: Form
  readonly text: string
  /** The number of consecutive characters of the text that are a finding. */
  readonly length: number
}

export const find = (
  text: string,
  canaries: ReadonlyArray<Canary>
): ReadonlyArray<Finding> => {
  const haystacks = haystacksOf(text)
  const needles = canaries.flatMap(needlesOf)
  const found = new Set(
    forms.flatMap((form) =>
      foundIn(haystacks[form], needles.filter((needle) => needle.form === form))
    )
  )
  return needles.filter((needle) => found.has(needle)).map(({ canary, encoding }) => ({
    canary,
    encoding
  }))
}

const haystacksOf = (text: string): Readonly<Record<Form, string>> => {
  const joined = unescaped(unescaped(text)).replace(/\s+/g, "").replace(/(['"`])\+\1/g, "")
  return {
    joined,
    decoded: joined.includes("%") ? percentDecoded(percentDecoded(joined)) : "",
    base64: joined.replaceAll("-", "+").replaceAll("_", "/"),
    lower: joined.toLowerCase().replace(/0x|,/g, ""),
    numbers: joined.replace(/['"]?\d+['"]?:(?=\d)/g, "")
  }
}

const unescaped = (text: string): string =>
  text.includes("\\")
    ? text.replace(
      /\\(?:u([\da-f]{4})|x([\da-f]{2})|(.))/gis,
      (_, unicode?: string, hex?: string, other?: string) => {
        const code = unicode ?? hex
        if (code !== undefined) return String.fromCharCode(parseInt(code, 16))
        return other === "n" || other === "r" || other === "t" ? " " : other ?? ""
      }
    )
    : text

const percentDecoded = (text: string): string =>
  text.replace(/%([\da-f]{2})/gi, (_, hex: string) => String.fromCharCode(parseInt(hex, 16)))

const needlesOf = ({ name: canary, value }: Canary): ReadonlyArray<Needle> => {
  const bytes = Array.from(Buffer.from(value))
  const needle = (encoding: string, form: Form, text: string, length = piece): Needle => ({
    canary,
    encoding,
    form,
    text,
    length: Math.min(length, text.length)
  })
  return [
    needle("raw", "joined", value),
    // Form decoding turns a plus into a space, and the haystack has no white space.
    ...(value.includes("+")
      ? [needle("form-decoded", "joined", value.replaceAll("+", ""))]
      : []),
    // Decoding percent escapes can change a value that was not escaped.
    ...[...new Set([value, percentDecoded(value)])].map((value) =>
      needle("percent", "decoded", value)
    ),
    ...[0, 1, 2].map((shift) => needle("base64", "base64", base64Inner(value, shift), 16)),
    needle(
      "hex",
      "lower",
      bytes.map((byte) => byte.toString(16).padStart(2, "0")).join(""),
      2 * piece
    ),
    needle("bytes", "numbers", bytes.join(","), shortest(bytes))
  ]
}

/** The length of the shortest list of 12 consecutive bytes, in decimal. */
const shortest = (bytes: ReadonlyArray<number>): number =>
  Math.min(
    ...bytes.slice(piece - 1).map((_, start) =>
      bytes.slice(start, start + piece).join(",").length
    )
  )

/** The base64 characters that depend on the value alone when `shift` other bytes precede it. */
const base64Inner = (value: string, shift: number): string => {
  const encoded = Buffer.concat([Buffer.alloc(shift), Buffer.from(value)]).toString("base64")
    .replace(/=+$/, "")
  const mixed = (shift + Buffer.byteLength(value)) % 3 === 0 ? 0 : 1
  return encoded.slice(Math.ceil((shift * 8) / 6), encoded.length - mixed)
}

/**
 * The needles of which the haystack contains a piece. Samples four characters of the haystack at a time, in steps so
 * short that every piece contains a sample. Compares the characters around a sample only if a needle contains it.
 */
const foundIn = (haystack: string, needles: ReadonlyArray<Needle>): ReadonlyArray<Needle> => {
  const places = new Map<number, Array<readonly [needle: Needle, at: number]>>()
  for (const needle of needles) {
    for (let at = 0; at + sample <= needle.text.length; at++) {
      const key = keyOf(needle.text, at)
      const others = places.get(key)
      if (others === undefined) places.set(key, [[needle, at]])
      else others.push([needle, at])
    }
  }
  const found = new Set<Needle>()
  const step = Math.max(1, Math.min(...needles.map(({ length }) => length)) - sample + 1)
  for (let at = 0; at + sample <= haystack.length; at += step) {
    for (const [needle, start] of places.get(keyOf(haystack, at)) ?? []) {
      if (common(haystack, at, needle.text, start) >= needle.length) found.add(needle)
    }
  }
  return [...found]
}

const sample = 4

const keyOf = (text: string, at: number): number =>
  (text.charCodeAt(at) << 21 ^ text.charCodeAt(at + 1) << 14 ^ text.charCodeAt(at + 2) << 7 ^
    text.charCodeAt(at + 3)) &
  0x3fffffff

/** How many consecutive characters around the two places are equal. */
const common = (left: string, atLeft: number, right: string, atRight: number): number => {
  const same = (offset: number) =>
    atLeft + offset >= 0 && atRight + offset >= 0 && atLeft + offset < left.length &&
    left[atLeft + offset] === right[atRight + offset]
  let from = 0
  let to = 0
  while (same(to)) to++
  while (same(from - 1)) from--
  return to - from
}

/** Searches all outputs as one text, and each output separately only if that finds something. */
export const leaksInOutputs = (
  outputs: ReadonlyArray<Output>,
  canaries: ReadonlyArray<Canary>
): ReadonlyArray<string> =>
  find([...new Set(outputs.map(({ text }) => text))].join("\n---\n"), canaries).length === 0
    ? []
    : outputs.flatMap(({ name, text }) =>
      find(text, canaries).map(({ canary, encoding }) =>
        `${name} shows the ${canary} (${encoding})`
      )
    )

/** The private values of which a text holds a part, in any encoding or with colours. */
export const leaksIn = (text: string, secrets: ReadonlyArray<string>): ReadonlyArray<string> =>
  secrets.filter((value) =>
    find(stripVTControlCharacters(text), [{ name: "secret", value }]).length > 0
  )
