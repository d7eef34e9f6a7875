import { join } from "node:path"
import { FileSystem } from "@effect/platform"
import { NodeContext } from "@effect/platform-node"
import { assert, describe, it } from "@effect/vitest"
import { deepStrictEqual } from "@effect/vitest/utils"
import { ClientCredentials } from "@store-api/core"
import { Emulator, Fault } from "@store-api/emulator"
import { Clock, Effect, Option, Redacted } from "effect"
import * as tokens from "../src/tokens.js"

/** A token of 400 seconds is too old for use when 20 are left. */
const started = Effect.gen(function*() {
  const fs = yield* FileSystem.FileSystem
  const emulator = yield* Emulator.make({ tokenLife: "400 seconds" })
  const settings = {
    authUrl: emulator.url,
    credentials: yield* ClientCredentials.make(Emulator.demoClient),
    folder: Option.some(join(yield* fs.makeTempDirectoryScoped(), "tokens")),
    allowInsecure: false,
    profile: Option.none(),
    origins: []
  }
  /** So many seconds later. */
  const later = (seconds: number, refreshed = false) =>
    tokens.get(settings, { refreshed, stored: true }).pipe(
      Effect.map(({ value }) => Redacted.value(value)),
      Effect.withClock(shifted(seconds * 1000))
    )
  /** The same of a run in which a provider asks. */
  const laterInACall = (seconds: number) =>
    Effect.flatMap(tokens.lastingSource(settings, true), ({ acquire }) => acquire(Option.none())).pipe(
      Effect.map(({ value }) => Redacted.value(value)),
      Effect.withClock(shifted(seconds * 1000))
    )
  return { emulator, later, laterInACall }
}).pipe(Effect.provide(NodeContext.layer))

const shifted = (millis: number): Clock.Clock => {
  const clock = Clock.make()
  return Object.assign(Object.create(clock) as Clock.Clock, {
    unsafeCurrentTimeMillis: () => clock.unsafeCurrentTimeMillis() + millis,
    currentTimeMillis: Effect.map(clock.currentTimeMillis, (now) => now + millis)
  })
}

describe("a stored token", () => {
  it.scopedLive("serves until it is about to die; then another is had, in good time", () =>
    Effect.gen(function*() {
      const { emulator, later } = yield* started
      const first = yield* later(0)
      assert.strictEqual(yield* later(350), first)
      assert.lengthOf(yield* emulator.tokens, 1)
      assert.notStrictEqual(yield* later(385), first)
      assert.lengthOf(yield* emulator.tokens, 2)
    }))

  it.scopedLive("is as good for a call, whose body may be sent only once", () =>
    Effect.gen(function*() {
      const { emulator, later, laterInACall } = yield* started
      const first = yield* later(0)
      assert.strictEqual(yield* laterInACall(350), first)
      assert.notStrictEqual(yield* laterInACall(385), first)
      assert.lengthOf(yield* emulator.tokens, 2)
    }))

  it.scopedLive("is served while it lives when nobody answers, after half of what was left of it", () =>
    Effect.gen(function*() {
      const { emulator, later } = yield* started
      const first = yield* later(0)
      yield* emulator.fail(Fault.hang({ times: Infinity }))
      assert.strictEqual(yield* later(397), first)
      assert.lengthOf(yield* emulator.requests, 2)
    }))

  it.scopedLive("is served to its end when there is no other, and not beyond", () =>
    Effect.gen(function*() {
      const { emulator, later } = yield* started
      const first = yield* later(0)
      yield* emulator.fail(Fault.status(403, { times: Infinity }))
      // Each of them asks for another, and leaves it there for the next.
      for (const seconds of [385, 390]) assert.strictEqual(yield* later(seconds), first)
      assert.lengthOf(yield* emulator.requests, 3)
      deepStrictEqual((yield* Effect.flip(later(401))).code, 4)
    }))

  it.scopedLive("is not served when another was asked for, and there is none; it stays for the next run", () =>
    Effect.gen(function*() {
      const { emulator, later } = yield* started
      const first = yield* later(0)
      yield* emulator.fail(Fault.status(403))
      deepStrictEqual((yield* Effect.flip(later(1, true))).code, 4)
      assert.strictEqual(yield* later(2), first)
      assert.lengthOf(yield* emulator.requests, 2)
      const second = yield* later(3, true)
      assert.notStrictEqual(second, first)
      assert.strictEqual(yield* later(4), second)
    }))
})
