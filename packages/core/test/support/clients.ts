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
  /** Has at most one connection, and keeps it open. */
  readonly single: ClientLayer
}

/** undici keeps connecting for this time after the caller has gone. Its default is 10 seconds. */
const connectTimeout = 2000

const dispatcher = (options: Undici.Agent.Options) =>
  Effect.acquireRelease(
    Effect.sync(() => new Undici.Agent({ allowH2: false, ...options })),
    (agent) => Effect.sync(() => void agent.close())
  )

const connect = (ca: Option.Option<string>): Undici.Agent.Options => ({
  connect: { ca: Option.getOrUndefined(ca), timeout: connectTimeout }
})

const overUndici = (options: Undici.Agent.Options): ClientLayer =>
  Layer.provide(
    NodeHttpClient.layerUndiciWithoutDispatcher,
    Layer.scoped(NodeHttpClient.Dispatcher, dispatcher(options))
  )

const overFetch = (options: Undici.Agent.Options): ClientLayer =>
  Layer.provide(
    FetchHttpClient.layer,
    Layer.scoped(
      FetchHttpClient.Fetch,
      Effect.map(
        dispatcher(options),
        // The DOM types have no `dispatcher`, and those of undici have another `RequestInit`.
        (dispatcher): typeof globalThis.fetch => (input, init) =>
          fetch(input, { ...init, dispatcher } as RequestInit)
      )
    )
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
    ),
  single: Layer.provide(
    NodeHttpClient.layerWithoutAgent,
    NodeHttpClient.makeAgentLayer({ keepAlive: true, maxSockets: 1 })
  )
}

export const undici: Client = {
  name: "undici",
  layer: (ca) => overUndici(connect(ca)),
  single: overUndici({ connections: 1 })
}

export const fetched: Client = {
  name: "fetch",
  layer: (ca) => overFetch(connect(ca)),
  single: overFetch({ connections: 1 })
}

export const clients: ReadonlyArray<Client> = [node, undici, fetched]

/** Declares the same tests for each client. They run concurrently, since most of them wait. */
export const onEachClient = (
  declare: (layer: ClientLayer, name: string, single: ClientLayer) => void
): void => {
  for (const { layer, name, single } of clients) {
    describe.concurrent(`on ${name}`, () => declare(layer(Option.none()), name, single))
  }
}
