import { AccessTokenProvider } from "@store-api/core"
import { NodeStoreAuth } from "@store-api/platform-node"
import { Effect, ManagedRuntime, Redacted } from "effect"
import { clientId, clientSecret } from "../sample.js"
import type { Peer } from "./Peer.js"

export const store: Peer = {
  name: "@store-api/core",
  module: "@store-api/core",
  caches: true,
  how: "`NodeStoreAuth.layer`, defaults; `Effect.runPromise(provider.get)`.",
  make: async ({ server }) => {
    const runtime = ManagedRuntime.make(NodeStoreAuth.layer({
      authUrl: server.origin,
      apiUrl: server.origin,
      clientId,
      clientSecret: Redacted.make(clientSecret),
      http: { proxy: "none" }
    }))
    const provider = await runtime.runPromise(AccessTokenProvider.AccessTokenProvider)
    return {
      get: () => Effect.runPromise(provider.get),
      token: async () => Redacted.value((await Effect.runPromise(provider.get)).value),
      close: () => runtime.dispose()
    }
  }
}
