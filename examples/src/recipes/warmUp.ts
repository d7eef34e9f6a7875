import { AccessTokenProvider } from "@store-api/core"
import { NodeStoreAuth } from "@store-api/platform-node"
import { Context, Layer } from "effect"

/** A token is acquired while the layer is built: wrong credentials fail the start of the application. */
export const StoreAuthLive = NodeStoreAuth.layerConfig().pipe(
  Layer.tap((context) => Context.get(context, AccessTokenProvider.AccessTokenProvider).get)
)
