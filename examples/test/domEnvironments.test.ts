/** Tests of applications run with globals of jsdom or happy-dom, whose `AbortSignal` is not Node's. */
import { assert, describe, it } from "@effect/vitest"
import { deepStrictEqual } from "@effect/vitest/utils"
import { PromiseStoreAuth } from "@store-api/platform-node"
import { at, authorized, startStore } from "@store-api/testing/loopback"
import { Effect } from "effect"
import { Window } from "happy-dom"

const names = ["AbortController", "AbortSignal", "Event", "EventTarget"] as const

/** Replaces those globals that the environment of Vitest replaces for both. */
const withGlobals = Effect.acquireRelease(
  Effect.sync(() => {
    const original = Object.fromEntries(names.map((name) => [name, globalThis[name]]))
    const window = new Window()
    for (const name of names) Reflect.set(globalThis, name, window[name])
    return original
  }),
  (original) => Effect.sync(() => Object.assign(globalThis, original))
)

describe("with the AbortSignal of happy-dom", () => {
  it.scopedLive("PromiseStoreAuth works, and can be disposed of", () =>
    Effect.gen(function*() {
      const { url } = yield* startStore
      const Native = AbortSignal
      yield* withGlobals
      assert.notStrictEqual(AbortSignal, Native)
      for (const way of [{ http: { proxy: "none" as const } }, { fetch: globalThis.fetch }]) {
        const store = PromiseStoreAuth.make({ ...at(url), ...way })
        const bodies = yield* Effect.promise(async () => {
          const responses = [
            await store.fetch("/orders"),
            await store.fetch("/orders", { method: "POST", body: "{}" })
          ]
          return Promise.all(responses.map((response) => response.json()))
        })
        deepStrictEqual(bodies, [authorized, authorized])
        yield* Effect.promise(store.dispose)
      }
    }))
})
