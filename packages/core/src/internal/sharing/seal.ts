import * as Effect from "effect/Effect"
import * as Encoding from "effect/Encoding"
import * as Redacted from "effect/Redacted"
import type { ClientCredentials } from "../../ClientCredentials.js"

/**
 * Encrypts the entries of one client at one endpoint. The name and the cipher key are derived from the client secret
 * (HKDF-SHA-256, RFC 5869), so that only processes with this secret can find and read an entry. The name reveals
 * neither the client nor the endpoint.
 */
export interface Sealing {
  /** The name of the entry in the store. */
  readonly key: string
  readonly seal: (text: string) => Effect.Effect<string>
  /** Returns `undefined` if the entry was sealed with another cipher key, under another name, or was changed. */
  readonly open: (entry: string) => Effect.Effect<string | undefined>
}

/** What the token is for. `identity` may contain a secret. */
export interface Purpose {
  /** The URL of the token endpoint. */
  readonly url: string
  readonly identity: string | Redacted.Redacted
}

const algorithm = "AES-GCM"
const nonceBytes = 12

/** The version of the entry format. Another version has other names and cipher keys. */
const version = "store-api-token-v1"

const utf8 = (text: string) => new TextEncoder().encode(text)

export const make = (credentials: ClientCredentials, purpose: Purpose): Effect.Effect<Sealing> =>
  Effect.map(derive(credentials, purpose), ({ aes, key, subtle }) => {
    const parameters = (iv: Uint8Array<ArrayBuffer>) => ({ name: algorithm, iv, additionalData: utf8(key) })
    return {
      key,
      seal: (text) =>
        Effect.suspend(() => {
          const nonce = globalThis.crypto.getRandomValues(new Uint8Array(nonceBytes))
          return Effect.map(
            Effect.promise(() => subtle.encrypt(parameters(nonce), aes, utf8(text))),
            (sealed) => Encoding.encodeBase64Url(Uint8Array.of(...nonce, ...new Uint8Array(sealed)))
          )
        }),
      open: (entry) =>
        Effect.gen(function*() {
          const bytes = Uint8Array.from(yield* Encoding.decodeBase64Url(entry))
          const nonce = bytes.slice(0, nonceBytes)
          const text = yield* Effect.tryPromise(() => subtle.decrypt(parameters(nonce), aes, bytes.slice(nonceBytes)))
          return new TextDecoder().decode(text)
        }).pipe(Effect.orElseSucceed(() => undefined))
    }
  })

/** Derives the name and the cipher key. */
const derive = (credentials: ClientCredentials, { identity, url }: Purpose) =>
  Effect.gen(function*() {
    const { subtle } = globalThis.crypto
    const text = Redacted.isRedacted(identity) ? Redacted.value(identity) : identity
    const parameters = (use: string) => ({
      name: "HKDF",
      hash: "SHA-256",
      // JSON encodes different lists as different bytes. `info` may have only 1 KiB, and `identity` may be longer.
      salt: utf8(JSON.stringify([version, url, credentials.clientId, text])),
      info: utf8(use)
    })
    const secret = yield* Effect.promise(() =>
      subtle.importKey("raw", utf8(Redacted.value(credentials.clientSecret)), "HKDF", false, [
        "deriveKey",
        "deriveBits"
      ])
    )
    const aes = yield* Effect.promise(() =>
      subtle.deriveKey(parameters("entry"), secret, { name: algorithm, length: 256 }, false, ["encrypt", "decrypt"])
    )
    const name = yield* Effect.promise(() => subtle.deriveBits(parameters("name"), secret, 128))
    return { aes, key: `${version}:${Encoding.encodeHex(new Uint8Array(name))}`, subtle }
  })
