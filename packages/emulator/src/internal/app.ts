/** The handlers of the emulator and of the second origin. */
import type { Socket } from "node:net"
import * as HttpServerResponse from "@effect/platform/HttpServerResponse"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import { decode, perform } from "./performFault.js"
import * as protectedApi from "./protectedApi.js"
import * as requests from "./request.js"
import { nameOfFault, type RequestLog } from "./requestLog.js"
import type { Settings } from "./settings.js"
import * as steering from "./steering.js"
import * as tokenEndpoint from "./tokenEndpoint.js"

interface Parts extends steering.Parts {
  readonly secondOrigin: string
}

/** Records a request and reads its body. Then performs the next fault for it, or responds as specified. */
export const emulator = (parts: Parts) => {
  const { faults, log, secondOrigin, settings, tokens } = parts
  const usedSockets = new WeakSet<Socket>()
  return Effect.gen(function*() {
    const request = yield* requests.current(settings)
    if (settings.steering && steering.isFor(request)) return yield* steering.respond(request, parts)
    const { socket } = request.incoming
    const isReused = usedSockets.has(socket)
    usedSockets.add(socket)
    const endpoint = request.kind === "token" ? tokenEndpoint : protectedApi
    return yield* log.record(request, endpoint.maxBodyBytes, (body, update) => {
      const fault = faults.take(request.kind, isReused)
      const because = Option.map(fault, nameOfFault)
      update({ reason: because })
      const response = request.kind === "other"
        ? Effect.succeed(notFound(settings))
        : Effect.suspend(() => endpoint.respond(request, body, settings, tokens))
      const regular = Effect.map(response, (response) => {
        const { access_token: token = "", error_description, message } = contentOf(response)
        if (response.status >= 400) {
          update({ reason: Option.orElse(because, () => Option.fromNullable(error_description ?? message)) })
        } else if (request.kind === "token") update({ token: tokens.get(token) })
        return response
      })
      return Option.match(fault, {
        onNone: () => regular,
        onSome: (fault) => perform(fault, { request, body, regular, settings, tokens, secondOrigin })
      })
    })
  })
}

/** The token, or the sentence of a refusal. The emulator writes it, so it holds nothing of the request. */
const contentOf = ({ body }: HttpServerResponse.HttpServerResponse) =>
  (body._tag === "Uint8Array" ? decode(body.body) : {}) as Partial<Record<string, string>> // those that are read

const notFound = ({ basePath }: Settings) =>
  HttpServerResponse.unsafeJson({ message: `This server has no path outside ${basePath}/.` }, { status: 404 })

const foreignToken = Effect.succeed(
  HttpServerResponse.unsafeJson({ access_token: "token-of-another-origin", token_type: "bearer", expires_in: 3600 })
)

/** Responds to every request with a token, so that a client that follows a redirect here succeeds. */
export const secondOrigin = (settings: Settings, log: RequestLog) =>
  Effect.flatMap(
    requests.current(settings),
    (request) => log.record(request, tokenEndpoint.maxBodyBytes, () => foreignToken)
  )
