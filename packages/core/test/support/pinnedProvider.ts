import { AccessToken, AccessTokenError, AccessTokenProvider } from "@store-api/core"
import { DateTime, Effect, Layer, Random, Redacted } from "effect"
import { answering } from "./scriptedSource.js"
import * as VirtualClock from "./virtualClock.js"

export type Acquisition = Effect.Effect<AccessToken.AccessToken, AccessTokenError.AccessTokenError>

export const valueOf = (token: { readonly value: Redacted.Redacted }) => Redacted.value(token.value)

export const minute = 60_000
export const hour = 60 * minute

export const down = new AccessTokenError.TokenRequestError({ reason: "Transport", attempts: 6 })

/**
 * A provider over a source of this script, by a clock of two hands. Chance is 0 throughout: the renewal of a token of an hour
 * starts when less than 4 minutes are left, and the first pause is of 750 milliseconds.
 */
export const run = <A, E>(
  script: (number: number, virtual: VirtualClock.VirtualClock) => Acquisition,
  test: (tools: {
    readonly virtual: VirtualClock.VirtualClock
    readonly provider: AccessTokenProvider.Service
    readonly calls: Effect.Effect<number>
  }) => Effect.Effect<A, E>,
  options: AccessTokenProvider.Options = {}
) =>
  Effect.gen(function*() {
    const virtual = VirtualClock.make()
    const source = yield* answering((n) => script(n, virtual))
    return yield* Effect.flatMap(
      AccessTokenProvider.AccessTokenProvider,
      (provider) => test({ virtual, provider, calls: source.calls })
    ).pipe(
      Effect.provide(Layer.provide(AccessTokenProvider.layer(options), source.layer)),
      Effect.withClock(virtual.clock),
      Effect.withRandom(Random.fixed([0]))
    )
  })

/** A token of which this much is gone and this much is left, in milliseconds. */
export const aged = (value: string, gone: number, left: number) =>
  Effect.map(DateTime.now, (now) =>
    new AccessToken.AccessToken({
      value: Redacted.make(value),
      acquiredAt: DateTime.subtract(now, { millis: gone }),
      expiresAt: DateTime.add(now, { millis: left })
    }))
