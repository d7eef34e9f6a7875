import { AccessTokenError, AccessTokenProvider } from "@store-api/core"
import { NodeStoreAuth } from "@store-api/platform-node"
import { Context, Effect, Layer } from "effect"

/**
 * Acquires a token while the layer is built. Wrong credentials fail the start. An outage of the token endpoint does
 * not, because a restart would not end it: the application starts without a token, and acquires one at its first call.
 */
export const StoreAuthLive = NodeStoreAuth.layerConfig().pipe(
  Layer.tap((context) =>
    Effect.catchIf(
      Context.get(context, AccessTokenProvider.AccessTokenProvider).get,
      AccessTokenError.isTransient,
      (error) => Effect.logWarning("The application starts without a token", error)
    )
  )
)
