/** A process that gets a token with a new provider, which shares it through the store in a folder. */
import * as NodeContext from "@effect/platform-node/NodeContext"
import * as AccessTokenProvider from "@store-api/core/AccessTokenProvider"
import * as TokenStore from "@store-api/core/TokenStore"
import * as FileTokenStore from "@store-api/platform-node/FileTokenStore"
import * as NodeStoreAuth from "@store-api/platform-node/NodeStoreAuth"
import { serve } from "@store-api/testing/serve"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Redacted from "effect/Redacted"

export interface Order {
  readonly folder: string
  readonly url: string
  readonly clientId: string
  /** The duration of the lease, in milliseconds. */
  readonly lease: number
}

serve(({ clientId, folder, lease, url }: Order) => {
  const storeAuth = NodeStoreAuth.layerShared({
    authUrl: url,
    apiUrl: url,
    clientId,
    clientSecret: Redacted.make("an-invented-secret"),
    shared: { lease, storeTimeout: "30 seconds" }
  })
  const store = Layer.effect(TokenStore.TokenStore, FileTokenStore.make({ folder }))
  return AccessTokenProvider.AccessTokenProvider.pipe(
    Effect.flatMap(({ get }) => get),
    Effect.map(({ value }) => Redacted.value(value)),
    Effect.provide(Layer.provide(storeAuth, store)),
    Effect.provide(NodeContext.layer),
    Effect.orDie
  )
})
