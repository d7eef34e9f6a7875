/** Processes that share tokens through the store in a folder, over several lifetimes. */
import { assert, describe } from "@effect/vitest"
import { deepStrictEqual } from "@effect/vitest/utils"
import { Emulator } from "@store-api/emulator"
import { bundle, start } from "@store-api/testing/childProcess"
import { newFolder } from "@store-api/testing/loopback"
import { test } from "@store-api/testing/test"
import { Effect } from "effect"
import { problemsOf, requestsTo, tokenCount } from "./support/emulator.js"
import { pemOf } from "./support/keys.js"

/** Milliseconds. */
const life = 3000
const duration = 8000

/** The number of tokens that two processes with these keys need. */
const tokensOf = (pems: ReadonlyArray<string | undefined>) =>
  Effect.gen(function*() {
    const emulator = yield* Emulator.make({ dpop: "nonce", tokenLife: life })
    const file = yield* bundle(new URL("./child/worker.ts", import.meta.url))
    const folder = yield* newFolder("dpop")
    const urls = { authUrl: emulator.url, apiUrl: emulator.url }
    const statuses = yield* Effect.forEach(
      pems,
      (pem) =>
        Effect.flatMap(
          start(file),
          ({ ask }) => ask({ ...urls, folder, duration, pem })
        ),
      { concurrency: "unbounded" }
    )
    deepStrictEqual(new Set(statuses.flat()), new Set([200]))
    // On a busy machine, a token may expire while a request is on its way.
    const expired = "The access token expired"
    const problems = yield* problemsOf(emulator)
    deepStrictEqual(problems.filter((problem) => problem !== expired), [])
    assert.isAbove((yield* requestsTo("api", emulator)).length, 40, "control")
    return yield* tokenCount(emulator)
  })

describe("two processes over one store, for three lifetimes", () => {
  test.live("share each token if they have the same key", function*() {
    const pem = pemOf()
    assert.isAtMost(yield* tokensOf([pem, pem]), 5)
  })

  test.live.each<readonly [string, () => ReadonlyArray<string | undefined>]>([
    ["their keys differ", () => [pemOf(), pemOf()]],
    ["they have no key", () => [undefined, undefined]]
  ])("share no token if %s", function*([, pems]) {
    assert.isAtLeast(yield* tokensOf(pems()), 6)
  })
})
