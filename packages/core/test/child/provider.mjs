// A process with a provider, over the token endpoint at the URL in its first argument, or over a source of its own. It
// calls `get` for each line on standard input, and prints a report.
import { createInterface } from "node:readline"
import { FetchHttpClient } from "@effect/platform"
import { AccessToken, AccessTokenProvider, ClientCredentials, TokenEndpoint, TokenSource } from "@store-api/core"
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

const endpoint = (authUrl) =>
  TokenEndpoint.layer({
    authUrl,
    credentials: ClientCredentials.make({
      clientId: "invented-client",
      clientSecret: Redacted.make("invented-secret-7f3a")
    }),
    // No second attempt within an acquisition, so that a busy machine does not send one.
    attemptTimeout: "5 seconds",
    deadline: "5 seconds"
  }).pipe(Layer.provide(FetchHttpClient.layer))

const url = process.argv[2]
const Provider = Layer.provide(AccessTokenProvider.layer(), url === undefined ? Numbered : endpoint(url))
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
