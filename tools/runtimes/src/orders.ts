/**
 * Two ways for a worker to hold a token. A fiber that waits for I/O belongs to the request that started it, and ends
 * with it; only plain values may outlive a request.
 */
import * as FetchHttpClient from "@effect/platform/FetchHttpClient"
import {
  type AccessToken,
  AuthorizedHttpClient,
  ClientCredentials,
  StoreAuth,
  TokenEndpoint,
  TokenSource
} from "@store-api/core"
import { DateTime, Effect, Layer, ManagedRuntime, Option, Redacted } from "effect"

/** The address and credentials of the store. In an application, these are bindings of the worker. */
export interface Store {
  readonly url: string
  readonly clientId: string
  readonly clientSecret: string
}

const orders = Effect.gen(function*() {
  const client = yield* AuthorizedHttpClient.AuthorizedHttpClient
  const response = yield* client.get("/orders")
  yield* response.text
  return response.status
})

/** The last token of each store. Only plain values, nothing in flight. */
const kept = new Map<string, AccessToken.AccessToken>()

/** Returns the kept token if it is valid and later than the one to replace. Otherwise requests a token. */
const keeping = ({ clientId, clientSecret, url }: Store) =>
  Effect.gen(function*() {
    const credentials = ClientCredentials.make({ clientId, clientSecret: Redacted.make(clientSecret) })
    const endpoint = yield* TokenEndpoint.make({ authUrl: url, credentials })
    return TokenSource.make((replacing) =>
      Effect.gen(function*() {
        const now = yield* DateTime.now
        const held = Option.fromNullable(kept.get(url)).pipe(
          Option.filter(({ acquiredAt, expiresAt }) =>
            DateTime.lessThanOrEqualTo(acquiredAt, now) && DateTime.greaterThan(expiresAt, now)
          ),
          Option.filter((token) =>
            Option.isNone(replacing) || (Redacted.value(token.value) !== Redacted.value(replacing.value.value) &&
              DateTime.greaterThan(token.expiresAt, replacing.value.expiresAt))
          )
        )
        if (Option.isSome(held)) return held.value
        const token = yield* endpoint.acquire(replacing)
        kept.set(url, token)
        return token
      })
    )
  })

/** One provider per request, over the kept token. */
export const perRequest = (store: Store): Promise<number> =>
  orders.pipe(
    Effect.provide(StoreAuth.layerFromSource({ apiUrl: store.url })),
    Effect.provide(Layer.effect(TokenSource.TokenSource, keeping(store))),
    Effect.provide(FetchHttpClient.layer),
    Effect.runPromise
  )

const sharedLayer = ({ clientId, clientSecret, url }: Store) =>
  StoreAuth.layer({ authUrl: url, apiUrl: url, clientId, clientSecret: Redacted.make(clientSecret) }).pipe(
    Layer.provide(FetchHttpClient.layer)
  )

const runtimes = new Map<string, ManagedRuntime.ManagedRuntime<AuthorizedHttpClient.AuthorizedHttpClient, unknown>>()

/** One provider for all requests, as on other runtimes. A worker must not do this. */
export const shared = (store: Store): Promise<number> => {
  const runtime = runtimes.get(store.url) ?? ManagedRuntime.make(sharedLayer(store))
  runtimes.set(store.url, runtime)
  return runtime.runPromise(orders)
}
