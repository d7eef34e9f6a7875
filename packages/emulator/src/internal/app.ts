/** What happens to a request: written down, read, met by a fault or answered, written down again. */
import type { Socket } from "node:net"
import type * as HttpApp from "@effect/platform/HttpApp"
import * as HttpServerRequest from "@effect/platform/HttpServerRequest"
import * as HttpServerResponse from "@effect/platform/HttpServerResponse"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as bodies from "./body.js"
import * as exchanges from "./exchange.js"
import type { FaultQueue } from "./faultQueue.js"
import { perform } from "./performFault.js"
import * as protectedApi from "./protectedApi.js"
import type { RequestLog } from "./requestLog.js"
import type { Settings } from "./settings.js"
import * as tokenEndpoint from "./tokenEndpoint.js"
import type { Tokens } from "./tokens.js"

export interface Parts {
  readonly settings: Settings
  readonly tokens: Tokens
  readonly log: RequestLog
  readonly faults: FaultQueue
  /** The other origin. */
  readonly elsewhere: string
}

export const make = ({ elsewhere, faults, log, settings, tokens }: Parts): HttpApp.Default => {
  const served = new WeakSet<Socket>()
  return Effect.gen(function*() {
    const exchange = exchanges.make(yield* HttpServerRequest.HttpServerRequest, settings)
    const { socket } = exchange.incoming
    const reused = served.has(socket)
    served.add(socket)
    const entry = yield* log.open(exchange)
    const respond = Effect.gen(function*() {
      const place = exchange.kind === "token" ? tokenEndpoint : protectedApi
      const body = yield* bodies.read(exchange.incoming, place.maxBodyBytes)
      yield* entry.arrived(body.bytes, body.received)
      const regular = exchange.kind === "other"
        ? Effect.succeed(notFound(settings))
        : Effect.suspend(() => place.answer(exchange, body, settings, tokens))
      const response = yield* Option.match(faults.take(exchange.kind, reused), {
        onNone: () => regular,
        onSome: (fault) => perform(fault, { exchange, body, regular, settings, tokens, elsewhere })
      })
      yield* entry.answered(response.status)
      return response
    })
    return yield* Effect.ensuring(respond, entry.ended)
  }).pipe(
    // The platform runs handlers uninterruptibly; here a client that goes away ends its request, however long delayed.
    Effect.interruptible
  )
}

const notFound = (settings: Settings) =>
  HttpServerResponse.unsafeJson({ message: `Everything here is below ${settings.basePath}/.` }, { status: 404 })
