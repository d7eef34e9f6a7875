/** Processes that share tokens through the store in a folder, over several lifetimes. */
import { assert, describe } from "@effect/vitest"
import { deepStrictEqual } from "@effect/vitest/utils"
import { bundle, start as startProcess } from "@store-api/testing/childProcess"
import { newFolder } from "@store-api/testing/loopback"
import { test } from "@store-api/testing/test"
import { Effect } from "effect"
import { pemOf } from "./support/keys.js"
import { start } from "./support/strictServers.js"

/** Seconds. */
const life = 3
const duration = 8000

/** The number of tokens that two processes with these keys need. */
const tokensOf = (pems: ReadonlyArray<string | undefined>) =>
  Effect.gen(function*() {
    const servers = yield* start
    const { api, endpoint } = servers
    endpoint.life = life
    endpoint.mode = "stable"
    api.mode = "stable"
    const file = yield* bundle(new URL("./child/worker.ts", import.meta.url))
    const folder = yield* newFolder("dpop")
    const urls = { authUrl: endpoint.url, apiUrl: api.url }
    const statuses = yield* Effect.forEach(
      pems,
      (pem) =>
        Effect.flatMap(
          startProcess(file),
          ({ ask }) => ask({ ...urls, folder, duration, pem })
        ),
      { concurrency: "unbounded" }
    )
    deepStrictEqual(new Set(statuses.flat()), new Set([200]))
    deepStrictEqual([endpoint.problems, api.problems], [[], []])
    deepStrictEqual(api.otherKeys, [])
    assert.isAbove(api.responses.length, 40, "control")
    return endpoint.issued.size
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
