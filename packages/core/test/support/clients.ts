/** The three HTTP clients with which the token request must behave the same. */
import { FetchHttpClient, type HttpClient } from "@effect/platform"
import { NodeHttpClient } from "@effect/platform-node"
import { describe } from "@effect/vitest"
import type { Layer } from "effect"

export type ClientLayer = Layer.Layer<HttpClient.HttpClient>

export const clients: ReadonlyArray<readonly [name: string, layer: ClientLayer]> = [
  ["node:http", NodeHttpClient.layer],
  ["undici", NodeHttpClient.layerUndici],
  ["fetch", FetchHttpClient.layer]
]

/** Declares the same tests for each client. They run concurrently, since most of them wait. */
export const onEachClient = (declare: (layer: ClientLayer, name: string) => void): void => {
  for (const [name, layer] of clients) describe.concurrent(`on ${name}`, () => declare(layer, name))
}
