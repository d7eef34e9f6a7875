import { join } from "node:path"
import { PassThrough } from "node:stream"
import { FileSystem } from "@effect/platform"
import { NodeContext } from "@effect/platform-node"
import { assert, describe, it } from "@effect/vitest"
import { deepStrictEqual } from "@effect/vitest/utils"
import { ClientCredentials } from "@store-api/core"
import { Emulator, Fault } from "@store-api/emulator"
import { FileTokenStore } from "@store-api/platform-node"
import { Effect, Fiber, Option, Redacted, TestClock, TestServices } from "effect"
import { test } from "../../core/test/support/test.js"
import { fromLibrary } from "../src/Fault.js"
import { Host } from "../src/Host.js"
import { make } from "../src/provider.js"
import { frozenAt } from "./support/cli.js"

/** A token of 400 seconds is renewed when less than 20 are left. */
const started = Effect.gen(function*() {
  const fs = yield* FileSystem.FileSystem
  const emulator = yield* Emulator.make({ tokenLife: "400 seconds" })
  const cacheDir = join(yield* fs.makeTempDirectoryScoped(), "tokens")
  const settings = {
    authUrl: emulator.url,
    apiUrl: undefined,
    credentials: yield* ClientCredentials.make(Emulator.demoClient),
    cacheDir,
    store: yield* FileTokenStore.make({ folder: cacheDir }),
    allowInsecure: false,
    verbose: false,
    profile: undefined,
    nameOf: String,
    explain: fromLibrary({}),
    origins: ""
  }
  const now = Date.now()
  const silent = new PassThrough().resume()
  const run = (store = settings.store, forced = false) =>
    make({ ...settings, store }, { "force-refresh": forced, "no-cache": false }).pipe(
      Effect.flatMap(({ provider }) => provider.get),
      Effect.scoped,
      Effect.map(({ value }) => Redacted.value(value)),
      Effect.provideServiceEffect(
        Host,
        Effect.map(Host, (host) => ({ ...host, process: { env: {}, stdin: silent, stdout: silent, stderr: silent } }))
      )
    )
  /** A run that many seconds later. */
  const later = (seconds: number, forced = false) => frozenAt(now + seconds * 1000)(run(undefined, forced))
  const entry = Effect.map(
    fs.readDirectory(cacheDir, { recursive: true }),
    (names) => join(cacheDir, names.find((name) => name.endsWith(".entry")) ?? "")
  )
  return { emulator, entry, later, run }
}).pipe(Effect.provide(NodeContext.layer))

describe("a cached token", () => {
  test.live("is used until little of its lifetime is left, and is then replaced", function*() {
    const { emulator, later } = yield* started
    const first = yield* later(0)
    assert.strictEqual(yield* later(350), first)
    assert.lengthOf(yield* emulator.tokens, 1)
    assert.notStrictEqual(yield* later(385), first)
    assert.lengthOf(yield* emulator.tokens, 2)
  })

  test.live("is used while it is valid if the endpoint is silent, after half of its remaining lifetime", function*() {
    const { emulator, later } = yield* started
    const first = yield* later(0)
    yield* emulator.fail(Fault.hang({ times: Infinity }))
    assert.strictEqual(yield* later(397), first)
    assert.lengthOf(yield* emulator.requests, 2)
  })

  test.live("is used until it expires if there is no other, and not longer", function*() {
    const { emulator, later } = yield* started
    const first = yield* later(0)
    yield* emulator.fail(Fault.status(403, { times: Infinity }))
    // Each of them asks for another, and leaves the cached one for the next.
    for (const seconds of [385, 390]) assert.strictEqual(yield* later(seconds), first)
    assert.lengthOf(yield* emulator.requests, 3)
    deepStrictEqual((yield* Effect.flip(later(401)))._tag, "TokenRefusedError")
  })

  test.live("is not used by a forced refresh that fails, and stays for the next run", function*() {
    const { emulator, later } = yield* started
    const first = yield* later(0)
    yield* emulator.fail(Fault.status(403))
    deepStrictEqual((yield* Effect.flip(later(1, true)))._tag, "TokenRefusedError")
    assert.strictEqual(yield* later(2), first)
    assert.lengthOf(yield* emulator.requests, 2)
    const second = yield* later(3, true)
    assert.notStrictEqual(second, first)
    assert.strictEqual(yield* later(4), second)
  })
})

describe("a cooldown between runs", () => {
  /** A run at each of these seconds fails, and the number of token requests so far. */
  const failing = (runs: ReadonlyArray<readonly [seconds: number, requests: number]>) =>
    Effect.gen(function*() {
      const { emulator, later } = yield* started
      return {
        emulator,
        later,
        fails: Effect.forEach(runs, ([seconds, requests]) =>
          Effect.gen(function*() {
            yield* Effect.flip(later(seconds))
            deepStrictEqual([seconds, (yield* emulator.requests).length], [seconds, requests])
          }))
      }
    })

  test.live("doubles up to 5 seconds after failures other than refusals, and ends with a success", function*() {
    const { emulator, fails, later } = yield* failing([
      ...[[0, 1], [0.5, 1], [1.2, 2], [2.9, 2], [3.4, 3], [7.1, 3], [7.6, 4], [12.3, 4], [12.8, 5]] as const
    ])
    yield* emulator.fail(Fault.body("{}", { times: Infinity }))
    yield* fails
    yield* emulator.clearFaults
    yield* later(18)
  })

  test.live("follows an outage, with the attempts of one run", function*() {
    const { emulator, later } = yield* started
    yield* emulator.fail(Fault.status(503, { times: Infinity }))
    deepStrictEqual((yield* Effect.flip(later(0)))._tag, "TokenRefusedError")
    const attempts = (yield* emulator.requests).length
    const { message } = yield* Effect.flip(later(0))
    assert.match(message, /\(status 503\): try again later\. Retry after \d{4}-.*Z\.$/)
    assert.lengthOf(yield* emulator.requests, attempts)
  })

  test.live("doubles up to a minute after refusals, and is at most an hour by a Retry-After", function*() {
    const { emulator, fails } = yield* failing([[0, 1], [1.2, 2], [3.4, 3], [7.6, 4], [13, 4], [15.8, 5], [31, 5]])
    yield* emulator.fail(Fault.status(401, { times: Infinity }))
    yield* fails
    const long = yield* failing([[0, 1], [3590, 1], [3610, 2]])
    yield* long.emulator.fail(Fault.status(429, { headers: { "Retry-After": "999999" }, times: Infinity }))
    yield* long.fails
  })

  it.scopedLive("lasts at most an hour if a clock that jumped left a later end", () =>
    Effect.gen(function*() {
      const { emulator, entry, later } = yield* started
      yield* emulator.fail(Fault.status(429, { headers: { "Retry-After": "900" }, times: Infinity }))
      yield* Effect.flip(later(0))
      const fs = yield* FileSystem.FileSystem
      const path = yield* entry
      const text = yield* fs.readFileString(path)
      const later1000Years = text.replace(/20(?=\d\d-\d\d-\d\dT)/g, "30")
      assert.notStrictEqual(later1000Years, text)
      yield* fs.writeFileString(path, later1000Years.replace(/"until":\d+/, "\"until\":9e15"))
      yield* Effect.flip(later(3590))
      assert.lengthOf(yield* emulator.requests, 1)
      yield* Effect.flip(later(3610))
      assert.lengthOf(yield* emulator.requests, 2)
    }).pipe(Effect.provide(NodeContext.layer)))

  it.scopedLive("is ignored if its file was damaged or holds other values", () =>
    Effect.gen(function*() {
      const { emulator, entry, later } = yield* started
      yield* emulator.fail(Fault.status(401, { times: Infinity }))
      yield* Effect.flip(later(0))
      const fs = yield* FileSystem.FileSystem
      const path = yield* entry
      const file = yield* fs.readFileString(path)
      const content = JSON.parse(file) as { readonly value: string }
      const holding = (value: string) => JSON.stringify({ ...content, value })
      /** The number of token requests of a run that finds this file. */
      const requestsWith = (text: string) =>
        Effect.gen(function*() {
          yield* fs.writeFileString(path, text)
          yield* emulator.clearRequests
          yield* Effect.flip(later(0.5))
          return [text, (yield* emulator.requests).length]
        })
      deepStrictEqual(yield* requestsWith(holding(content.value)), [file, 0])
      const pause = JSON.parse(content.value) as Readonly<Record<string, unknown>>
      const values = ["", "no JSON", "[]", "{}", "null"]
      const numbers = [-1, -1e300, 8e15, 1e300, null, "1"].flatMap((odd) => [{ from: odd }, { pause: odd }])
      const pauses = [...numbers, { pause: 0 }, { error: {} }, { error: "no error" }, { error: { _tag: "Fault" } }]
      const odd = [...values, ...pauses.map((other) => JSON.stringify({ ...pause, ...other }))].map(holding)
      for (const text of [...values, ...odd]) deepStrictEqual(yield* requestsWith(text), [text, 1])
    }).pipe(Effect.provide(NodeContext.layer)))

  test("is ignored if the store does not respond", function*() {
    yield* TestClock.setTime(Date.now())
    const { emulator, run } = yield* started
    const hangs = () => Effect.uninterruptible(Effect.never)
    const running = yield* Effect.fork(run({ get: hangs, put: hangs, remove: hangs, lease: hangs }))
    while (Option.isNone(yield* Fiber.poll(running))) {
      yield* TestClock.adjust("1 second")
      yield* TestServices.provideLive(Effect.sleep("10 millis"))
    }
    assert.strictEqual(
      yield* Fiber.join(running),
      Redacted.value((yield* emulator.tokens)[0]?.value ?? Redacted.make(""))
    )
  })

  test.live("ends when the clock is set back", function*() {
    const { emulator, fails } = yield* failing([[7200, 1], [7201, 1], [0, 2]])
    yield* emulator.fail(Fault.status(429, { headers: { "Retry-After": "900" }, times: Infinity }))
    yield* fails
  })

  test.live("follows a renewal that fails or brings the same token, while the cached token is used", function*() {
    for (const isRepeated of [false, true]) {
      const { emulator, later } = yield* started
      const first = yield* later(0)
      const times = { times: Infinity }
      yield* emulator.fail(
        isRepeated ? Fault.fields({ access_token: first, expires_in: 15 }, times) : Fault.body("{}", times)
      )
      for (const [seconds, requests] of [[385, 2], [385.5, 2], [386.5, 3], [387.5, 3], [399, 4]] as const) {
        assert.strictEqual(yield* later(seconds), first)
        deepStrictEqual([seconds, (yield* emulator.requests).length], [seconds, requests])
      }
    }
  })
})
