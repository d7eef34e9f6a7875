import * as Http from "node:http"
import { assert } from "@effect/vitest"
import { PromiseStoreAuth } from "@store-api/platform-node"
import { at, listen, onThisMachine, store as respond } from "@store-api/testing/loopback"
import { test } from "@store-api/testing/test"
import { Effect } from "effect"
import { vi } from "vitest"

onThisMachine()

/** The runtimes suite runs on Deno itself. Here, only the global that tells it apart is defined. */
const pretendDeno = Effect.acquireRelease(
  Effect.sync(() => {
    Reflect.set(globalThis, "Deno", {})
    return vi.spyOn(globalThis, "fetch")
  }),
  (spy) =>
    Effect.sync(() => {
      Reflect.deleteProperty(globalThis, "Deno")
      spy.mockRestore()
    })
)

test.live("on Deno, whose fetch ignores the options of http, undici sends all requests", function*() {
  const spy = yield* pretendDeno
  const { url } = yield* listen(Http.createServer(respond))
  const { dispose, fetch } = PromiseStoreAuth.make({ ...at(url), http: { connections: 1 } })
  const response = yield* Effect.promise(() => fetch("/orders"))
  assert.strictEqual(response.status, 200)
  assert.strictEqual(spy.mock.calls.length, 0)
  yield* Effect.promise(() => globalThis.fetch(url))
  assert.strictEqual(spy.mock.calls.length, 1)
  yield* Effect.promise(dispose)
})
