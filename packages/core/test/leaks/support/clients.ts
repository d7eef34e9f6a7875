/** The three HTTP clients. Each can trust an additional certificate authority. */
import { FetchHttpClient, type HttpClient } from "@effect/platform"
import { NodeHttpClient } from "@effect/platform-node"
import * as Undici from "@effect/platform-node/Undici"
import { Effect, Layer, Option } from "effect"

export type Client = (ca: Option.Option<string>) => Layer.Layer<HttpClient.HttpClient>

const agent = (ca: Option.Option<string>) =>
  Effect.acquireRelease(
    Effect.sync(() => new Undici.Agent({ connect: { ca: Option.getOrUndefined(ca), timeout: 1000 } })),
    (agent) => Effect.promise(() => agent.destroy())
  )

export const nodeHttp: Client = (ca) =>
  Layer.provide(NodeHttpClient.layerWithoutAgent, NodeHttpClient.makeAgentLayer({ ca: Option.getOrUndefined(ca) }))

export const undici: Client = (ca) =>
  Layer.provide(NodeHttpClient.layerUndiciWithoutDispatcher, Layer.scoped(NodeHttpClient.Dispatcher, agent(ca)))

export const fetched: Client = (ca) =>
  Layer.provide(
    FetchHttpClient.layer,
    Layer.scoped(
      FetchHttpClient.Fetch,
      Effect.map(
        agent(ca),
        // The DOM types have no dispatcher.
        (dispatcher): typeof fetch => (input, init) => fetch(input, { ...init, dispatcher } as RequestInit)
      )
    )
  )

export const clients: Readonly<Record<string, Client>> = { "node:http": nodeHttp, undici, fetch: fetched }
