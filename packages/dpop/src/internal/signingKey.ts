/** The key that signs proofs, over WebCrypto. */
import { ConfigurationError } from "@store-api/core/AccessTokenError"
import * as Effect from "effect/Effect"
import * as Encoding from "effect/Encoding"
import * as Redacted from "effect/Redacted"

/** A private key for ES256. */
export interface SigningKey {
  /** The thumbprint of the public key (RFC 7638). */
  readonly thumbprint: string
  /** Returns a signed JWT in the compact form (RFC 7515 §7.1). Its header contains the public key. */
  readonly sign: (claims: object) => Effect.Effect<string>
}

const p256 = { name: "ECDSA", namedCurve: "P-256" }
const es256 = { name: "ECDSA", hash: "SHA-256" }

const utf8 = (text: string) => new TextEncoder().encode(text)

/** The SHA-256 of a text in base64url. */
export const sha256 = (text: string): Effect.Effect<string> =>
  Effect.map(
    Effect.promise(() => globalThis.crypto.subtle.digest("SHA-256", utf8(text))),
    encode
  )

const encode = (bytes: ArrayBuffer) => Encoding.encodeBase64Url(new Uint8Array(bytes))

const encodeJson = (value: object) => Encoding.encodeBase64Url(JSON.stringify(value))

/** Generates a key that cannot be exported. */
export const generate: Effect.Effect<SigningKey> = Effect.gen(function*() {
  const { subtle } = globalThis.crypto
  const { privateKey, publicKey } = yield* Effect.promise(() =>
    subtle.generateKey(p256, false, ["sign", "verify"])
  )
  return yield* make(
    privateKey,
    yield* Effect.promise(() => subtle.exportKey("jwk", publicKey))
  )
})

/** Imports a private key in PEM. Its line breaks may be missing or written as `\n`, as in environment variables. */
export const fromPem = (
  pem: Redacted.Redacted
): Effect.Effect<SigningKey, ConfigurationError> =>
  Effect.gen(function*() {
    const { subtle } = globalThis.crypto
    const read = (isExtractable: boolean) =>
      Effect.tryPromise(() =>
        subtle.importKey("pkcs8", bytesOf(pem), p256, isExtractable, ["sign"])
      )
    // WebCrypto derives a public key only by exporting the private one. The key that stays cannot be exported.
    const extractable = yield* read(true)
    const jwk = yield* Effect.promise(() => subtle.exportKey("jwk", extractable))
    return yield* make(yield* read(false), jwk)
  }).pipe(
    // The error of WebCrypto is dropped, because it might quote the key.
    Effect.mapError(() =>
      new ConfigurationError({
        option: "Dpop.privateKey",
        reason: "must be a Redacted EC P-256 private key (PKCS #8 in PEM)"
      })
    )
  )

/** Throws if the text is not base64. */
const bytesOf = (pem: Redacted.Redacted) => {
  const base64 = Redacted.value(pem).replace(/-----[A-Z ]+-----|\\n|\s/g, "")
  return Uint8Array.from(atob(base64), (character) => character.charCodeAt(0))
}

const make = (privateKey: CryptoKey, { crv, kty, x, y }: JsonWebKey) => {
  // Only the public members, in the order in which RFC 7638 hashes them.
  const jwk = { crv, kty, x, y }
  const header = encodeJson({ typ: "dpop+jwt", alg: "ES256", jwk })
  const sign = (claims: object) =>
    Effect.gen(function*() {
      const signed = `${header}.${encodeJson(claims)}`
      const signature = yield* Effect.promise(() =>
        globalThis.crypto.subtle.sign(es256, privateKey, utf8(signed))
      )
      return `${signed}.${encode(signature)}`
    })
  return Effect.map(sha256(JSON.stringify(jwk)), (thumbprint) => ({ thumbprint, sign }))
}
