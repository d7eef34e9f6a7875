import { AccessTokenProvider } from "@store-api/core"
import { Effect, Layer, Option } from "effect"
import { HttpRouter, HttpServerResponse } from "effect/http"

/**
 * Liveness: reads the status of the provider and sends no request. 503 only after its layer has ended, which a restart
 * fixes. It is 200 while no token is available, because a restart does not fix the endpoint. After the cooldown,
 * `status` shows nothing new about the endpoint until the next call.
 */
const live = Effect.gen(function*() {
  const { acquiring, cooldown, expiresAt, state } = yield* Effect.flatMap(
    AccessTokenProvider.AccessTokenProvider,
    (provider) => provider.status
  )
  return yield* HttpServerResponse.json(
    {
      state,
      acquiring,
      expiresAt: Option.getOrNull(expiresAt),
      error: Option.getOrNull(Option.map(cooldown, ({ error }) => error))
    },
    { status: state === "Closed" ? 503 : 200 }
  )
})

/**
 * Readiness: gets a token as a call would, which acquires one if needed; sends nothing during a cooldown. 503 while no
 * token is available. A check that stops waiting does not end the acquisition: the next check finds the token.
 */
const ready = Effect.flatMap(
  AccessTokenProvider.AccessTokenProvider,
  (provider) => provider.get
).pipe(
  Effect.matchEffect({
    onFailure: ({ _tag }) => HttpServerResponse.json({ error: _tag }, { status: 503 }),
    onSuccess: ({ expiresAt }) => HttpServerResponse.json({ expiresAt })
  })
)

/** Neither response holds a secret. */
export const health = Layer.merge(
  HttpRouter.add("GET", "/health", live),
  HttpRouter.add("GET", "/ready", ready)
)
