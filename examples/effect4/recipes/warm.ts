import { type AccessToken, AccessTokenError, AccessTokenProvider } from "@store-api/core"
import { NodeStoreAuth } from "@store-api/platform-node"
import { Clock, Context, Effect, Equal, Layer, Ref, Schedule, Stream } from "effect"

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
export const KeepWarm = Layer.effectDiscard(
  Effect.flatMap(AccessTokenProvider.AccessTokenProvider, (provider) =>
    provider.get.pipe(
      Effect.exit, // a failure or defect of one renewal does not end the loop
      Effect.repeat(Schedule.spaced("1 minute")),
      Effect.forkScoped
    ))
)

/**
 * The current token, and then each token that replaces it, for connections that live longer than a token. During an
 * outage it waits for `retryAt`. Fails with errors that need a change, and when the provider's layer has ended.
 */
export const tokens = Stream.unwrap(Effect.gen(function*() {
  const { get } = yield* AccessTokenProvider.AccessTokenProvider
  const pause = yield* Ref.make(0)
  const next = Effect.gen(function*() {
    yield* Effect.sleep(yield* Ref.get(pause))
    const token = yield* Effect.retry(get, AccessTokenError.atRetryAt(Infinity))
    yield* Ref.set(pause, millisToNext(token, yield* Clock.currentTimeMillis))
    return token
  })
  return Stream.changesWith(
    Stream.fromEffectRepeat(next),
    (last, token) => Equal.equals(last.value, token.value)
  )
}))

/**
 * `get` starts a renewal at 80 % of `refreshAhead` at the latest, which is 5 minutes or a quarter of the lifetime.
 * From then on, the next look comes after a tenth of the remaining lifetime.
 */
const millisToNext = ({ acquiredAt, expiresAt }: AccessToken.AccessToken, now: number) => {
  const left = expiresAt.epochMilliseconds - now
  const ahead = Math.min(
    5 * 60_000,
    (expiresAt.epochMilliseconds - acquiredAt.epochMilliseconds) / 4
  )
  return Math.max(left - 0.8 * ahead, left / 10, 100)
}
