import { RequestInit } from "@effect/platform/FetchHttpClient"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"

const provided = Effect.map(Effect.serviceOption(RequestInit), Option.getOrUndefined)

/**
 * Returns a function that stops `fetch` from following redirects in an effect. The other HTTP clients follow none and
 * ignore `RequestInit`. Keeps the `RequestInit` that was provided when this effect ran or around the request. Replaces
 * one that was provided only to the layer of `fetch`, because it is not visible here.
 */
export const make: Effect.Effect<
  <A, E, R>(effect: Effect.Effect<A, E, R>) => Effect.Effect<A, E, R>
> = Effect.map(
  provided,
  (atBuild) => (effect) =>
    Effect.flatMap(
      provided,
      (atRequest) =>
        Effect.provideService(effect, RequestInit, {
          ...atBuild,
          ...atRequest,
          redirect: "manual"
        })
    )
)
