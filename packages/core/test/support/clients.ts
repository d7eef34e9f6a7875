/**
 * The three HTTP clients as an application configures them, except that their pools close gracefully. A pool that
 * destroys its connections would hide one that is still in use.
 */
import { FetchHttpClient, type HttpClient } from "@effect/platform"
import { NodeHttpClient } from "@effect/platform-node"
import * as Undici from "@effect/platform-node/Undici"
import { describe } from "@effect/vitest"
import { Effect, Layer, Option, Scope } from "effect"

export type ClientLayer = Layer.Layer<HttpClient.HttpClient>

export interface Client {
  readonly name: string
  /** Trusts the given certificate authority, if any. */
  readonly layer: (ca: Option.Option<string>) => ClientLayer
}

/** undici keeps connecting for this time after the caller has gone. Its default is 10 seconds. */
const connectTimeout = 2000

const dispatcher = (ca: Option.Option<string>) =>
  Effect.acquireRelease(
    Effect.sync(() =>
      new Undici.Agent({ allowH2: false, connect: { ca: Option.getOrUndefined(ca), timeout: connectTimeout } })
    ),
    (agent) => Effect.sync(() => void agent.close())
  )

export const node: Client = {
  name: "node:http",
  layer: (ca) =>
    Layer.provide(
      NodeHttpClient.layerWithoutAgent,
      Layer.effect(
        NodeHttpClient.HttpAgent,
        // The agent has no pool, and closing its scope would destroy connections in use.
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
          // The DOM types have no `dispatcher`, and those of undici have another `RequestInit`.
          (dispatcher): typeof globalThis.fetch => (input, init) => fetch(input, { ...init, dispatcher } as RequestInit)
        )
      )
    )
}

export const clients: ReadonlyArray<Client> = [node, undici, fetched]

/** Declares the same tests for each client. They run concurrently, since most of them wait. */
export const onEachClient = (declare: (layer: ClientLayer, name: string) => void): void => {
  for (const { layer, name } of clients) describe.concurrent(`on ${name}`, () => declare(layer(Option.none()), name))
}
