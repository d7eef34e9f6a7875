import { AccessTokenProvider } from "@store-api/core"
import { Effect, Layer, Schedule } from "effect"

/** Gets the token once a minute, so that it is renewed even without calls to the store. */
export const KeepWarm = Layer.scopedDiscard(
  Effect.flatMap(AccessTokenProvider.AccessTokenProvider, (provider) =>
    provider.get.pipe(
      Effect.exit, // a failure or defect of one renewal does not end the loop
      Effect.repeat(Schedule.spaced("1 minute")),
      Effect.forkScoped
    ))
)
