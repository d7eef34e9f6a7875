/** The private values that a text holds, as they are or in a usual encoding. */
export const leaksIn = (text: string, secrets: ReadonlyArray<string>): ReadonlyArray<string> =>
  secrets.filter((secret) => encodings(secret).some((encoded) => text.includes(encoded)))

const encodings = (secret: string): ReadonlyArray<string> => [
  secret,
  encodeURIComponent(secret),
  Buffer.from(secret).toString("base64").replace(/=+$/, ""),
  Buffer.from(secret).toString("base64url"),
  Buffer.from(secret).toString("hex"),
  JSON.stringify(secret).slice(1, -1),
  // The most of it, as what is cut off shows it.
  ...(secret.length >= 12 ? [secret.slice(0, -3), secret.slice(3)] : [])
]
