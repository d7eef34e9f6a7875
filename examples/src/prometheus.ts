/** Metrics for Prometheus at http://127.0.0.1:9464/metrics, of a program that calls the store once a second. */
import { NodeSdk } from "@effect/opentelemetry"
import { NodeRuntime } from "@effect/platform-node"
import { PrometheusExporter } from "@opentelemetry/exporter-prometheus"
import { AuthorizedHttpClient } from "@store-api/core"
import { NodeStoreAuth } from "@store-api/platform-node"
import { Config, Effect, Layer, Schedule } from "effect"

const MetricsLive = NodeSdk.layer(
  Effect.map(Config.withDefault(Config.integer("METRICS_PORT"), 9464), (port) => ({
    resource: { serviceName: "shop" },
    // A server of its own: whoever reaches the application does not reach this.
    metricReader: new PrometheusExporter({ host: "127.0.0.1", port, withoutScopeInfo: true })
  }))
)

const program = Effect.gen(function*() {
  const client = yield* AuthorizedHttpClient.AuthorizedHttpClient
  yield* client.get("/orders").pipe(
    Effect.tapError((error) => Effect.logWarning(error._tag)),
    Effect.ignore,
    Effect.repeat(Schedule.spaced("1 second"))
  )
})

NodeRuntime.runMain(Effect.provide(program, Layer.merge(NodeStoreAuth.layerConfig(), MetricsLive)))
