/** A process that calls the API with a bound token, which it shares through the store in a folder. */
import * as NodeContext from "@effect/platform-node/NodeContext"
import * as AuthorizedHttpClient from "@store-api/core/AuthorizedHttpClient"
import * as TokenStore from "@store-api/core/TokenStore"
import * as Dpop from "@store-api/dpop/Dpop"
import { demoClient } from "@store-api/emulator/Client"
import * as FileTokenStore from "@store-api/platform-node/FileTokenStore"
import * as NodeStoreAuth from "@store-api/platform-node/NodeStoreAuth"
import { serve } from "@store-api/testing/serve"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Redacted from "effect/Redacted"

export interface Order {
  readonly folder: string
  readonly authUrl: string
  readonly apiUrl: string
  /** A private key in PEM. Default: the process makes one. */
  readonly pem?: string
  /** Milliseconds. */
  readonly duration: number
}

/** Calls the API until the time is over, and returns the statuses of the responses. */
const call = (duration: number) =>
  Effect.gen(function*() {
    const client = yield* AuthorizedHttpClient.AuthorizedHttpClient
    const end = Date.now() + duration
    const statuses: Array<number> = []
    while (Date.now() < end) {
      const { status } = yield* client.get("/orders")
      statuses.push(status)
      yield* Effect.sleep("50 millis")
    }
    return statuses
  })

serve(({ apiUrl, authUrl, duration, folder, pem }: Order) =>
  Effect.gen(function*() {
    const privateKey = pem === undefined ? undefined : Redacted.make(pem)
    const { bind } = yield* Dpop.make({ privateKey })
    const storeAuth = NodeStoreAuth.layerShared(bind({
      authUrl,
      apiUrl,
      clientId: demoClient.clientId,
      clientSecret: demoClient.clientSecret,
      shared: { storeTimeout: "30 seconds" }
    }))
    const store = Layer.effect(TokenStore.TokenStore, FileTokenStore.make({ folder }))
    return yield* Effect.provide(call(duration), Layer.provide(storeAuth, store))
  }).pipe(Effect.provide(NodeContext.layer), Effect.orDie)
)
