import * as Effect from "effect/Effect"

/** Runs the effect in a new fiber. An interruption does not wait until that fiber has ended. */
export const disconnected: <A, E, R>(effect: Effect.Effect<A, E, R>) => Effect.Effect<A, E, R> = Effect.disconnect
