import { assert, describe, it, vi } from "@effect/vitest"
import { deepStrictEqual } from "@effect/vitest/utils"
import { type SharedTokenSource, TokenStore } from "@store-api/core"
import { Cause, Effect, Encoding, Exit, Fiber, Logger, LogLevel, Option, Ref } from "effect"
import * as seal from "../../src/internal/sharing/seal.js"
import { authUrl, credentials, credentialsOf, endpoint, member, watched } from "../support/fleet.js"
import { renderings } from "../support/renderings.js"
import { valueOf } from "../support/scriptedSource.js"
import { test } from "../support/test.js"
import * as VirtualClock from "../support/virtualClock.js"

/** A store whose contents a test can read and write, as an attacker could. */
const exposedStore = Effect.map(Ref.make<ReadonlyMap<string, string>>(new Map()), (contents) => ({
  contents,
  store: TokenStore.TokenStore.of({
    get: (key) => Effect.map(Ref.get(contents), (all) => Option.fromNullable(all.get(key))),
    put: (key, entry) => Ref.update(contents, (all) => new Map(all).set(key, entry)),
    remove: () => Effect.succeed(false),
    lease: () => Effect.succeedSome({ extend: Effect.succeed(true), release: Effect.void })
  })
}))

/** Acquires a token into an exposed store. */
const stored = (options: Partial<SharedTokenSource.Options> = {}) =>
  Effect.gen(function*() {
    const { contents, store } = yield* exposedStore
    const { requests, source } = yield* endpoint()
    yield* (yield* member(source, store, options)).acquire(Option.none())
    const [[key, entry] = ["", ""]] = yield* Ref.get(contents)
    return { contents, entry, key, requests, source, store }
  })

/** The text as it is, in base64 at each of the three offsets, in hex and as decimal bytes. */
const forms = (text: string): ReadonlyArray<string> => [
  text,
  ...[0, 1, 2].map((shift) => {
    const encoded = Encoding.encodeBase64("x".repeat(shift) + text).replace(/=+$/, "")
    return encoded.slice(shift === 0 ? 0 : 4, -2)
  }),
  Encoding.encodeHex(text),
  [...new TextEncoder().encode(text)].join(",")
]

const shows = (output: string, text: string) => {
  const haystack = [output, output.replaceAll("-", "+").replaceAll("_", "/")].join("\n").toLowerCase()
  return forms(text).some((form) => haystack.includes(form.toLowerCase()))
}

describe("an entry that SharedTokenSource stores", () => {
  const sensitive = [
    "invented-client-id",
    "invented-client-secret-0123456789",
    "token-1",
    "developer@shop.example",
    "shop.example"
  ]

  test("contains no secret, token, client id, email address or host, neither in its value nor in its key", function*() {
    const { entry, key, requests } = yield* stored()
    assert.strictEqual(yield* requests, 1)
    assert.isAbove(entry.length, 100)
    const decoded = Buffer.from(entry, "base64url").toString("latin1")
    for (const text of sensitive) {
      for (const [name, output] of Object.entries({ entry, key, decoded })) {
        assert.isFalse(shows(output, text), `${text} in the ${name}`)
      }
    }
  })

  test("control: the same search finds them in an unsealed entry", function*() {
    const { entry, key } = yield* stored()
    const { open } = yield* seal.make(credentials, authUrl)
    const clear = (yield* open(entry)) ?? ""
    for (const text of ["invented-client-id", "token-1", "developer@shop.example"]) {
      assert.isTrue(shows(clear, text), text)
      for (const naive of [...forms(clear), Buffer.from(clear).toString("base64url")]) {
        assert.isTrue(shows(`${key} ${naive}`, text), `${text} in ${naive}`)
      }
    }
  })

  test("differs each time, even for the same token", function*() {
    const { open, seal: close } = yield* seal.make(credentials, authUrl)
    const entries = yield* Effect.all(Effect.replicate(close("the same"), 100))
    assert.strictEqual(new Set(entries).size, 100)
    assert.strictEqual(new Set(entries.map((entry) => entry.slice(0, 16))).size, 100, "each has its own nonce")
    deepStrictEqual(yield* Effect.forEach(entries, open), entries.map(() => "the same"))
  })

  test("is a miss when any one bit is changed or its end is cut off", function*() {
    const { open, seal: close } = yield* seal.make(credentials, authUrl)
    const entry = yield* close("a text")
    const bytes = Buffer.from(entry, "base64url")
    assert.strictEqual(yield* open(entry), "a text", "control")
    for (let bit = 0; bit < 8 * bytes.length; bit++) {
      const tampered = Buffer.from(bytes)
      tampered[bit >> 3] = (tampered[bit >> 3] ?? 0) ^ (1 << (bit & 7))
      assert.isUndefined(yield* open(tampered.toString("base64url")), `bit ${bit}`)
    }
    for (let length = 0; length < bytes.length; length++) {
      assert.isUndefined(yield* open(bytes.subarray(0, length).toString("base64url")), `${length} bytes`)
    }
  })

  it.effect.each([
    "",
    " ",
    "null",
    "{}",
    "not base64!",
    "A".repeat(1000),
    JSON.stringify({ value: "forged", scope: "", acquiredAt: 0, expiresAt: 8640000000000000 })
  ])("is a miss and is overwritten when it was not sealed: %j", (entry) =>
    Effect.gen(function*() {
      const { contents, key, requests, source, store } = yield* stored()
      yield* Ref.set(contents, new Map([[key, entry]]))
      assert.strictEqual(valueOf(yield* (yield* member(source, store)).acquire(Option.none())), "token-2")
      assert.strictEqual(valueOf(yield* (yield* member(source, store)).acquire(Option.none())), "token-2")
      assert.strictEqual(yield* requests, 2)
    }))

  test("is a miss when it is sealed but holds no token", function*() {
    const { contents, key, requests, source, store } = yield* stored()
    const { seal: close } = yield* seal.make(credentials, authUrl)
    yield* Ref.set(contents, new Map([[key, yield* close("{\"value\":1}")]]))
    assert.strictEqual(valueOf(yield* (yield* member(source, store)).acquire(Option.none())), "token-2")
    assert.strictEqual(yield* requests, 2)
  })

  const others: Readonly<Record<string, Partial<SharedTokenSource.Options>>> = {
    "client": { credentials: credentialsOf("another-client-id", "invented-client-secret-0123456789") },
    "secret": { credentials: credentialsOf("invented-client-id", "another-invented-secret") },
    "endpoint": { authUrl: "https://auth.other.example/base" },
    "path of the endpoint": { authUrl: "https://auth.shop.example/other" }
  }

  for (const [what, options] of Object.entries(others)) {
    test(`has another key for another ${what}, and is a miss under the original key`, function*() {
      const mine = yield* stored()
      const other = yield* stored(options)
      assert.notStrictEqual(mine.key, other.key)
      yield* Ref.set(mine.contents, new Map([[mine.key, other.entry]]))
      assert.strictEqual(
        valueOf(yield* (yield* member(mine.source, mine.store)).acquire(Option.none())),
        "token-2",
        "a miss"
      )
    })
  }

  test("cannot be decrypted under another store key, because the store key is authenticated with it", function*() {
    // The library derives the AES key and the store key together, so this test calls Web Crypto itself.
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
    assert.isTrue(yield* decrypt(key), "the documented format can be decrypted without the library")
    assert.isFalse(yield* decrypt(`${key}0`))
  })
})

/** The message of a platform error, which may quote its input. */
const faultMessage = "an-invented-defect of an-invented-token"

const fault = () => new Error(faultMessage)

/** Replaces a part of `globalThis.crypto` until the scope closes. */
const replaceCrypto = (broken: Partial<Record<"getRandomValues" | "subtle", unknown>>) =>
  Effect.acquireRelease(
    Effect.sync(() => {
      const real = globalThis.crypto
      const getRandomValues = (array: Uint8Array<ArrayBuffer>) => real.getRandomValues(array)
      const randomUUID = () => real.randomUUID()
      vi.stubGlobal("crypto", { getRandomValues, randomUUID, subtle: real.subtle, ...broken })
    }),
    () => Effect.sync(() => vi.unstubAllGlobals())
  )

const functions = ["importKey", "deriveKey", "deriveBits", "encrypt", "decrypt"] as const

/** The functions that the library uses, one of them replaced. */
const subtleWith = (name: (typeof functions)[number], broken: (...args: Array<never>) => unknown) => {
  const { subtle } = globalThis.crypto
  return { ...Object.fromEntries(functions.map((each) => [each, subtle[each].bind(subtle)])), [name]: broken }
}

/** Runs the effect; returns its result, and all that it logs at any level as one text. */
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
        Effect.withUnhandledErrorLogLevel(Option.some(LogLevel.Debug))
      ),
      (result) => ({ result, text: lines.join("\n") })
    )
  })

describe("SharedTokenSource, when Web Crypto is slow", () => {
  const virtual = VirtualClock.make()

  /** Encrypts or decrypts for 10 seconds. */
  const slow = (name: "encrypt" | "decrypt") => {
    const real: (...args: Array<never>) => Promise<unknown> = crypto.subtle[name].bind(crypto.subtle)
    return replaceCrypto({
      subtle: subtleWith(name, (...args: Array<never>) => {
        virtual.freeze(10_000)
        return real(...args)
      })
    })
  }

  it.live("does not return a token that has expired while it was decrypted", () =>
    Effect.gen(function*() {
      const { requests, source } = yield* endpoint()
      const store = yield* TokenStore.makeMemory
      const { acquire } = yield* member(source, store, { leeway: 0 })
      yield* acquire(Option.none())
      virtual.freeze(59 * 60_000 + 50_001)
      yield* slow("decrypt")
      assert.strictEqual(valueOf(yield* acquire(Option.none())), "token-2")
      assert.strictEqual(yield* requests, 2)
    }).pipe(Effect.scoped, Effect.withClock(virtual.clock)))

  it.live("stores a token for the lifetime that is left after it was encrypted", () =>
    Effect.gen(function*() {
      const { source } = yield* endpoint()
      const { puts, store } = yield* watched
      yield* slow("encrypt")
      yield* (yield* member(source, store)).acquire(Option.none())
      deepStrictEqual((yield* puts).map(([, , life]) => life), [60 * 60_000 - 10_000])
    }).pipe(Effect.scoped, Effect.withClock(virtual.clock)))
})

describe("SharedTokenSource, when Web Crypto fails", () => {
  const faults: ReadonlyArray<readonly [what: string, broken: () => Parameters<typeof replaceCrypto>[0]]> = [
    ["crypto.subtle is missing", () => ({ subtle: undefined })],
    ["getRandomValues throws", () => ({
      getRandomValues: () => {
        throw fault()
      }
    })],
    ...functions.flatMap((name) =>
      [
        [`${name} fails`, () => ({ subtle: subtleWith(name, () => Promise.reject(fault())) })],
        [`${name} throws`, () => ({
          subtle: subtleWith(name, () => {
            throw fault()
          })
        })]
      ] as const
    )
  ]

  it.effect.each(faults)(
    "returns a token after one token request and logs nothing sensitive when %s",
    ([, broken]) =>
      Effect.gen(function*() {
        const { requests, source } = yield* endpoint()
        const store = yield* TokenStore.makeMemory
        // A stored token, which must be opened and replaced.
        const cached = yield* (yield* member(source, store)).acquire(Option.none())
        const { result, text } = yield* Effect.zipRight(
          replaceCrypto(broken()),
          Effect.flatMap(member(source, store), ({ acquire }) => Effect.exit(acquire(Option.some(cached))))
        ).pipe(Effect.scoped, logged)
        deepStrictEqual(Exit.map(result, valueOf), Exit.succeed("token-2"))
        assert.strictEqual(yield* requests, 2)
        assert.notInclude(text, "invented")
      })
  )

  test("control: the log capture sees a logged cause", function*() {
    const warned = yield* logged(
      Effect.catchAllCause(Effect.die(fault()), (cause) => Effect.logTrace("a line", cause))
    )
    assert.include(warned.text, faultMessage)
  })

  test("control: the log capture sees an unhandled defect of a fiber", function*() {
    const forked = yield* logged(Effect.flatMap(Effect.fork(Effect.die(fault())), Fiber.await))
    assert.include(forked.text, faultMessage)
  })
})
