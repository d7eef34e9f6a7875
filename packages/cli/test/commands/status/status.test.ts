/** `store-api status`. */
import { describe } from "@effect/vitest"
import { deepStrictEqual } from "@effect/vitest/utils"
import { test } from "@store-api/testing/test"
import { expectSuccess, run, started } from "../../support/cli.js"

const parsed = (text: string) => JSON.parse(text) as Readonly<Record<string, unknown>>

describe("store-api status", () => {
  test.live("--json prints an object, also without a token", function*() {
    const { user } = yield* started
    yield* expectSuccess(user, "token")
    const json = parsed(yield* expectSuccess(user, "status --json"))
    deepStrictEqual(Object.keys(json), [
      "folder",
      "cached",
      "acquired_at",
      "expires_at",
      "expires_in"
    ])
    deepStrictEqual(json["cached"], true)
    const another = yield* run(user, ["status", "--json", "--client-id", "another"])
    deepStrictEqual([another.code, parsed(another.stdout)["cached"]], [5, false])
  })
})
