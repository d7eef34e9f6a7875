/** Keeps credentials, tokens and control characters out of what a server says. */
import * as Encoding from "effect/Encoding"

export interface Known {
  /** Searched for if it has at least 8 characters. A shorter one may be a common word. */
  readonly clientId: string
  /** The client secret, the token to be replaced, and what else the request carried. */
  readonly secrets: ReadonlyArray<string>
}

/**
 * Returns the description of an error as one line of at most 256 characters, or undefined if it contains a secret.
 * Other characters could start a line of a log (CWE-117), control a terminal, or hide text.
 */
export const description = (text: string, { clientId, secrets }: Known): string | undefined => {
  const line = withoutId(text, clientId).slice(0, 256).replace(/[\p{C}\p{Zl}\p{Zp}]/gu, " ")
  return line.trim() === "" || containsAny(text, secrets) ? undefined : line
}

/** Returns an error code if it is registered, or a short word without a credential or token. */
export const code = (text: string, { clientId, secrets }: Known): string | undefined => {
  const isHarmless = /^[\w.:-]{1,100}$/.test(text) && withoutId(text, clientId) === text && !containsAny(text, secrets)
  return isHarmless || registered.has(text) ? text : undefined
}

/** The codes of RFC 6749, and the registered extensions for a token endpoint without users. */
export const registered: ReadonlySet<string> = new Set(
  ("invalid_request invalid_client invalid_grant unauthorized_client unsupported_grant_type invalid_scope " +
    "server_error temporarily_unavailable invalid_target invalid_dpop_proof use_dpop_nonce").split(" ")
)

const withoutId = (text: string, clientId: string): string =>
  clientId.length < 8 ? text : text.replaceAll(clientId, "<client id>")

/**
 * Searches for each secret as it was sent, as a server form-decodes it, and in base64. Each may be escaped once or
 * twice: percent-encoded, for HTML or for JSON.
 */
const containsAny = (text: string, secrets: ReadonlyArray<string>): boolean => {
  const texts = unescaped(unescaped([text])).flatMap((text) => [text, bare(text)])
  return secrets.some((secret) =>
    [secret, bare(secret), bare(percentDecoded(secret)), ...base64(secret).map(bare)]
      .some((form) => form !== "" && texts.some((text) => text.includes(form)))
  )
}

/** The texts, and what they mean if they were escaped. For most texts, that is the same. */
const unescaped = (texts: ReadonlyArray<string>): ReadonlyArray<string> => [
  ...new Set(texts.flatMap((text) => [text, percentDecoded(text), htmlDecoded(text), jsonDecoded(text)]))
]

const entities: Readonly<Record<string, string>> = { amp: "&", lt: "<", gt: ">", quot: "\"", apos: "'" }

/** In one pass, so that `&amp;lt;` becomes `&lt;`. */
const htmlDecoded = (text: string): string =>
  text.replace(/&(#x?[\da-f]+|amp|lt|gt|quot|apos);/gi, (entity, name: string) => {
    const code = Number(name.slice(1).replace(/^x/i, "0x"))
    return entities[name.toLowerCase()] ?? (code <= 0x10ffff ? String.fromCodePoint(code) : entity)
  })

/** Escaped white space becomes a space, because `bare` drops all of it. */
const jsonDecoded = (text: string): string =>
  text.replace(/\\(u[\da-f]{4}|.)/gi, (_, code: string) => {
    if (code.length > 1) return String.fromCharCode(parseInt(code.slice(1), 16))
    return /[bfnrt]/.test(code) ? " " : code
  })

export const percentDecoded = (text: string): string =>
  text.replace(
    /(%[\da-f]{2})+/gi,
    (run) => new TextDecoder().decode(Uint8Array.from(run.slice(1).split("%"), (hex) => parseInt(hex, 16)))
  )

/** Without the characters that differ between the forms of base64, or that a server inserts: spaces and line breaks. */
const bare = (text: string): string => text.replace(/[-+_/\s\p{C}]/gu, "")

/** Whole groups of three bytes, whose base64 does not depend on the bytes around them. */
const base64 = (secret: string): ReadonlyArray<string> => {
  const bytes = new TextEncoder().encode(secret)
  return [0, 1, 2].map((start) =>
    Encoding.encodeBase64(bytes.subarray(start, bytes.length - (bytes.length - start) % 3))
  )
}
