import * as Effect from "effect/Effect"
import * as Encoding from "effect/Encoding"
import * as Redacted from "effect/Redacted"
import type { Purpose } from "../../TokenSource.js"

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

const algorithm = "AES-GCM"
const nonceBytes = 12

/** The version of the entry format. Another version has other names and cipher keys. */
const version = "store-api-token-v1"

const utf8 = (text: string) => new TextEncoder().encode(text)

export const make = ({ name, secret }: Purpose): Effect.Effect<Sealing> =>
  Effect.gen(function*() {
    const { subtle } = globalThis.crypto
    const derivation = (use: string) => ({
      name: "HKDF",
      hash: "SHA-256",
      // JSON encodes different lists as different bytes. `info` may have only 1 KiB, and a name may be longer.
      salt: utf8(JSON.stringify([version, ...name.map(reveal)])),
      info: utf8(use)
    })
    const imported = yield* Effect.promise(() =>
      subtle.importKey("raw", utf8(Redacted.value(secret)), "HKDF", false, [
        "deriveKey",
        "deriveBits"
      ])
    )
    const aes = yield* Effect.promise(() =>
      subtle.deriveKey(
        derivation("entry"),
        imported,
        { name: algorithm, length: 256 },
        false,
        ["encrypt", "decrypt"]
      )
    )
    const bits = yield* Effect.promise(() =>
      subtle.deriveBits(derivation("name"), imported, 128)
    )
    const key = `${version}:${Encoding.encodeHex(new Uint8Array(bits))}`
    const cipher = (iv: Uint8Array<ArrayBuffer>) => ({
      name: algorithm,
      iv,
      additionalData: utf8(key)
    })
    return {
      key,
      seal: (text) =>
        Effect.gen(function*() {
          const nonce = globalThis.crypto.getRandomValues(new Uint8Array(nonceBytes))
          const sealed = yield* Effect.promise(() =>
            subtle.encrypt(cipher(nonce), aes, utf8(text))
          )
          return Encoding.encodeBase64Url(Uint8Array.of(...nonce, ...new Uint8Array(sealed)))
        }),
      open: (entry) =>
        Effect.gen(function*() {
          const bytes = Uint8Array.from(yield* Encoding.decodeBase64Url(entry))
          const nonce = bytes.slice(0, nonceBytes)
          const text = yield* Effect.tryPromise(() =>
            subtle.decrypt(cipher(nonce), aes, bytes.slice(nonceBytes))
          )
          return new TextDecoder().decode(text)
        }).pipe(Effect.orElseSucceed(() => undefined))
    }
  })

const reveal = (part: string | Redacted.Redacted): string =>
  Redacted.isRedacted(part) ? Redacted.value(part) : part
