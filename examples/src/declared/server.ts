/** A server of the declared API. It accepts the tokens of an emulator. */
import { createServer } from "node:http"
import { HttpApiBuilder, HttpLayerRouter as HttpRouter, HttpServer } from "@effect/platform"
import { NodeHttpServer } from "@effect/platform-node"
import type { Emulator } from "@store-api/emulator"
import { DateTime, Effect, Layer, Option, Redacted, Ref } from "effect"
import { Bearer, Order, StoreApi, Unauthorized } from "./api.js"

/** Accepts tokens that the emulator has issued and that have neither expired nor been revoked. */
const layer = (emulator: Emulator.Service, orders: Ref.Ref<ReadonlyArray<Order>>) =>
  HttpRouter.serve(HttpRouter.addHttpApi(StoreApi), {
    disableListenLog: true,
    disableLogger: true
  }).pipe(
    Layer.provide(HttpApiBuilder.group(StoreApi, "orders", (handlers) =>
      handlers
        .handle("list", () => Ref.get(orders))
        .handle("place", ({ payload }) =>
          Ref.modify(orders, (all) => {
            const order = new Order({ id: all.length + 1, item: payload.item })
            return [order, [...all, order]]
          })))),
    Layer.provide(Layer.succeed(Bearer, {
      bearer: (sent) =>
        Effect.gen(function*() {
          const now = yield* DateTime.now
          const tokens = yield* emulator.tokens
          const live = tokens.some(({ expiresAt, revokedAt, value }) =>
            Option.isNone(revokedAt) && DateTime.lessThan(now, expiresAt) &&
            Redacted.value(value) === Redacted.value(sent)
          )
          if (!live) yield* new Unauthorized()
        })
    })),
    Layer.provideMerge(NodeHttpServer.layer(createServer, { port: 0, host: "127.0.0.1" }))
  )

/** Its URL, and the orders that it received. The server stops with the scope. */
export const make = (emulator: Emulator.Service) =>
  Effect.gen(function*() {
    const orders = yield* Ref.make<ReadonlyArray<Order>>([])
    const context = yield* Layer.build(layer(emulator, orders))
    const { address } = yield* Effect.provide(HttpServer.HttpServer, context)
    if (!("port" in address)) return yield* Effect.dieMessage("no port")
    return { apiUrl: `http://127.0.0.1:${address.port}`, orders }
  })
