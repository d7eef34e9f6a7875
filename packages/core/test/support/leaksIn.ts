import { stripVTControlCharacters } from "node:util"

/** The private values that a text holds, as they are or in a usual encoding. */
export const leaksIn = (text: string, secrets: ReadonlyArray<string>): ReadonlyArray<string> => {
  const readings = readingsOf(text)
  return secrets.filter((secret) => formsOf(secret).some((form) => readings.some((reading) => reading.includes(form))))
}

/** A text as it is, and without what a terminal, a mailer or a URL puts into it. */
const readingsOf = (text: string): ReadonlyArray<string> => {
  const plain = stripVTControlCharacters(text)
  const unbroken = plain.replace(/\s+/g, "")
  return [text, plain, unbroken, unescaped(plain), unescaped(unbroken), unbroken.toLowerCase()]
}

/** With each `%2B` as the `+` that it stands for, however much of the rest is none. */
const unescaped = (text: string): string =>
  text.replace(/(%[0-9a-f]{2})+/gi, (codes) => Buffer.from(codes.replaceAll("%", ""), "hex").toString("utf8"))

const formsOf = (secret: string): ReadonlyArray<string> => {
  const inForms = new URLSearchParams([["", secret]]).toString().slice(1)
  const texts = [...new Set([secret, encodeURIComponent(secret), inForms])]
  // The most of it, as what is cut off shows it.
  const parts = secret.length >= 12 ? [secret.slice(0, -3), secret.slice(3)] : []
  return [
    ...texts,
    ...parts,
    // As it is found in a text without white space.
    secret.replace(/\s+/g, ""),
    JSON.stringify(secret).slice(1, -1),
    ...texts.map((text) => Buffer.from(text).toString("hex")),
    ...texts.flatMap(inBase64)
  ]
}

/**
 * The base64 of a text depends on the number of bytes before it, modulo three: in `Basic base64(id:secret)`, on the
 * length of the id. Returns the part of each of the three forms that the surrounding bytes do not change.
 */
const inBase64 = (text: string): ReadonlyArray<string> =>
  [0, 1, 2].flatMap((before) => {
    const bytes = Buffer.concat([Buffer.alloc(before), Buffer.from(text)])
    const whole = Math.floor(bytes.length / 3) * 4
    return (["base64", "base64url"] as const).map((alphabet) =>
      bytes.toString(alphabet).slice(before === 0 ? 0 : 4, whole)
    )
  }).filter((form) => form.length >= 8)
