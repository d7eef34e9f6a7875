import { StoreAuth } from "@store-api/core"
import { NodeStoreAuth } from "@store-api/platform-node"
import { Effect, Layer, LayerMap } from "effect"

/**
 * One token, one acquisition and one cooldown for each store, made at its first use and kept for an hour after its
 * last. Without `idleTimeToLive` a store's layer would end, and its token be lost, with each use. Each store has
 * variables of its own: `NORTH_AUTH_URL`, `NORTH_URL`, `NORTH_CLIENT_ID`, `NORTH_CLIENT_SECRET`, and so on.
 */
export class Stores extends LayerMap.Service<Stores>()("Stores", {
  lookup: (store: string) => labelled(store, NodeStoreAuth.layerConfig(StoreAuth.config(store.toUpperCase()))),
  idleTimeToLive: "1 hour"
}) {}

/** Adds the label `store` to all metrics of the layer, for every caller. */
const labelled = <A, E, R>(store: string, layer: Layer.Layer<A, E, R>) =>
  Layer.scopedContext(Effect.tagMetrics(Layer.build(layer), "store", store))
