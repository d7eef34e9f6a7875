import { AccessTokenError, AccessTokenProvider } from "@store-api/core"
import { NodeStoreAuth } from "@store-api/platform-node"
import { Context, Effect, Layer, Schedule } from "effect"

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

/** Gets the token once a minute, so that it is renewed even without calls to the store. */
export const KeepWarm = Layer.scopedDiscard(
  Effect.flatMap(AccessTokenProvider.AccessTokenProvider, (provider) =>
    provider.get.pipe(
      Effect.exit, // a failure or defect of one renewal does not end the loop
      Effect.repeat(Schedule.spaced("1 minute")),
      Effect.forkScoped
    ))
)
