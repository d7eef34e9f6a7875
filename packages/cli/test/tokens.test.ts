import { join } from "node:path"
import { FileSystem } from "@effect/platform"
import { NodeContext } from "@effect/platform-node"
import { assert, describe, it } from "@effect/vitest"
import { deepStrictEqual } from "@effect/vitest/utils"
import { ClientCredentials } from "@store-api/core"
import { Emulator, Fault } from "@store-api/emulator"
import { Clock, Effect, Redacted } from "effect"
import { fromLibrary } from "../src/Fault.js"
import { make } from "../src/provider.js"

/** A token of 400 seconds is renewed when less than 20 are left. */
const started = Effect.gen(function*() {
  const fs = yield* FileSystem.FileSystem
  const emulator = yield* Emulator.make({ tokenLife: "400 seconds" })
  const settings = {
    authUrl: emulator.url,
    apiUrl: undefined,
    credentials: yield* ClientCredentials.make(Emulator.demoClient),
    cacheDir: join(yield* fs.makeTempDirectoryScoped(), "tokens"),
    allowInsecure: false,
    verbose: false,
    profile: undefined,
    nameOf: String,
    explain: fromLibrary({}),
    origins: ""
  }
  /** A run that many seconds later. */
  const later = (seconds: number, forced = false) =>
    make(settings, { "force-refresh": forced, "no-cache": false }).pipe(
      Effect.flatMap(({ provider }) => provider.get),
      Effect.scoped,
      Effect.map(({ value }) => Redacted.value(value)),
      Effect.withClock(shifted(seconds * 1000))
    )
  return { emulator, later }
}).pipe(Effect.provide(NodeContext.layer))

const shifted = (millis: number): Clock.Clock => {
  const clock = Clock.make()
  return Object.assign(Object.create(clock) as Clock.Clock, {
    unsafeCurrentTimeMillis: () => clock.unsafeCurrentTimeMillis() + millis,
    currentTimeMillis: Effect.map(clock.currentTimeMillis, (now) => now + millis)
  })
}

describe("a cached token", () => {
  it.scopedLive("is used until little of its lifetime is left, and is then replaced", () =>
    Effect.gen(function*() {
      const { emulator, later } = yield* started
      const first = yield* later(0)
      assert.strictEqual(yield* later(350), first)
      assert.lengthOf(yield* emulator.tokens, 1)
      assert.notStrictEqual(yield* later(385), first)
      assert.lengthOf(yield* emulator.tokens, 2)
    }))

  it.scopedLive("is used while it is valid if the endpoint is silent, after half of its remaining lifetime", () =>
    Effect.gen(function*() {
      const { emulator, later } = yield* started
      const first = yield* later(0)
      yield* emulator.fail(Fault.hang({ times: Infinity }))
      assert.strictEqual(yield* later(397), first)
      assert.lengthOf(yield* emulator.requests, 2)
    }))

  it.scopedLive("is used until it expires if there is no other, and not longer", () =>
    Effect.gen(function*() {
      const { emulator, later } = yield* started
      const first = yield* later(0)
      yield* emulator.fail(Fault.status(403, { times: Infinity }))
      // Each of them asks for another, and leaves the cached one for the next.
      for (const seconds of [385, 390]) assert.strictEqual(yield* later(seconds), first)
      assert.lengthOf(yield* emulator.requests, 3)
      deepStrictEqual((yield* Effect.flip(later(401)))._tag, "TokenRefusedError")
    }))

  it.scopedLive("is not used by a forced refresh that fails, and stays for the next run", () =>
    Effect.gen(function*() {
      const { emulator, later } = yield* started
      const first = yield* later(0)
      yield* emulator.fail(Fault.status(403))
      deepStrictEqual((yield* Effect.flip(later(1, true)))._tag, "TokenRefusedError")
      assert.strictEqual(yield* later(2), first)
      assert.lengthOf(yield* emulator.requests, 2)
      const second = yield* later(3, true)
      assert.notStrictEqual(second, first)
      assert.strictEqual(yield* later(4), second)
    }))
})
