import { RequestInit } from "@effect/platform/FetchHttpClient"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"

/**
 * Effects that run under the result let `fetch` follow no redirect. The other HTTP clients follow none, and do not look
 * at `RequestInit`. What the user had set there, while the layer was built or around the request, stays; what was given
 * to the layer of `fetch` alone cannot be seen from here, and is replaced.
 */
export const make: Effect.Effect<<A, E, R>(effect: Effect.Effect<A, E, R>) => Effect.Effect<A, E, R>> = Effect.map(
  Effect.serviceOption(RequestInit),
  (atBuild) => (effect) =>
    Effect.flatMap(Effect.serviceOption(RequestInit), (atRequest) =>
      Effect.provideService(effect, RequestInit, {
        ...Option.getOrUndefined(atBuild),
        ...Option.getOrUndefined(atRequest),
        redirect: "manual"
      }))
)
