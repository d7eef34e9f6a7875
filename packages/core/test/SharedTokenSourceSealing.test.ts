import { assert, describe, it, vi } from "@effect/vitest"
import { deepStrictEqual } from "@effect/vitest/utils"
import { type SharedTokenSource, TokenStore } from "@store-api/core"
import { Cause, Effect, Encoding, Exit, Fiber, FiberRef, Logger, LogLevel, Option, Ref } from "effect"
import * as seal from "../src/internal/seal.js"
import { authUrl, credentials, credentialsOf, endpoint, member, valueOf } from "./support/fleet.js"
import { renderings } from "./support/renderings.js"

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
      // The library cannot open the same AES key under another name: this asks the platform itself.
      const { entry, key } = yield* stored()
      const bytes = new Uint8Array(Buffer.from(entry, "base64url"))
      const utf8 = (text: string) => new TextEncoder().encode(text)
      const secret = yield* Effect.promise(() =>
        crypto.subtle.importKey("raw", utf8("invented-client-secret-0123456789"), "HKDF", false, [
          "deriveBits",
          "deriveKey"
        ])
      )
      const derivation = (purpose: string) => ({
        name: "HKDF",
        hash: "SHA-256",
        salt: utf8("store-api-token-v1"),
        info: utf8(JSON.stringify([purpose, authUrl, "invented-client-id"]))
      })
      const name = yield* Effect.promise(() => crypto.subtle.deriveBits(derivation("name"), secret, 128))
      assert.strictEqual(key, `store-api-token-v1:${Buffer.from(name).toString("hex")}`)
      const cipher = { name: "AES-GCM", length: 256 }
      const aes = yield* Effect.promise(() =>
        crypto.subtle.deriveKey(derivation("entry"), secret, cipher, false, ["decrypt"])
      )
      const decrypt = (additionalData: string) =>
        Effect.promise(() => {
          const parameters = { name: "AES-GCM", iv: bytes.slice(0, 12), additionalData: utf8(additionalData) }
          return crypto.subtle.decrypt(parameters, aes, bytes.slice(12)).then(() => true, () => false)
        })
      assert.isTrue(yield* decrypt(key), "the documented format, read without the library")
      assert.isFalse(yield* decrypt(`${key}0`))
    }))
})

/** What a platform may say of its fault, with what it was given. */
const said = "an-invented-defect of an-invented-token"

const fault = () => new Error(said)

/** The platform's cryptography, of which one function is another, until the scope ends. */
const platform = (broken: Partial<Record<"getRandomValues" | "subtle", unknown>>) =>
  Effect.acquireRelease(
    Effect.sync(() => {
      const real = globalThis.crypto
      const getRandomValues = (array: Uint8Array<ArrayBuffer>) => real.getRandomValues(array)
      vi.stubGlobal("crypto", { getRandomValues, subtle: real.subtle, ...broken })
    }),
    () => Effect.sync(() => vi.unstubAllGlobals())
  )

const functions = ["importKey", "deriveKey", "deriveBits", "encrypt", "decrypt"] as const

/** The functions that are used, called on the real object, but for one. */
const subtleBut = (name: (typeof functions)[number], broken: () => unknown) => {
  const { subtle } = globalThis.crypto
  return { ...Object.fromEntries(functions.map((each) => [each, subtle[each].bind(subtle)])), [name]: broken }
}

/** All that is logged, at every level, in one text. */
const logged = <A, E, R>(effect: Effect.Effect<A, E, R>) =>
  Effect.suspend(() => {
    const lines: Array<string> = []
    const logger = Logger.make(({ annotations, cause, message, spans }) => {
      lines.push(renderings([message, cause, Cause.pretty(cause), [...annotations], [...spans]]))
    })
    return Effect.map(
      effect.pipe(
        Effect.provide(Logger.replace(Logger.defaultLogger, logger)),
        Logger.withMinimumLogLevel(LogLevel.All),
        Effect.locally(FiberRef.unhandledErrorLogLevel, Option.some(LogLevel.Debug))
      ),
      (result) => ({ result, text: lines.join("\n") })
    )
  })

describe("SharedTokenSource, on a platform whose cryptography fails", () => {
  const faults: ReadonlyArray<readonly [what: string, broken: () => Parameters<typeof platform>[0]]> = [
    ["there is none", () => ({ subtle: undefined })],
    ["getRandomValues throws", () => ({
      getRandomValues: () => {
        throw fault()
      }
    })],
    ...functions.flatMap((name) =>
      [
        [`${name} fails`, () => ({ subtle: subtleBut(name, () => Promise.reject(fault())) })],
        [`${name} throws`, () => ({
          subtle: subtleBut(name, () => {
            throw fault()
          })
        })]
      ] as const
    )
  ]

  it.effect.each(faults)(
    "%s: the token bought is the answer, of one token request, and nothing is said of it",
    ([, broken]) =>
      Effect.gen(function*() {
        const { requests, source } = yield* endpoint()
        const store = yield* TokenStore.makeMemory
        // There is one to be opened, and to be replaced.
        const held = yield* (yield* member(source, store)).acquire(Option.none())
        const { result, text } = yield* Effect.zipRight(
          platform(broken()),
          Effect.flatMap(member(source, store), ({ acquire }) => Effect.exit(acquire(Option.some(held))))
        ).pipe(Effect.scoped, logged)
        deepStrictEqual(Exit.map(result, valueOf), Exit.succeed("token-2"))
        assert.strictEqual(yield* requests, 2)
        assert.notInclude(text, "invented")
      })
  )

  it.effect("control: what is logged is seen, also of a defect", () =>
    Effect.gen(function*() {
      const warned = yield* logged(
        Effect.catchAllCause(Effect.die(fault()), (cause) => Effect.logTrace("a line", cause))
      )
      assert.include(warned.text, said)
      const forked = yield* logged(Effect.flatMap(Effect.fork(Effect.die(fault())), Fiber.await))
      assert.include(forked.text, said)
    }))
})
