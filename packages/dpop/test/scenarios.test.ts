/** The scenarios of the emulator that need a key, with a client that has one: for proofs, assertions or both. */
import { NodeHttpClient } from "@effect/platform-node"
import { assert, describe } from "@effect/vitest"
import { deepStrictEqual } from "@effect/vitest/utils"
import { Scenario } from "@store-api/emulator"
import { needsKey } from "@store-api/testing/scenarios"
import { test } from "@store-api/testing/test"
import { Effect } from "effect"
import { setUpScenario } from "./support/scenario.js"

const names = Scenario.names.filter(needsKey)

/** The outcome of an acquisition, in the form of the table. */
const acquire = (name: Scenario.Name) =>
  Effect.gen(function*() {
    const { emulator, store } = yield* setUpScenario(name, NodeHttpClient.layerUndici)
    const failure = yield* store.provider.get.pipe(
      Effect.as({}),
      Effect.catchAll((error) =>
        Effect.succeed({
          error: error._tag,
          ...("reason" in error && { reason: error.reason })
        })
      )
    )
    return { ...failure, requests: (yield* emulator.requests).length }
  })

/** The outcome of calls of the API with a token that the client already has. */
const call = (name: Scenario.Name, { calls = 1 }: Scenario.ApiOutcome) =>
  Effect.gen(function*() {
    const { emulator, store } = yield* setUpScenario(name, NodeHttpClient.layerUndici)
    yield* store.provider.get
    yield* emulator.clearRequests
    const statuses = yield* Effect.map(store.client.get("/orders"), ({ status }) => status)
      .pipe(
        Effect.replicateEffect(calls, { concurrency: "unbounded" })
      )
    const requests = (yield* emulator.requests).filter(({ kind }) => kind === "api").length
    const newTokens = (yield* emulator.requests).length - requests
    return { statuses, requests, newTokens }
  })

describe("a client with a key", () => {
  for (const name of names) {
    const { outcome }: Scenario.Scenario = Scenario.all[name]
    test.live(`${name} has its outcome`, function*() {
      if (!("newTokens" in outcome)) {
        deepStrictEqual<unknown>(yield* acquire(name), outcome)
        return
      }
      const { newTokens, requests, statuses } = yield* call(name, outcome)
      deepStrictEqual(new Set(statuses), new Set([outcome.status]))
      assert.strictEqual(newTokens, outcome.newTokens)
      if (outcome.calls === undefined) assert.strictEqual(requests, outcome.requests)
      else assert.isAtMost(requests, outcome.requests)
    })
  }
})
