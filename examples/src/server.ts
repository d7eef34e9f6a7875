/**
 * A server that calls the store for each request. `/health` reports that it runs, `/ready` that it has a token.
 * On SIGTERM it finishes the requests in flight, and then exits.
 */
import { createServer } from "node:http"
import { HttpRouter, HttpServer, HttpServerResponse } from "@effect/platform"
import { NodeHttpServer, NodeRuntime } from "@effect/platform-node"
import { AccessTokenError, AuthorizedHttpClient } from "@store-api/core"
import { NodeStoreAuth } from "@store-api/platform-node"
import { Config, Effect, Layer } from "effect"
import { health } from "./recipes/health.js"

const StoreAuthLive = NodeStoreAuth.layerConfig()

const badGateway = HttpServerResponse.json({ error: "the store cannot process this request" }, { status: 502 })

const order = Effect.gen(function*() {
  const { id = "" } = yield* HttpRouter.params
  const client = yield* AuthorizedHttpClient.AuthorizedHttpClient
  const response = yield* client.get(`/orders/${encodeURIComponent(id)}`)
  // These concern the credentials of this server, not those of its caller. The body need not be JSON.
  if (response.status === 401 || response.status === 403) {
    yield* Effect.logError(`The store rejects the token of this server (status ${response.status}).`)
    return yield* badGateway
  }
  return yield* HttpServerResponse.json(yield* response.json, { status: response.status })
}).pipe(
  // The caller may try again later. Other token errors need a change by an operator.
  Effect.catchIf(AccessTokenError.isTransient, (error) =>
    Effect.zipRight(
      Effect.logWarning(error),
      HttpServerResponse.json({ error: "the store cannot be reached" }, { status: 503 })
    )),
  Effect.catchAll((error) => Effect.zipRight(Effect.logError(error), badGateway))
)

const router = HttpRouter.get(health, "/orders/:id", order)

const ServerLive = HttpServer.serve(router).pipe(
  HttpServer.withLogAddress,
  Layer.provide(NodeHttpServer.layerConfig(createServer, {
    port: Config.withDefault(Config.integer("PORT"), 8080),
    host: Config.succeed("127.0.0.1")
  })),
  // Provided last, so that it shuts down after the server, which waits for the requests in flight.
  Layer.provide(StoreAuthLive)
)

NodeRuntime.runMain(Layer.launch(ServerLive))
