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
 * Runs a test with a provider over a scripted source and a virtual clock. Random numbers are always 0: the renewal of
 * a token of an hour starts when less than 4 minutes are left, and the first cooldown is 750 milliseconds.
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

/** A token with this age and this remaining lifetime, in milliseconds. */
export const aged = (value: string, age: number, remaining: number) =>
  Effect.map(DateTime.now, (now) =>
    new AccessToken.AccessToken({
      value: Redacted.make(value),
      acquiredAt: DateTime.subtract(now, { millis: age }),
      expiresAt: DateTime.add(now, { millis: remaining })
    }))
