import { deepStrictEqual } from "@effect/vitest/utils"
import { AccessToken } from "@store-api/core"
import { test } from "@store-api/testing/test"
import { Effect, Redacted } from "effect"
import { fleet, fullToken } from "../support/fleet.js"

test("processes share the further fields of a token", function*() {
  const fields = { instance_url: "https://shop-7.example", limits: [10, { calls: null }] }
  const { requests, start } = yield* fleet({
    answer: () =>
      Effect.map(
        fullToken("shared"),
        (token) => new AccessToken.AccessToken({ ...token, extra: Redacted.make(fields) })
      )
  })
  const first = yield* start()
  yield* first.get()
  const second = yield* start()
  const { extra } = yield* second.get()
  deepStrictEqual([Redacted.value(extra), yield* requests], [fields, 1])
})
