/**
 * The laboratory's process: starts emulators on request, on Node and loopback only. Prints its URL. Exits when its
 * stdin ends, so that no process remains.
 */
import { createServer } from "node:http"
import { HttpMiddleware, HttpRouter, HttpServer, HttpServerRequest, HttpServerResponse } from "@effect/platform"
import { NodeHttpServer } from "@effect/platform-node"
import { Emulator, type RecordedRequest, Scenario } from "@store-api/emulator"
import { Array as Arr, Console, Effect, Exit, Layer, Logger, Option, Redacted, Schema, Scope } from "effect"
import { Seen, Setup, Started, View } from "./Laboratory.js"

interface Running {
  readonly emulator: Emulator.Service
  readonly scope: Scope.CloseableScope
}

const running = new Map<number, Running>()
let started = 0

const plain = (value: string | Redacted.Redacted | undefined) =>
  value === undefined ? null : Redacted.isRedacted(value) ? Redacted.value(value) : value

const seen = (request: RecordedRequest.RecordedRequest) =>
  new Seen({
    kind: request.kind,
    status: Option.getOrNull(request.status),
    contentType: plain(request.headers["content-type"]),
    authorized: Option.isSome(request.authorization),
    body: Redacted.value(request.body)
  })

const find = Effect.gen(function*() {
  const { id } = yield* HttpRouter.schemaPathParams(Schema.Struct({ id: Schema.NumberFromString }))
  return yield* Effect.fromNullable(running.get(id))
})

const start = Effect.gen(function*() {
  const { tls, tokenLife } = yield* HttpServerRequest.schemaBodyJson(Setup)
  const scope = yield* Scope.make()
  const emulator = yield* Scope.extend(
    Emulator.make({ tls, tokenLife: tokenLife === null ? undefined : `${Number(tokenLife)} millis` }),
    scope
  )
  const id = ++started
  running.set(id, { emulator, scope })
  return yield* HttpServerResponse.schemaJson(Started)(
    new Started({
      id,
      url: emulator.url,
      elsewhere: emulator.elsewhere.url,
      clientId: Emulator.demoClient.clientId,
      clientSecret: Redacted.value(Emulator.demoClient.clientSecret)
    })
  )
})

const stop = Effect.gen(function*() {
  const { scope } = yield* find
  yield* Scope.close(scope, Exit.void)
  return HttpServerResponse.empty()
})

const view = Effect.gen(function*() {
  const { emulator } = yield* find
  return yield* HttpServerResponse.schemaJson(View)(
    new View({
      requests: (yield* emulator.requests).map(seen),
      elsewhere: (yield* emulator.elsewhere.requests).map(seen),
      tokens: (yield* emulator.tokens).map(({ value }) => Redacted.value(value))
    })
  )
})

const revoke = Effect.gen(function*() {
  const { emulator } = yield* find
  yield* emulator.revoke()
  return HttpServerResponse.empty()
})

const Wanted = Schema.Struct({
  scenario: Schema.Literal(...(Scenario.names as [Scenario.Name])),
  times: Schema.NullOr(Schema.Number)
})

const fail = Effect.gen(function*() {
  const { emulator } = yield* find
  const { scenario, times } = yield* HttpServerRequest.schemaBodyJson(Wanted)
  yield* emulator.fail(
    Arr.ensure(Scenario.get(scenario)).map((step) => (times === null ? step : { ...step, times }))
  )
  return HttpServerResponse.empty()
})

const app = HttpRouter.empty.pipe(
  HttpRouter.post("/emulators", start),
  HttpRouter.get("/emulators/:id", view),
  HttpRouter.post("/emulators/:id/stop", stop),
  HttpRouter.post("/emulators/:id/revoke", revoke),
  HttpRouter.post("/emulators/:id/fail", fail),
  Effect.tapErrorCause((cause) => Console.error(cause))
)

const announce = HttpServer.addressFormattedWith((url) => Console.log(url))

const server = Layer.effectDiscard(announce).pipe(
  Layer.provideMerge(HttpServer.serve(app, HttpMiddleware.withLoggerDisabled)),
  Layer.provide(NodeHttpServer.layer(createServer, { host: "127.0.0.1", port: 0 }))
)

const inputEnds = Effect.async<void>((resume) => {
  process.stdin.resume().once("close", () => resume(Effect.void)).once("end", () => resume(Effect.void))
})

await Effect.runPromise(
  Layer.launch(server).pipe(Effect.raceFirst(inputEnds), Effect.provide(Logger.remove(Logger.defaultLogger)))
)
process.exit(0)
