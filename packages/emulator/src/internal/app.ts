/** The handlers of the emulator, of its connections, and of the second origin. */
import type { Socket } from "node:net"
import * as Effect from "effect/Effect"
import * as FiberSet from "effect/FiberSet"
import * as Option from "effect/Option"
import { perform } from "./performFault.js"
import * as protectedApi from "./protectedApi.js"
import * as requests from "./request.js"
import { nameOfFault, type RequestLog } from "./requestLog.js"
import { type Accept, breakOff, type OnRefusal } from "./server.js"
import type { Settings } from "./settings.js"
import * as signatureChecks from "./signatures.js"
import * as steering from "./steering.js"
import * as tokenEndpoint from "./tokenEndpoint.js"

/** Records a request and reads its body. Then performs the next fault for it, or responds as specified. */
export const serve = (parts: steering.Parts) =>
  Effect.gen(function*() {
    const { faults, log, secondOrigin, settings } = parts
    const signatures = signatureChecks.make(settings)
    const usedSockets = new WeakSet<Socket>()
    const steer = yield* steering.make(parts)
    return Effect.gen(function*() {
      const request = yield* requests.readRequest(settings)
      if (settings.steering && steering.isFor(request)) return yield* steer(request)
      const { socket } = request.incoming
      const isReused = usedSockets.has(socket)
      usedSockets.add(socket)
      const endpoint = request.kind === "token" ? tokenEndpoint : protectedApi
      return yield* log.record(request, endpoint.maxBodyBytes, (exchange) => {
        const fault = faults.take(request.kind, isReused)
        const because = Option.map(Option.fromNullable(fault), nameOfFault)
        exchange.update({ reason: because })
        const respond = Effect.zipRight(
          signatures.sendNonce(request),
          endpoint.respond(exchange, signatures)
        )
        const regular = Effect.catchAll(respond, ({ reason, response }) => {
          exchange.update({ reason: Option.orElse(because, () => Option.some(reason)) })
          return Effect.succeed(response)
        })
        return fault === undefined
          ? regular
          : perform(fault, {
            ...exchange,
            regular,
            secondOrigin,
            forgetNonces: signatures.forgetNonces
          })
      })
    })
  })

/** Logs the requests to which Node responds by itself. */
export const logRefusals = (log: RequestLog) =>
  Effect.map(
    FiberSet.makeRuntime(),
    (run): OnRefusal => (status, reason) => void run(log.refusal(status, reason))
  )

/** Performs the next fault for a connection, or passes it to the server. */
export const acceptConnection = ({ faults, log, tls }: steering.Parts) =>
  Effect.map(FiberSet.makeRuntime(), (run): Accept => (socket, serve) => {
    const fault = faults.take("connection")
    if (fault !== undefined) run(log.connection(socket, fault))
    if (fault?._tag === "Connection") {
      // Node reports the end of the connection only to a reader.
      socket.on("error", () => undefined).on("end", () => socket.destroy()).resume()
      run(breakOff(socket, fault.bytes, fault.ending))
    } else if (tls === undefined) serve(socket)
    else tls.accept(socket, fault?._tag === "Tls" ? fault.flaw : undefined, serve)
  })

const foreignToken = requests.jsonResponse({
  access_token: "token-of-another-origin",
  token_type: "bearer",
  expires_in: 3600
})

/** Responds to every request with a token, so that a client that follows a redirect here succeeds. */
export const serveSecondOrigin = (settings: Settings, log: RequestLog) =>
  Effect.flatMap(
    requests.readRequest(settings),
    (request) =>
      log.record(request, tokenEndpoint.maxBodyBytes, () => Effect.succeed(foreignToken))
  )
