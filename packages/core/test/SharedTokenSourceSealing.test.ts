import { assert, describe, it } from "@effect/vitest"
import { deepStrictEqual } from "@effect/vitest/utils"
import { type SharedTokenSource, TokenStore } from "@store-api/core"
import { Effect, Encoding, Option, Ref } from "effect"
import * as seal from "../src/internal/seal.js"
import { authUrl, credentials, credentialsOf, endpoint, member, valueOf } from "./support/fleet.js"

/** A store whose contents a test can read and write, as somebody who broke into it could. */
const open = Effect.map(Ref.make<ReadonlyMap<string, string>>(new Map()), (contents) => ({
  contents,
  store: TokenStore.TokenStore.of({
    get: (key) => Effect.map(Ref.get(contents), (all) => Option.fromNullable(all.get(key))),
    put: (key, entry) => Ref.update(contents, (all) => new Map(all).set(key, entry)),
    remove: () => Effect.succeed(false),
    lease: () => Effect.succeedSome({ extend: Effect.succeed(true), release: Effect.void })
  })
}))

/** Buys a token into an open store. */
const stored = (options: Partial<SharedTokenSource.Options> = {}) =>
  Effect.gen(function*() {
    const { contents, store } = yield* open
    const { requests, source } = yield* endpoint()
    yield* (yield* member(source, store, options)).acquire(Option.none())
    const [[key, entry] = ["", ""]] = yield* Ref.get(contents)
    return { contents, entry, key, requests, source, store }
  })

const forms = (text: string): ReadonlyArray<string> => [
  text,
  ...[0, 1, 2].map((shift) => {
    const encoded = Encoding.encodeBase64("x".repeat(shift) + text).replace(/=+$/, "")
    return encoded.slice(shift === 0 ? 0 : 4, -2)
  }),
  Encoding.encodeHex(text),
  [...new TextEncoder().encode(text)].join(",")
]

const shows = (said: string, text: string) => {
  const haystack = [said, said.replaceAll("-", "+").replaceAll("_", "/")].join("\n").toLowerCase()
  return forms(text).some((form) => haystack.includes(form.toLowerCase()))
}

describe("what SharedTokenSource stores", () => {
  const told = [
    "invented-client-id",
    "invented-client-secret-0123456789",
    "token-1",
    "developer@shop.example",
    "shop.example"
  ]

  it.effect("shows no secret, no token, no client id and no address, neither in the entry nor in the key", () =>
    Effect.gen(function*() {
      const { entry, key, requests } = yield* stored()
      assert.strictEqual(yield* requests, 1)
      assert.isAbove(entry.length, 100)
      const decoded = Buffer.from(entry, "base64url").toString("latin1")
      for (const text of told) {
        for (const [name, said] of Object.entries({ entry, key, decoded })) {
          assert.isFalse(shows(said, text), `${text} in the ${name}`)
        }
      }
    }))

  it.effect("and the same search finds them in what is stored without a seal", () =>
    Effect.gen(function*() {
      const { entry, key } = yield* stored()
      const { open } = yield* seal.make(credentials, authUrl)
      const clear = Option.getOrThrow(yield* open(entry))
      for (const text of ["invented-client-id", "token-1", "developer@shop.example"]) {
        assert.isTrue(shows(clear, text), text)
        for (const naive of [...forms(clear), Buffer.from(clear).toString("base64url")]) {
          assert.isTrue(shows(`${key} ${naive}`, text), `${text} in ${naive}`)
        }
      }
    }))

  it.effect("is another text each time, also of the same token", () =>
    Effect.gen(function*() {
      const { open, seal: close } = yield* seal.make(credentials, authUrl)
      const entries = yield* Effect.all(Effect.replicate(close("the same"), 100))
      assert.strictEqual(new Set(entries).size, 100)
      assert.strictEqual(new Set(entries.map((entry) => entry.slice(0, 16))).size, 100, "the nonces")
      deepStrictEqual(yield* Effect.forEach(entries, open), entries.map(() => Option.some("the same")))
    }))

  it.effect("is a miss with any one bit of it changed", () =>
    Effect.gen(function*() {
      const { open, seal: close } = yield* seal.make(credentials, authUrl)
      const entry = yield* close("a text")
      const bytes = Buffer.from(entry, "base64url")
      deepStrictEqual(yield* open(entry), Option.some("a text"), "control")
      for (let bit = 0; bit < 8 * bytes.length; bit++) {
        const tampered = Buffer.from(bytes)
        tampered[bit >> 3] = (tampered[bit >> 3] ?? 0) ^ (1 << (bit & 7))
        deepStrictEqual(yield* open(tampered.toString("base64url")), Option.none(), `bit ${bit}`)
      }
      for (let length = 0; length < bytes.length; length++) {
        deepStrictEqual(yield* open(bytes.subarray(0, length).toString("base64url")), Option.none(), `${length} bytes`)
      }
    }))

  it.effect.each([
    "",
    " ",
    "null",
    "{}",
    "not base64!",
    "A".repeat(1000),
    JSON.stringify({ value: "forged", scope: "", acquiredAt: 0, expiresAt: 8640000000000000 })
  ])("a foreign entry is a miss, and is written over: %j", (entry) =>
    Effect.gen(function*() {
      const { contents, key, requests, source, store } = yield* stored()
      yield* Ref.set(contents, new Map([[key, entry]]))
      assert.strictEqual(valueOf(yield* (yield* member(source, store)).acquire(Option.none())), "token-2")
      assert.strictEqual(valueOf(yield* (yield* member(source, store)).acquire(Option.none())), "token-2")
      assert.strictEqual(yield* requests, 2)
    }))

  it.effect("a sealed entry that is no token is a miss", () =>
    Effect.gen(function*() {
      const { contents, key, requests, source, store } = yield* stored()
      const { seal: close } = yield* seal.make(credentials, authUrl)
      yield* Ref.set(contents, new Map([[key, yield* close("{\"value\":1}")]]))
      assert.strictEqual(valueOf(yield* (yield* member(source, store)).acquire(Option.none())), "token-2")
      assert.strictEqual(yield* requests, 2)
    }))

  const others: Readonly<Record<string, Partial<SharedTokenSource.Options>>> = {
    "client": { credentials: credentialsOf("another-client-id", "invented-client-secret-0123456789") },
    "secret": { credentials: credentialsOf("invented-client-id", "another-invented-secret") },
    "endpoint": { authUrl: "https://auth.other.example/base" },
    "path of the endpoint": { authUrl: "https://auth.shop.example/other" }
  }

  for (const [what, options] of Object.entries(others)) {
    it.effect(`another ${what} has another key, and its entry cannot be swapped in`, () =>
      Effect.gen(function*() {
        const mine = yield* stored()
        const other = yield* stored(options)
        assert.notStrictEqual(mine.key, other.key)
        yield* Ref.set(mine.contents, new Map([[mine.key, other.entry]]))
        assert.strictEqual(
          valueOf(yield* (yield* member(mine.source, mine.store)).acquire(Option.none())),
          "token-2",
          "a miss"
        )
      }))
  }

  it.effect("the same sealing under another key name does not open: the name is bound to the entry", () =>
    Effect.gen(function*() {
      // The same bytes of AES key cannot be had by another name through the library; so the platform is asked itself.
      const { entry, key } = yield* stored()
      const bytes = new Uint8Array(Buffer.from(entry, "base64url"))
      const decrypt = (additionalData: string) =>
        Effect.promise(async () => {
          const utf8 = new TextEncoder()
          const secret = await crypto.subtle.importKey(
            "raw",
            utf8.encode("invented-client-secret-0123456789"),
            "HKDF",
            false,
            ["deriveKey"]
          )
          const aes = await crypto.subtle.deriveKey(
            {
              name: "HKDF",
              hash: "SHA-256",
              salt: utf8.encode("store-api-token-v1"),
              info: utf8.encode(JSON.stringify(["entry", authUrl, "invented-client-id"]))
            },
            secret,
            { name: "AES-GCM", length: 256 },
            false,
            ["decrypt"]
          )
          const parameters = { name: "AES-GCM", iv: bytes.slice(0, 12), additionalData: utf8.encode(additionalData) }
          return crypto.subtle.decrypt(parameters, aes, bytes.slice(12)).then(() => true, () => false)
        })
      assert.isTrue(yield* decrypt(key), "the documented format, read without the library")
      assert.isFalse(yield* decrypt(`${key}0`))
    }))
})
