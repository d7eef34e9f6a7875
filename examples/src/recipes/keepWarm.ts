import { AccessTokenProvider } from "@store-api/core"
import { Effect, Layer, Schedule } from "effect"

/** Asks once a minute, so that the token is renewed even while nobody calls the store. */
export const KeepWarm = Layer.scopedDiscard(
  Effect.flatMap(AccessTokenProvider.AccessTokenProvider, (provider) =>
    provider.get.pipe(
      Effect.exit, // a failure or defect of one renewal does not end the warming
      Effect.repeat(Schedule.spaced("1 minute")),
      Effect.forkScoped
    ))
)
