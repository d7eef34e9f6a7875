/** Unique values that must not appear in any output. */
import { randomBytes } from "node:crypto"
import { inspect } from "node:util"

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
export const token = (value: string = randomBytes(32).toString("base64")): Canary => ({ name: "token", value })

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
  "percent, lower case": (value) => encodeURIComponent(value).replace(/%../g, (code) => code.toLowerCase()),
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
  "decimal bytes over lines": (value) => inspect(new Uint8Array(bytes(value)), { breakLength: 30 }),
  "decimal bytes by index": (value) => JSON.stringify(new Uint8Array(bytes(value))),
  "decimal bytes in JSON over lines": (value) => JSON.stringify(bytes(value), null, 2),
  "JSON escapes": (value) => bytes(value).map((byte) => `\\u00${hex(byte)}`).join(""),
  "JavaScript escapes": (value) => bytes(value).map((byte) => `\\x${hex(byte)}`).join(""),
  "JSON in JSON": (value) => JSON.stringify(JSON.stringify({ value: `"${value}"` }))
}
