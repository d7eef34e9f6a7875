/** Uses two stores in one process. Each has its own token, cooldown and metrics. */
import { NodeRuntime } from "@effect/platform-node"
import { AccessTokenMetrics, AuthorizedHttpClient } from "@store-api/core"
import { Console, Effect, Metric } from "effect"
import { HttpClient } from "effect/http"
import { Stores } from "./recipes/stores.js"

const call = (store: string) =>
  Effect.gen(function*() {
    const client = HttpClient.filterStatusOk(yield* AuthorizedHttpClient.AuthorizedHttpClient)
    const { status } = yield* client.get("/orders")
    yield* Console.log(`${store}: ${status}`)
  }).pipe(
    Effect.provide(Stores.get(store)),
    Effect.tapError((error) => Console.log(`${store}: ${error._tag}`))
  )

const acquired = (store: string) =>
  Metric.value(Metric.withAttributes(AccessTokenMetrics.acquisitions, { outcome: "Success" }))
    .pipe(
      Effect.updateService(Metric.CurrentMetricAttributes, (all) => ({ ...all, store })),
      Effect.flatMap(({ count }) => Console.log(`${store}: tokens acquired: ${count}`))
    )

const program = Effect.gen(function*() {
  const stores = ["north", "south"]
  // Calls both stores, even if one of them fails. The program then exits with code 1.
  const calls = yield* Effect.exit(Effect.validate([...stores, ...stores], call))
  yield* Effect.forEach(stores, acquired)
  yield* calls
})

NodeRuntime.runMain(Effect.provide(program, Stores.layer), { disableErrorReporting: true })
