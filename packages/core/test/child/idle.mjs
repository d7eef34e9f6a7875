// A program that provides the layer, uses a token and has nothing else to do. An open handle would keep it running.
import { AccessToken, AccessTokenProvider, TokenSource } from "@store-api/core"
import { DateTime, Effect, Layer, ManagedRuntime, Redacted } from "effect"

const Source = TokenSource.layer(() =>
  Effect.map(DateTime.now, (acquiredAt) =>
    new AccessToken.AccessToken({
      value: Redacted.make("an-invented-token"),
      acquiredAt,
      expiresAt: DateTime.add(acquiredAt, { hours: 1 })
    }))
)

const runtime = ManagedRuntime.make(Layer.provide(AccessTokenProvider.layer(), Source))
await runtime.runPromise(
  Effect.flatMap(AccessTokenProvider.AccessTokenProvider, (provider) => Effect.zipRight(provider.get, provider.refresh))
)
console.log("done")
if (process.argv[2] === "leak") setInterval(() => {}, 1000)
// The runtime is not disposed: an idle provider must not keep the process running.
