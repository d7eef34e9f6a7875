/** Two stores in one process: a token each, and the metrics of each under its name. */
import { NodeRuntime } from "@effect/platform-node"
import { AccessTokenMetrics, AuthorizedHttpClient } from "@store-api/core"
import { Console, Effect, Metric } from "effect"
import { Stores } from "./recipes/stores.js"

const call = (store: string) =>
  Effect.gen(function*() {
    const client = yield* AuthorizedHttpClient.AuthorizedHttpClient
    const { status } = yield* client.get("/orders")
    yield* Console.log(`${store}: ${status}`)
  }).pipe(
    Effect.provide(Stores.get(store)),
    // One store that is out of order is no affair of the other.
    Effect.catchAll((error) => Console.log(`${store}: ${error._tag}`))
  )

const acquired = (store: string) =>
  Metric.value(Metric.tagged(AccessTokenMetrics.acquisitions, "outcome", "Success")).pipe(
    Effect.tagMetrics("store", store),
    Effect.flatMap(({ count }) => Console.log(`${store}: tokens acquired: ${count}`))
  )

const program = Effect.gen(function*() {
  const stores = ["north", "south"]
  yield* Effect.forEach([...stores, ...stores], call)
  yield* Effect.forEach(stores, acquired)
})

NodeRuntime.runMain(Effect.provide(program, Stores.Default))
