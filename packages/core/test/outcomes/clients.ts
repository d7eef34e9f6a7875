/**
 * The three HTTP clients as an application would have them, but that their pools close in good order: what still holds a
 * connection when they are released is not hidden by destroying it.
 */
import { FetchHttpClient, type HttpClient } from "@effect/platform"
import { NodeHttpClient } from "@effect/platform-node"
import * as Undici from "@effect/platform-node/Undici"
import { Effect, Layer, Option, Scope } from "effect"

export interface Client {
  readonly name: string
  /** Trusts the given authority, if there is one. */
  readonly layer: (ca: Option.Option<string>) => Layer.Layer<HttpClient.HttpClient>
}

/** undici goes on connecting for so long when nobody waits any more; its own choice would be 10 seconds. */
const connectTimeout = 2000

const dispatcher = (ca: Option.Option<string>) =>
  Effect.acquireRelease(
    Effect.sync(() => new Undici.Agent({ connect: { ca: Option.getOrUndefined(ca), timeout: connectTimeout } })),
    (agent) => Effect.sync(() => void agent.close())
  )

export const node: Client = {
  name: "node:http",
  layer: (ca) =>
    Layer.provide(
      NodeHttpClient.layerWithoutAgent,
      Layer.effect(
        NodeHttpClient.HttpAgent,
        // It pools nothing, and closing its scope would destroy what is in use.
        Effect.flatMap(Scope.make(), (scope) =>
          Scope.extend(NodeHttpClient.makeAgent({ ca: Option.getOrUndefined(ca) }), scope))
      )
    )
}

export const undici: Client = {
  name: "undici",
  layer: (ca) =>
    Layer.provide(
      NodeHttpClient.layerUndiciWithoutDispatcher,
      Layer.scoped(NodeHttpClient.Dispatcher, dispatcher(ca))
    )
}

export const fetched: Client = {
  name: "fetch",
  layer: (ca) =>
    Layer.provide(
      FetchHttpClient.layer,
      Layer.scoped(
        FetchHttpClient.Fetch,
        Effect.map(
          dispatcher(ca),
          // The typings of the DOM know no dispatcher, those of undici another `RequestInit`.
          (dispatcher): typeof globalThis.fetch => (input, init) => fetch(input, { ...init, dispatcher } as RequestInit)
        )
      )
    )
}

export const clients: ReadonlyArray<Client> = [node, undici, fetched]
