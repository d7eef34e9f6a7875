/** Calls the store once a second, and serves metrics for Prometheus at http://127.0.0.1:9464/metrics. */
import * as NodeSdk from "@effect/opentelemetry/NodeSdk"
import { NodeRuntime } from "@effect/platform-node"
import { PrometheusExporter } from "@opentelemetry/exporter-prometheus"
import { AuthorizedHttpClient } from "@store-api/core"
import { NodeStoreAuth } from "@store-api/platform-node"
import { Config, Effect, Layer, Schedule } from "effect"
import { HttpClient } from "effect/http"

const StoreAuthLive = NodeStoreAuth.layerConfig()

const MetricsLive = NodeSdk.layer(
  Effect.map(Config.withDefault(Config.Int("METRICS_PORT"), 9464), (port) => ({
    resource: { serviceName: "shop" },
    // A separate server, so that users of the application cannot read its metrics.
    metricReader: new PrometheusExporter({ host: "127.0.0.1", port, withoutScopeInfo: true })
  }))
)

const program = Effect.gen(function*() {
  const client = HttpClient.filterStatusOk(yield* AuthorizedHttpClient.AuthorizedHttpClient)
  yield* client.get("/orders").pipe(
    Effect.catch((error) => Effect.logWarning(error.message)),
    Effect.repeat(Schedule.spaced("1 second"))
  )
})

NodeRuntime.runMain(Effect.provide(program, Layer.merge(StoreAuthLive, MetricsLive)))
