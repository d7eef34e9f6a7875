import {
  type AccessToken,
  type AccessTokenError,
  AccessTokenProvider,
  ClientCredentials,
  TokenEndpoint,
  TokenSource
} from "@store-api/core"
import { NodeHttp, NodeStoreAuth } from "@store-api/platform-node"
import { Cache, Effect, Exit, Layer, ManagedRuntime, Option, Redacted } from "effect"
import { clientId, clientSecret } from "../sample.js"
import type { Client, Peer, Setting } from "./Peer.js"

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

type Get = Effect.Effect<AccessToken.AccessToken, AccessTokenError.AccessTokenError>

/** The same request as ours, `TokenEndpoint`, behind another cache. */
const overEndpoint = async ({ server }: Setting, cached: (acquire: Get) => Effect.Effect<Get>): Promise<Client> => {
  const credentials = ClientCredentials.make({ clientId, clientSecret: Redacted.make(clientSecret) })
  const runtime = ManagedRuntime.make(
    Layer.provide(
      TokenEndpoint.layer({ authUrl: server.origin, credentials }),
      NodeHttp.layer({ proxy: "none" })
    )
  )
  const source = await runtime.runPromise(TokenSource.TokenSource)
  const get = await runtime.runPromise(cached(source.acquire(Option.none())))
  return {
    get: () => Effect.runPromise(get),
    token: async () => Redacted.value((await Effect.runPromise(get)).value),
    close: () => runtime.dispose()
  }
}

export const effectCache: Peer = {
  name: "Effect Cache",
  module: "effect",
  caches: true,
  how:
    "`Cache.makeWith` over our `TokenEndpoint`; `timeToLive` from the exit: the remaining lifetime less the margin " +
    "(5 minutes, or a quarter of a shorter lifetime), and zero for a failure.",
  make: (setting) =>
    overEndpoint(setting, (acquire) =>
      Effect.map(
        Cache.makeWith({
          capacity: 1,
          lookup: (_: "token") => acquire,
          timeToLive: Exit.match({
            onFailure: () => 0,
            onSuccess: (token) => Math.max(token.expiresAt.epochMillis - Date.now() - setting.ahead * 1000, 0)
          })
        }),
        (cache) => cache.get("token")
      ))
}

export const effectCachedWithTtl: Peer = {
  name: "Effect.cachedWithTTL",
  module: "effect",
  caches: true,
  how:
    "`Effect.cachedWithTTL` over our `TokenEndpoint`; the TTL is the lifetime of the endpoint's tokens less the margin " +
    "(5 minutes, or a quarter of a shorter lifetime).",
  make: (setting) =>
    overEndpoint(
      setting,
      (acquire) => Effect.cachedWithTTL(acquire, `${setting.server.settings.life - setting.ahead} seconds`)
    )
}
