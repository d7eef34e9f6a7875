// A process with a provider for the token endpoint at the URL in its first argument. It calls `get` for each line on
// standard input, and prints the outcome.
import { createInterface } from "node:readline"
import { FetchHttpClient } from "@effect/platform"
import { AccessTokenProvider, ClientCredentials, TokenEndpoint } from "@store-api/core"
import { Effect, Layer, Logger, ManagedRuntime, Redacted } from "effect"

const Tokens = TokenEndpoint.layer({
  authUrl: process.argv[2],
  credentials: ClientCredentials.make({
    clientId: "invented-client",
    clientSecret: Redacted.make("invented-secret-7f3a")
  }),
  // No second attempt within an acquisition, so that a busy machine does not send one.
  attemptTimeout: "5 seconds",
  deadline: "5 seconds"
}).pipe(Layer.provide(FetchHttpClient.layer))

const runtime = ManagedRuntime.make(
  Layer.merge(Layer.provide(AccessTokenProvider.layer(), Tokens), Logger.remove(Logger.defaultLogger))
)
const get = Effect.flatMap(AccessTokenProvider.AccessTokenProvider, (provider) => provider.get)

for await (const _ of createInterface({ input: process.stdin })) {
  const exit = await runtime.runPromiseExit(get)
  console.log(exit._tag)
}
await runtime.dispose()
