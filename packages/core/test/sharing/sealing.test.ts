import { assert, describe, it, vi } from "@effect/vitest"
import { deepStrictEqual } from "@effect/vitest/utils"
import { TokenRequest } from "@store-api/core"
import { leaksIn } from "@store-api/testing/leaksIn"
import { renderings } from "@store-api/testing/renderings"
import { test } from "@store-api/testing/test"
import * as VirtualClock from "@store-api/testing/virtualClock"
import { Cause, Effect, Logger, LogLevel, Option, Redacted } from "effect"
import * as seal from "../../src/internal/sharing/seal.js"
import {
  credentialsOf,
  fleet,
  fullToken,
  type MemberOptions,
  purpose,
  timed
} from "../support/fleet.js"
import { hour, minute, valueOf } from "../support/scriptedSource.js"

/** A fleet whose store contains a token, and what it contains. `overwrite` replaces that, as an attacker could. */
const stored = (options: MemberOptions = {}) =>
  Effect.gen(function*() {
    const { puts, requests, start, store } = yield* fleet({
      answer: (n) => fullToken(`invented-token-${n}`)
    })
    yield* (yield* start(options)).get()
    const [[key, entry] = ["", ""]] = yield* puts
    return {
      entry,
      key,
      requests,
      start,
      overwrite: (entry: string) => store.put(key, entry, "1 hour")
    }
  })

describe("an entry that SharedTokenSource stores", () => {
  test("a stored entry contains no secret, token, client id, email address or host", function*() {
    const contained = ["invented-client-id", "invented-token-1", "developer@shop.example"]
    const sensitive = [...contained, "invented-client-secret-0123456789", "shop.example"]
    const { entry, key } = yield* stored()
    assert.isAbove(entry.length, 100)
    deepStrictEqual(
      leaksIn(
        [key, entry, Buffer.from(entry, "base64url").toString("latin1")].join("\n"),
        sensitive
      ),
      []
    )
    const { open } = yield* seal.make(purpose)
    const clear = (yield* open(entry)) ?? ""
    for (const text of [clear, Buffer.from(clear).toString("base64url")]) {
      assert.includeMembers(
        [...leaksIn(text, sensitive)],
        contained,
        "control: they are found in an unsealed entry"
      )
    }
  })

  test("a sealed entry differs each time even for the same token", function*() {
    const { open, seal: close } = yield* seal.make(purpose)
    const entries = yield* Effect.all(Effect.replicate(close("the same"), 100))
    assert.strictEqual(new Set(entries).size, 100)
    assert.strictEqual(
      new Set(entries.map((entry) => entry.slice(0, 16))).size,
      100,
      "each has its own nonce"
    )
    deepStrictEqual(yield* Effect.forEach(entries, open), entries.map(() => "the same"))
  })

  test("a sealed entry is a miss when any one bit is changed or its end is cut off", function*() {
    const { open, seal: close } = yield* seal.make(purpose)
    const entry = yield* close("a text")
    const bytes = Buffer.from(entry, "base64url")
    assert.strictEqual(yield* open(entry), "a text", "control")
    for (let bit = 0; bit < 8 * bytes.length; bit++) {
      const tampered = Buffer.from(bytes)
      tampered[bit >> 3] = (tampered[bit >> 3] ?? 0) ^ (1 << (bit & 7))
      assert.isUndefined(yield* open(tampered.toString("base64url")), `bit ${bit}`)
    }
    for (let length = 0; length < bytes.length; length++) {
      assert.isUndefined(
        yield* open(bytes.subarray(0, length).toString("base64url")),
        `${length} bytes`
      )
    }
  })

  test.each(
    [
      ["an empty text", Effect.succeed("")],
      ["a space", Effect.succeed(" ")],
      ["null", Effect.succeed("null")],
      ["a text that is not base64", Effect.succeed("not base64!")],
      ["a text of the right form", Effect.succeed("A".repeat(1000))],
      [
        "an unsealed token",
        Effect.succeed(JSON.stringify({
          value: "forged",
          scope: "",
          acquiredAt: 0,
          expiresAt: 8640000000000000
        }))
      ],
      [
        "a sealed text without a token",
        Effect.flatMap(seal.make(purpose), ({ seal }) => seal("{\"value\":1}"))
      ]
    ] as const
  )("an entry that holds no sealed token is overwritten: %s", function*([, entry]) {
    const { overwrite, requests, start } = yield* stored()
    yield* overwrite(yield* entry)
    for (const { get } of [yield* start(), yield* start()]) {
      assert.strictEqual(valueOf(yield* get()), "invented-token-2")
    }
    assert.strictEqual(yield* requests, 2)
  })

  const others: Readonly<Record<string, MemberOptions>> = {
    "client": {
      credentials: credentialsOf("another-client-id", "invented-client-secret-0123456789")
    },
    "secret": { credentials: credentialsOf("invented-client-id", "another-invented-secret") },
    "endpoint": { authUrl: "https://auth.other.example/base" },
    "base path": { authUrl: "https://auth.shop.example/other" },
    "path": { path: "/oauth/token" },
    "scope": { request: TokenRequest.clientSecretPost({ scope: "orders" }) },
    "identity": {
      request: TokenRequest.make({ ...TokenRequest.specification, identity: "orders" })
    }
  }

  test("the same parameters have the same key by another method in another order", function*() {
    const parameters = { scope: "orders", audience: "shop" }
    const mine = yield* stored({ request: TokenRequest.clientSecretPost(parameters) })
    const { scope, ...others } = parameters
    const other = yield* stored({
      request: TokenRequest.clientSecretBasic({ ...others, scope })
    })
    assert.strictEqual(mine.key, other.key)
    assert.strictEqual(
      (yield* stored({ request: TokenRequest.specification })).key,
      (yield* stored()).key
    )
  })

  describe("the store key", () => {
    const keyOf = (token: string | Redacted.Redacted) =>
      Effect.map(
        stored({ request: TokenRequest.clientSecretPost({ token }) }),
        ({ key }) => key
      )
    const long = "x".repeat(10_000)

    test("a parameter can have any length", function*() {
      assert.match(yield* keyOf(long), /^store-api-token-v1:/)
      assert.notStrictEqual(yield* keyOf(`${long}y`), yield* keyOf(long))
    })

    test("a parameter has the same key if it is redacted", function*() {
      assert.strictEqual(yield* keyOf(Redacted.make(long)), yield* keyOf(long))
    })
  })

  const cases = Object.entries(others)

  test.each(cases)("an entry has another key for another %s", function*([, options]) {
    assert.notStrictEqual((yield* stored(options)).key, (yield* stored()).key)
  })

  test.each(cases)("an entry is a miss under the key of another %s", function*([, options]) {
    const mine = yield* stored()
    yield* mine.overwrite((yield* stored(options)).entry)
    assert.strictEqual(valueOf(yield* (yield* mine.start()).get()), "invented-token-2")
  })

  test("a sealed entry cannot be decrypted under another store key", function*() {
    // The library derives the AES key and the store key together, so this test calls Web Crypto itself.
    const { entry, key } = yield* stored()
    const bytes = new Uint8Array(Buffer.from(entry, "base64url"))
    const utf8 = (text: string) => new TextEncoder().encode(text)
    const secret = yield* Effect.promise(() =>
      crypto.subtle.importKey(
        "raw",
        utf8("invented-client-secret-0123456789"),
        "HKDF",
        false,
        [
          "deriveBits",
          "deriveKey"
        ]
      )
    )
    const derivation = (use: string) => ({
      name: "HKDF",
      hash: "SHA-256",
      salt: utf8(JSON.stringify(["store-api-token-v1", ...purpose.name])),
      info: utf8(use)
    })
    const name = yield* Effect.promise(() =>
      crypto.subtle.deriveBits(derivation("name"), secret, 128)
    )
    assert.strictEqual(key, `store-api-token-v1:${Buffer.from(name).toString("hex")}`)
    const cipher = { name: "AES-GCM", length: 256 }
    const aes = yield* Effect.promise(() =>
      crypto.subtle.deriveKey(derivation("entry"), secret, cipher, false, ["decrypt"])
    )
    const decrypt = (additionalData: string) =>
      Effect.promise(() => {
        const parameters = {
          name: "AES-GCM",
          iv: bytes.slice(0, 12),
          additionalData: utf8(additionalData)
        }
        return crypto.subtle.decrypt(parameters, aes, bytes.slice(12)).then(() => true, () =>
          false)
      })
    assert.isTrue(
      yield* decrypt(key),
      "the documented format can be decrypted without the library"
    )
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
const subtleWith = (
  name: (typeof functions)[number],
  broken: (...args: Array<never>) => unknown
) => {
  const { subtle } = globalThis.crypto
  return {
    ...Object.fromEntries(functions.map((each) => [each, subtle[each].bind(subtle)])),
    [name]: broken
  }
}

describe("SharedTokenSource, when Web Crypto is slow", () => {
  const virtual = VirtualClock.make()

  /** Encrypts or decrypts for 10 seconds. */
  const slow = (name: "encrypt" | "decrypt") => {
    const real: (...args: Array<never>) => Promise<unknown> = crypto.subtle[name].bind(
      crypto.subtle
    )
    return replaceCrypto({
      subtle: subtleWith(name, (...args: Array<never>) => {
        virtual.freeze(10_000)
        return real(...args)
      })
    })
  }

  it.live("a token that expires during its decryption is not returned", () =>
    Effect.gen(function*() {
      const { start } = yield* fleet()
      const { get } = yield* start({ leeway: 0 })
      yield* get()
      virtual.freeze(hour - 9999)
      yield* slow("decrypt")
      assert.strictEqual(valueOf(yield* get()), "token-2")
    }).pipe(Effect.scoped, Effect.withClock(virtual.clock)))

  it.live("a token is stored for the lifetime that is left after its encryption", () =>
    Effect.gen(function*() {
      const { puts, start } = yield* fleet()
      yield* slow("encrypt")
      yield* (yield* start({ lease: "1 minute" })).get()
      deepStrictEqual((yield* puts).map(([, , life]) => life), [hour - 10_000])
    }).pipe(Effect.scoped, Effect.withClock(virtual.clock)))
})

describe("SharedTokenSource, frozen while Web Crypto encrypts its token", () => {
  const virtual = VirtualClock.make()

  it.live("a process that freezes during the encryption does not overwrite the newer token of the process that got the lease", () =>
    Effect.gen(function*() {
      const { requests, start } = yield* fleet()
      const [frozen, other] = [yield* start(), yield* start()]
      const real: (...args: Array<never>) => Promise<unknown> = crypto.subtle.encrypt.bind(
        crypto.subtle
      )
      let isFirst = true
      yield* replaceCrypto({
        subtle: subtleWith("encrypt", async (...args: Array<never>) => {
          if (isFirst) {
            isFirst = false
            virtual.freeze(10 * minute)
            await Effect.runPromise(Effect.withClock(other.get(), virtual.clock))
          }
          return real(...args)
        })
      })
      assert.strictEqual(valueOf(yield* frozen.get()), "token-1")
      deepStrictEqual([valueOf(yield* other.get()), yield* requests], ["token-2", 2])
    }).pipe(Effect.scoped, Effect.withClock(virtual.clock)))
})

describe("SharedTokenSource, when Web Crypto fails", () => {
  const throwFault = () => {
    throw fault()
  }
  const faults: ReadonlyArray<
    readonly [what: string, broken: () => Parameters<typeof replaceCrypto>[0]]
  > = [
    ["crypto.subtle is missing", () => ({ subtle: undefined })],
    ["getRandomValues throws", () => ({ getRandomValues: throwFault })],
    ...functions.flatMap((name) =>
      [
        [`${name} fails`, () => ({ subtle: subtleWith(name, () => Promise.reject(fault())) })],
        [`${name} throws`, () => ({ subtle: subtleWith(name, throwFault) })]
      ] as const
    )
  ]

  /** Replaces a stored token, and returns the log lines too. */
  const replaceWith = (broken: (typeof faults)[number][1]) =>
    Effect.gen(function*() {
      const { requests, start } = yield* fleet()
      const cached = yield* (yield* start()).get()
      const lines: Array<string> = []
      const logger = Logger.make(({ annotations, cause, message, spans }) => {
        lines.push(
          renderings([message, cause, Cause.pretty(cause), [...annotations], [...spans]])
        )
      })
      const [outcome] = yield* replaceCrypto(broken()).pipe(
        Effect.zipRight(Effect.flatMap(start(), ({ get }) => timed(get(cached)))),
        Effect.zipLeft(Effect.logTrace("control", Cause.die(new Error("a logged cause")))),
        Effect.scoped,
        Effect.provide(Logger.replace(Logger.defaultLogger, logger)),
        Logger.withMinimumLogLevel(LogLevel.All),
        Effect.withUnhandledErrorLogLevel(Option.some(LogLevel.Debug))
      )
      return { outcome, requests: yield* requests, log: lines.join() }
    })

  test.each(faults)("a token is acquired with one request when %s", function*([, broken]) {
    const { outcome, requests } = yield* replaceWith(broken)
    deepStrictEqual([outcome, requests], ["token-2", 2])
  })

  test.each(faults)("nothing sensitive is logged when %s", function*([, broken]) {
    const { log } = yield* replaceWith(broken)
    assert.include(log, "a logged cause", "control")
    assert.notInclude(log, "invented")
  })

  test.each(faults)(
    "a warning says whether no key can be derived when %s",
    function*([what, broken]) {
      const { log } = yield* replaceWith(broken)
      const warning = "Web Crypto could not derive a key; this access token is not shared"
      assert.strictEqual(log.includes(warning), /subtle|importKey|derive/.test(what))
    }
  )
})
