/**
 * A server that calls the store for each request. `/health` reports that it runs, `/ready` that it has a token.
 * On SIGTERM it finishes the requests in flight, and then exits.
 */
import { createServer } from "node:http"
import { NodeHttpServer, NodeRuntime } from "@effect/platform-node"
import { AccessTokenError, AuthorizedHttpClient } from "@store-api/core"
import { NodeStoreAuth } from "@store-api/platform-node"
import { Cause, Config, Effect, Layer } from "effect"
import { HttpRouter, HttpServerResponse } from "effect/http"
import { health } from "./recipes/health.js"

const StoreAuthLive = NodeStoreAuth.layerConfig()

/** Never the 401 or 403 of the store: they concern the credentials of this server, not those of its caller. */
const unavailable = (status: 502 | 503 | 504) =>
  HttpServerResponse.json({ error: "store unavailable" }, { status })

const statusOf = (error: unknown) => {
  if (Cause.isTimeoutError(error)) return 504
  // The caller may try again later. Other token errors need a change by an operator.
  return AccessTokenError.isTransient(error) ? 503 : 502
}

const order = Effect.gen(function*() {
  const { id = "" } = yield* HttpRouter.params
  const client = yield* AuthorizedHttpClient.AuthorizedHttpClient
  const response = yield* client.get(`/orders/${encodeURIComponent(id)}`)
  if (response.status === 401 || response.status === 403) {
    yield* Effect.logError(
      `The store rejects the token of this server (status ${response.status}).`
    )
    return yield* unavailable(502) // the body need not be JSON
  }
  return yield* HttpServerResponse.json(yield* response.json, { status: response.status })
}).pipe(
  Effect.timeout("8 seconds"),
  Effect.tapError((error) => Effect.logWarning("The store could not be called", error)),
  Effect.catch((error) => unavailable(statusOf(error)))
)

const routes = Layer.merge(health, HttpRouter.add("GET", "/orders/:id", order))

const ServerLive = HttpRouter.serve(routes).pipe(
  Layer.provide(NodeHttpServer.layerConfig(createServer, {
    port: Config.withDefault(Config.Int("PORT"), 8080),
    host: Config.succeed("127.0.0.1")
  })),
  // Provided last, so that it shuts down after the server, which waits for the requests in flight.
  Layer.provide(StoreAuthLive)
)

NodeRuntime.runMain(Layer.launch(ServerLive))
