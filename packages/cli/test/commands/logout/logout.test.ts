/** `store-api logout`. */
import { mkdirSync, symlinkSync } from "node:fs"
import { join } from "node:path"
import { assert } from "@effect/vitest"
import { deepStrictEqual } from "@effect/vitest/utils"
import { test } from "@store-api/testing/test"
import {
  expectRefusal,
  expectSuccess,
  run,
  started,
  tokenRequests
} from "../../support/cli.js"

test.live("logout removes the cached token", function*() {
  const { user } = yield* started
  const first = yield* expectSuccess(user, "token")
  yield* expectRefusal(user, "logout", 0, "The cached token is removed.")
  assert.notStrictEqual(yield* expectSuccess(user, "token"), first)
})

test.live("logout leaves the tokens of other clients in the cache", function*() {
  const { user } = yield* started
  const first = yield* expectSuccess(user, "token")
  deepStrictEqual((yield* run(user, ["logout", "--client-id", "another"])).code, 0)
  assert.strictEqual(yield* expectSuccess(user, "token"), first)
})

test.live("logout sends no request", function*() {
  const { emulator, user } = yield* started
  yield* expectSuccess(user, "token")
  yield* run(user, ["logout"])
  assert.strictEqual(yield* tokenRequests(emulator), 1)
})

test.live("logout fails with code 3 if the token cannot be removed", function*() {
  const { user } = yield* started
  // The system renames no file to a name beyond the longest path. Root, too, cannot remove this one.
  const longest = process.platform === "darwin" ? 1024 : 4096
  const names = "n".repeat(longest).match(/.{1,100}/g) ?? []
  const folder = join(user.cwd, ...names).slice(0, longest - 54).replace(/\/$/, "n")
  mkdirSync(folder, { recursive: true, mode: 0o700 })
  const short = join(user.cwd, "short")
  symlinkSync(folder, short)
  yield* expectSuccess(user, ["token", "--cache-dir", short])
  const sentence = `Cannot remove the token from ${folder}. Check that you may write to it.`
  yield* expectRefusal(user, ["logout", "--cache-dir", folder], 3, sentence)
  deepStrictEqual((yield* run(user, ["logout", "--cache-dir", short])).code, 0)
})
