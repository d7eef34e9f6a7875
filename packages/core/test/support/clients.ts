/** The three HTTP clients that the token request must behave the same on. */
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

/** Declares the same tests once for each client; they run side by side, since most of them wait for something. */
export const onEachClient = (declare: (layer: ClientLayer, name: string) => void): void => {
  for (const [name, layer] of clients) describe.concurrent(`on ${name}`, () => declare(layer, name))
}
