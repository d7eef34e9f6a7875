/**
 * Looks for canaries in a text, whatever encoding they are in: the text is undone where that is possible (escapes,
 * percent, line breaks), and searched for the encoded forms where it is not (base64, hex, lists of bytes). A piece of 12
 * characters is enough.
 */
import type { Canary } from "./canary.js"

export interface Finding {
  readonly canary: string
  readonly encoding: string
}

const piece = 12

interface Haystacks {
  readonly joined: string
  readonly decoded: string
  readonly base64: string
  readonly lower: string
  readonly numbers: string
}

interface Needle {
  readonly encoding: string
  readonly haystack: keyof Haystacks
  readonly units: ReadonlyArray<string>
  readonly separator: string
  readonly length: number
}

export const find = (text: string, canaries: ReadonlyArray<Canary>): ReadonlyArray<Finding> => {
  const haystacks = haystacksOf(text)
  return canaries.flatMap(({ name, value }) =>
    needlesOf(value).filter((needle) => holds(haystacks[needle.haystack], needle)).map(({ encoding }) => ({
      canary: name,
      encoding
    }))
  )
}

const haystacksOf = (text: string): Haystacks => {
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
    ? text.replace(/\\(?:u([\da-f]{4})|x([\da-f]{2})|(.))/gis, (_, unicode?: string, hex?: string, other?: string) => {
      const code = unicode ?? hex
      if (code !== undefined) return String.fromCharCode(parseInt(code, 16))
      return other === "n" || other === "r" || other === "t" ? " " : other ?? ""
    })
    : text

const percentDecoded = (text: string): string =>
  text.replace(/%([\da-f]{2})/gi, (_, hex: string) => String.fromCharCode(parseInt(hex, 16)))

const needlesOf = (value: string): ReadonlyArray<Needle> => {
  const bytes = Array.from(Buffer.from(value))
  const text = (encoding: string, haystack: keyof Haystacks, text: string, length = piece): Needle => ({
    encoding,
    haystack,
    units: Array.from(text),
    separator: "",
    length
  })
  return [
    text("raw", "joined", value),
    // White space does not count, so this is also what a form decoder makes of it.
    ...(value.includes("+") ? [text("form-decoded", "joined", value.replaceAll("+", ""))] : []),
    // Undoing percent escapes can spoil what was never escaped.
    ...[...new Set([value, percentDecoded(value)])].map((value) => text("percent", "decoded", value)),
    ...[0, 1, 2].map((shift) => text("base64", "base64", base64Inner(value, shift), 16)),
    {
      encoding: "hex",
      haystack: "lower",
      units: bytes.map((byte) => byte.toString(16).padStart(2, "0")),
      separator: "",
      length: piece
    },
    { encoding: "bytes", haystack: "numbers", units: bytes.map(String), separator: ",", length: piece }
  ]
}

/** The characters of the base64 of a value, behind `shift` other bytes, that are of the value alone. */
const base64Inner = (value: string, shift: number): string => {
  const encoded = Buffer.concat([Buffer.alloc(shift), Buffer.from(value)]).toString("base64").replace(/=+$/, "")
  const mixed = (shift + Buffer.byteLength(value)) % 3 === 0 ? 0 : 1
  return encoded.slice(Math.ceil((shift * 8) / 6), encoded.length - mixed)
}

/** Every piece holds a whole block of half its length: few searches tell that there is nothing. */
const holds = (haystack: string, { length, separator, units }: Needle): boolean => {
  const half = Math.floor(Math.min(length, units.length) / 2)
  if (haystack === "" || half === 0) return false
  return windows(units, half, half).some((block) => haystack.includes(block.join(separator))) &&
    windows(units, Math.min(length, units.length), 1).some((window) => haystack.includes(window.join(separator)))
}

const windows = <A>(units: ReadonlyArray<A>, length: number, step: number): ReadonlyArray<ReadonlyArray<A>> =>
  Array.from(
    { length: Math.floor((units.length - length) / step) + 1 },
    (_, index) => units.slice(index * step, index * step + length)
  )
