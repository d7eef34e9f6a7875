/** How an application tests what happens over an hour: with the `TestClock`, and a source that follows a script. */
import { assert, it } from "@effect/vitest"
import {
  AccessToken,
  AccessTokenError,
  AccessTokenProvider,
  TokenSource
} from "@store-api/core"
import { DateTime, Effect, Layer, Redacted, Ref, TestClock } from "effect"

const outage = new AccessTokenError.TokenRequestError({ reason: "Transport", attempts: 1 })

/** The acquisitions in order: a token of an hour with this value, or an error. */
const providerOf = (...script: ReadonlyArray<string | AccessTokenError.AccessTokenError>) =>
  AccessTokenProvider.layer().pipe(Layer.provide(Layer.unwrapEffect(
    Effect.map(Ref.make(script), (left) =>
      TokenSource.layer(() =>
        Effect.gen(function*() {
          const [next = outage, ...others] = yield* Ref.get(left)
          yield* Ref.set(left, others)
          if (typeof next !== "string") return yield* next
          const acquiredAt = yield* DateTime.now
          return new AccessToken.AccessToken({
            value: Redacted.make(next),
            acquiredAt,
            expiresAt: DateTime.add(acquiredAt, { minutes: 60 })
          })
        })
      ))
  )))

const value = Effect.gen(function*() {
  const provider = yield* AccessTokenProvider.AccessTokenProvider
  return Redacted.value((yield* provider.get).value)
})

it.effect("a token is renewed in the background by a call in its last minutes", () =>
  Effect.gen(function*() {
    assert.strictEqual(yield* value, "first")
    yield* TestClock.adjust("54 minutes")
    assert.strictEqual(yield* value, "first")
    yield* TestClock.adjust("3 minutes")
    assert.strictEqual(
      yield* value,
      "first",
      "this call starts the renewal, and does not wait for it"
    )
    yield* TestClock.adjust("1 second")
    assert.strictEqual(yield* value, "second")
  }).pipe(Effect.provide(providerOf("first", "second"))))

it.effect("an outage is noticed only when the token has expired", () =>
  Effect.gen(function*() {
    assert.strictEqual(yield* value, "first")
    yield* TestClock.adjust("57 minutes")
    assert.strictEqual(yield* value, "first")
    yield* TestClock.adjust("4 minutes")
    assert.isTrue(AccessTokenError.isTransient(yield* Effect.flip(value)))
    yield* TestClock.adjust("5 seconds") // the cooldown
    assert.strictEqual(yield* value, "second")
  }).pipe(Effect.provide(providerOf("first", outage, outage, "second"))))
