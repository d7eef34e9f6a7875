// A process with a provider. It calls `get` for each line on standard input, and prints a report.
import { createInterface } from "node:readline"
import { AccessToken, AccessTokenProvider, TokenSource } from "@store-api/core"
import { Clock, DateTime, Effect, Layer, Logger, ManagedRuntime, Redacted } from "effect"

let calls = 0
const Numbered = TokenSource.layer(() =>
  Effect.map(DateTime.now, (acquiredAt) => {
    calls++
    return new AccessToken.AccessToken({
      value: Redacted.make(`token-${calls}`),
      acquiredAt,
      expiresAt: DateTime.add(acquiredAt, { minutes: 60 })
    })
  })
)

const Provider = Layer.provide(AccessTokenProvider.layer(), Numbered)
const runtime = ManagedRuntime.make(Layer.merge(Provider, Logger.remove(Logger.defaultLogger)))

const report = Effect.gen(function*() {
  const provider = yield* AccessTokenProvider.AccessTokenProvider
  const { state } = yield* provider.status
  const { _tag: outcome } = yield* Effect.exit(provider.get)
  const monotonic = Number(yield* Clock.currentTimeNanos) / 1e6
  return { state, outcome, calls, wall: yield* Clock.currentTimeMillis, monotonic }
})

for await (const _ of createInterface({ input: process.stdin })) {
  console.log(JSON.stringify(await runtime.runPromise(report)))
}
// The runtime is not disposed: an idle provider must not keep the process running.
