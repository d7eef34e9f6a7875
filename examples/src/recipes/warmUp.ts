import { AccessTokenProvider } from "@store-api/core"
import { NodeStoreAuth } from "@store-api/platform-node"
import { Context, Layer } from "effect"

/** Acquires a token while the layer is built, so that wrong credentials fail the start of the application. */
export const StoreAuthLive = NodeStoreAuth.layerConfig().pipe(
  Layer.tap((context) => Context.get(context, AccessTokenProvider.AccessTokenProvider).get)
)
