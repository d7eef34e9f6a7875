// A process with a provider. It prints a report for each line on standard input, and exits when the input ends.
import { createInterface } from "node:readline"
import { AccessToken, AccessTokenProvider, TokenSource } from "@store-api/core"
import { Clock, DateTime, Effect, Layer, Redacted } from "effect"

let calls = 0
const Source = TokenSource.layer(() =>
  Effect.map(DateTime.now, (acquiredAt) => {
    calls++
    return new AccessToken.AccessToken({
      value: Redacted.make(`token-${calls}`),
      acquiredAt,
      expiresAt: DateTime.add(acquiredAt, { minutes: 60 })
    })
  })
)

const report = Effect.gen(function*() {
  const provider = yield* AccessTokenProvider.AccessTokenProvider
  const { state } = yield* provider.status
  const token = yield* provider.get
  return {
    state,
    value: Redacted.value(token.value),
    calls,
    wall: yield* Clock.currentTimeMillis,
    monotonic: Number(yield* Clock.currentTimeNanos) / 1e6
  }
})

const program = Effect.gen(function*() {
  const context = yield* Effect.context()
  yield* Effect.async((resume) => {
    const input = createInterface({ input: process.stdin })
    input.on("line", () => {
      Effect.runPromise(Effect.provide(report, context)).then((line) => console.log(JSON.stringify(line)))
    })
    input.on("close", () => resume(Effect.void))
  })
})

await Effect.runPromise(Effect.provide(program, Layer.provide(AccessTokenProvider.layer(), Source)))
