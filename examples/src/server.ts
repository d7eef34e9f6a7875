/**
 * A server that calls the store's API for each request, and tells whether it lives (`/health`) and whether it can call the
 * store (`/ready`). SIGTERM ends it: what is in flight is answered first.
 */
import { createServer } from "node:http"
import { HttpRouter, HttpServer, HttpServerResponse } from "@effect/platform"
import { NodeHttpServer, NodeRuntime } from "@effect/platform-node"
import { AccessTokenError, AuthorizedHttpClient } from "@store-api/core"
import { NodeStoreAuth } from "@store-api/platform-node"
import { Config, Effect, Layer } from "effect"
import { health } from "./recipes/health.js"

const order = Effect.gen(function*() {
  const { id = "" } = yield* HttpRouter.params
  const client = yield* AuthorizedHttpClient.AuthorizedHttpClient
  const response = yield* client.get(`/orders/${encodeURIComponent(id)}`)
  const body = yield* response.json
  // A word on our credentials: whoever called us would take it for one on theirs.
  if (response.status === 401 || response.status === 403) {
    yield* Effect.logWarning(`the store answers ${response.status} to our token`)
    return yield* HttpServerResponse.json({ error: "the store refused this server" }, { status: 502 })
  }
  return yield* HttpServerResponse.json(body, { status: response.status })
}).pipe(
  // Ours to mend, and over in a while: whoever called us may come again.
  Effect.catchIf(AccessTokenError.isAccessTokenError, (error) =>
    Effect.zipRight(
      Effect.logWarning(error.message),
      HttpServerResponse.json({ error: "the store cannot be reached" }, { status: 503 })
    )),
  Effect.catchAll(() => HttpServerResponse.json({ error: "the store did not answer" }, { status: 502 }))
)

const router = HttpRouter.get(health, "/orders/:id", order)

const ServerLive = HttpServer.serve(router).pipe(
  HttpServer.withLogAddress,
  Layer.provide(NodeHttpServer.layerConfig(createServer, {
    port: Config.withDefault(Config.integer("PORT"), 8080),
    host: Config.succeed("127.0.0.1")
  })),
  // Last, so that it ends after the server, which waits for what is in flight.
  Layer.provide(NodeStoreAuth.layerConfig())
)

NodeRuntime.runMain(Layer.launch(ServerLive))
