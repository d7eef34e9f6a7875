/** The fake timers of Vitest, with which tests move the clock. */
import { assert } from "@effect/vitest"
import { deepStrictEqual } from "@effect/vitest/utils"
import { PromiseStoreAuth } from "@store-api/platform-node"
import { Redacted } from "effect"
import { afterEach, beforeEach, it, vi } from "vitest"

beforeEach(() => {
  vi.useFakeTimers()
})
afterEach(() => {
  vi.useRealTimers()
})

it("a token expires when fake timers advance the clock", async () => {
  let tokens = 0
  await using store = PromiseStoreAuth.make({
    authUrl: "https://auth.store.example",
    apiUrl: "https://api.store.example",
    clientId: "demo-client",
    clientSecret: Redacted.make("an invented secret"),
    fetch: async (input) =>
      new Request(input).url.endsWith("/accesstoken")
        ? Response.json({ access_token: `token-${++tokens}`, token_type: "Bearer" })
        : Response.json(["a chair"])
  })
  const list = async () => (await store.fetch("/orders")).json() as Promise<unknown>
  deepStrictEqual(await list(), ["a chair"])
  await list()
  assert.strictEqual(tokens, 1)
  await vi.advanceTimersByTimeAsync(61 * 60_000)
  deepStrictEqual(await list(), ["a chair"])
  assert.strictEqual(tokens, 2)
})
