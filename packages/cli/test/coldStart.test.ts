import { readFileSync } from "node:fs"
import { join } from "node:path"
import { assert, beforeAll, describe, it } from "@effect/vitest"
import { deepStrictEqual } from "@effect/vitest/utils"
import { Emulator } from "@store-api/emulator"
import { Effect } from "effect"
import { build, processTimeout, run, type User, userOf } from "./support/cli.js"

beforeAll(build, 120_000)

const hooks = new URL("./support/listModules.mjs", import.meta.url).href

/** The modules that a run loads. */
const modulesOf = (user: User, args: ReadonlyArray<string>) =>
  Effect.gen(function*() {
    const list = join(user.cwd, "modules")
    const watched = { ...user, env: { ...user.env, LIST_OF_MODULES: list } }
    const { code } = yield* run(watched, args, { shows: true, node: ["--import", hooks] })
    assert.strictEqual(code, 0)
    return readFileSync(list, "utf8")
  })

/** What takes long to load, and helps only who asks the endpoint or reads the help. */
const heavy =
  /\/undici\/|\/@effect\/cli\/|\/@effect\/printer|\/TokenEndpoint\.js|\/NodeHttpClient\.js|\/HttpClient\.js/g

describe("store-api token with a stored token", () => {
  it.scopedLive("loads neither an HTTP client nor the help", () =>
    Effect.gen(function*() {
      const user = yield* userOf(yield* Emulator.make())
      const miss = yield* modulesOf(user, ["token"])
      const hit = yield* modulesOf(user, ["token", "--json"])
      const help = yield* modulesOf(user, ["token", "--help"])
      const found = (list: string) => [...new Set(list.match(heavy))].map((name) => name.replaceAll("/", "")).sort()
      deepStrictEqual(found(hit), [])
      assert.include(hit, "/FileTokenStore.js")
      assert.includeMembers(found(miss), ["TokenEndpoint.js", "undici"])
      assert.includeMembers(found(help), ["@effectcli"])
    }), processTimeout)
})
