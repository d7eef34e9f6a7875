import { StoreAuth } from "@store-api/core"
import { NodeStoreAuth } from "@store-api/platform-node"
import { Layer, LayerMap, Metric } from "effect"

/**
 * One layer per store, created at the first use and kept for an hour after the last. Without `idleTimeToLive`, each use
 * would end the layer and lose the token. Each store has its own variables: `NORTH_AUTH_URL`, `NORTH_URL`,
 * `NORTH_CLIENT_ID`, `NORTH_CLIENT_SECRET`, and so on.
 */
export class Stores extends LayerMap.Service<Stores>()("Stores", {
  lookup: (store: string) =>
    labelled(store, NodeStoreAuth.layerConfig(StoreAuth.config(store.toUpperCase()))),
  idleTimeToLive: "1 hour"
}) {}

/** Adds the label `store` to all metrics of the layer, for every caller. */
const labelled = <A, E, R>(store: string, layer: Layer.Layer<A, E, R>) =>
  Layer.provide(layer, Layer.succeed(Metric.CurrentMetricAttributes, { store }))
