import { HttpRouter, HttpServerResponse } from "@effect/platform"
import { AccessTokenProvider } from "@store-api/core"
import { Effect, Option } from "effect"

/** 503 while calls fail at once for want of a token, else 200; asks nobody, and holds no secret. */
export const health = HttpRouter.empty.pipe(
  HttpRouter.get(
    "/health",
    Effect.gen(function*() {
      const { acquiring, coolDown, expiresAt, zone } = yield* Effect.flatMap(
        AccessTokenProvider.AccessTokenProvider,
        (provider) => provider.status
      )
      const failing = Option.isSome(coolDown) && (zone === "Empty" || zone === "Expired")
      return yield* HttpServerResponse.json(
        {
          zone,
          acquiring,
          expiresAt: Option.getOrNull(expiresAt),
          error: Option.getOrNull(Option.map(coolDown, ({ error }) => error))
        },
        { status: failing || zone === "Closed" ? 503 : 200 }
      )
    })
  )
)
