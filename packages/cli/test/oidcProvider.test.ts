import { assert, beforeAll, describe, it } from "@effect/vitest"
import { deepStrictEqual } from "@effect/vitest/utils"
import { Effect } from "effect"
import { build, processTimeout, run } from "./support/cli.js"
import { lastTokenOf, servers, userOfServer } from "./support/servers.js"

beforeAll(build, 120_000)

describe("store-api against oidc-provider", { timeout: processTimeout }, () => {
  it.scopedLive("has a token, keeps it, calls with it, and finds nothing wrong", () =>
    Effect.gen(function*() {
      const server = yield* servers["oidc-provider"]
      const user = yield* userOfServer(server)
      const token = yield* run(user, ["token"], { shows: true })
      deepStrictEqual(token, { code: 0, stderr: "", stdout: `${yield* lastTokenOf(server)}\n` })
      assert.match(token.stdout, /^[\w-]{20,}\n$/)
      deepStrictEqual(yield* run(user, ["call", "GET", "/orders", "--fail"]), {
        code: 0,
        stdout: server.orders,
        stderr: ""
      })
      assert.match((yield* run(user, ["status"])).stdout, /good for another \d+ min/)
      assert.strictEqual(yield* server.tokenRequests, 1)
      const check = yield* run(user, ["check", "/orders"])
      deepStrictEqual([check.code, check.stdout.includes("FAIL")], [0, false])
    }))
})
