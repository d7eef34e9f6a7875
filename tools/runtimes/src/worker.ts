/**
 * The contract as a worker, and how a worker keeps a token between requests. workerd runs code only for a request:
 * `GET /?laboratory=…&check=<number>` runs one check, and without a number returns the number of checks.
 */
import * as FetchHttpClient from "@effect/platform/FetchHttpClient"
import { AuthorizedHttpClient, StoreAuth, TokenStore } from "@store-api/core"
import { Array as Arr, Effect, Layer, Redacted } from "effect"
import { type Check, check, equal, run, startEmulator } from "./Check.js"
import * as contract from "./contract.js"

type Store = Readonly<Record<"url" | "clientId" | "clientSecret", string>>

const optionsOf = ({ clientId, clientSecret, url }: Store) => (
  { authUrl: url, apiUrl: url, clientId, clientSecret: Redacted.make(clientSecret) }
)

const orders = Effect.gen(function*() {
  const response = yield* (yield* AuthorizedHttpClient.AuthorizedHttpClient).get("/orders")
  yield* response.text
  return response.status
})

// A fiber that waits for I/O belongs to the request that started it, and ends with it. Only plain values, such as the
// entries of this store, may outlive a request.
const memory = Effect.runSync(TokenStore.makeMemory)

/** One provider per request, over the tokens in memory. */
const perRequest = (store: Store): Promise<number> =>
  orders.pipe(
    Effect.provide(
      StoreAuth.layerShared({ ...optionsOf(store), shared: { storeTimeout: "30 seconds" } })
    ),
    Effect.provide(
      Layer.merge(FetchHttpClient.layer, Layer.succeed(TokenStore.TokenStore, memory))
    ),
    Effect.runPromise
  )

/** Sends a request to this worker and returns the status, which after a success is that of the API. */
const ask = (worker: string, { clientId, clientSecret, url }: Store) =>
  Effect.promise(async () => {
    const response = await fetch(
      `${worker}/orders?${new URLSearchParams({ url, clientId, clientSecret })}`
    )
    await response.text()
    return response.status
  })

const own = (worker: string): Check =>
  check(
    "workerd: a token is kept from request to request by a provider for each, until it is revoked",
    function*() {
      const emulator = yield* startEmulator()
      const one = ask(worker, emulator)
      equal("one after the other", yield* Effect.all(Arr.replicate(one, 3)), [200, 200, 200])
      const atOnce = yield* Effect.all(Arr.replicate(one, 20), { concurrency: "unbounded" })
      equal("20 at once", Arr.dedupe(atOnce), [200])
      equal("token requests", yield* emulator.tokenRequests, 1)
      yield* emulator.revoke
      equal("revoked", yield* one, 200)
      equal("token requests", yield* emulator.tokenRequests, 2)
    }
  )

export default {
  fetch: async (request: Request): Promise<Response> => {
    const { origin, pathname, searchParams } = new URL(request.url)
    const parameter = (name: string) => searchParams.get(name) ?? ""

    if (pathname === "/orders") {
      const [url, clientId, clientSecret] = [
        parameter("url"),
        parameter("clientId"),
        parameter("clientSecret")
      ]
      return new Response(null, { status: await perRequest({ url, clientId, clientSecret }) })
    }

    const checks = [...contract.checks({ certificates: false }), own(origin)]
    const chosen = searchParams.has("check") ? checks[Number(parameter("check"))] : undefined
    return Response.json(
      chosen === undefined
        ? { declared: checks.length }
        : await Effect.runPromise(run(chosen, parameter("laboratory")))
    )
  }
}
