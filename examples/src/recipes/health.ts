import { HttpRouter, HttpServerResponse } from "@effect/platform"
import { AccessTokenProvider } from "@store-api/core"
import { Effect, Option } from "effect"

/**
 * Liveness: what the provider knows, without asking anybody. 503 only once its layer has ended, which a restart mends. It is
 * 200 while no token can be had: a restart mends no endpoint, and after a failure's pause, of some seconds, `status` knows
 * nothing of the endpoint before somebody calls again.
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
 * Readiness: asks for a token as a call would, and so has one acquired if need be; in a failure's pause nothing is sent. 503
 * as long as none can be had. A check that gives up waiting ends no acquisition: the next one finds the token.
 */
const ready = Effect.flatMap(AccessTokenProvider.AccessTokenProvider, (provider) => provider.get).pipe(
  Effect.matchEffect({
    onFailure: ({ _tag }) => HttpServerResponse.json({ error: _tag }, { status: 503 }),
    onSuccess: ({ expiresAt }) => HttpServerResponse.json({ expiresAt })
  })
)

/** Neither answer holds a secret. */
export const health = HttpRouter.empty.pipe(HttpRouter.get("/health", live), HttpRouter.get("/ready", ready))
