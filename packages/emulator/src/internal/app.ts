/** The handlers of the emulator and of the second origin. */
import type { Socket } from "node:net"
import * as HttpServerResponse from "@effect/platform/HttpServerResponse"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Schema from "effect/Schema"
import type { FaultQueue } from "./faultQueue.js"
import { type FaultContext, perform } from "./performFault.js"
import * as protectedApi from "./protectedApi.js"
import * as requests from "./request.js"
import type { RequestLog } from "./requestLog.js"
import type { Settings } from "./settings.js"
import * as tokenEndpoint from "./tokenEndpoint.js"

interface Parts extends Pick<FaultContext, "settings" | "tokens" | "secondOrigin"> {
  readonly log: RequestLog
  readonly faults: FaultQueue
}

/** Records a request and reads its body. Then performs the next fault for it, or responds as specified. */
export const emulator = ({ faults, log, secondOrigin, settings, tokens }: Parts) => {
  const usedSockets = new WeakSet<Socket>()
  return Effect.gen(function*() {
    const request = yield* requests.current(settings)
    const { socket } = request.incoming
    const isReused = usedSockets.has(socket)
    usedSockets.add(socket)
    const endpoint = request.kind === "token" ? tokenEndpoint : protectedApi
    return yield* log.record(request, endpoint.maxBodyBytes, (body, explain) => {
      const regular = request.kind === "other"
        ? Effect.succeed(notFound(settings))
        : Effect.suspend(() => endpoint.respond(request, body, settings, tokens))
      return Option.match(faults.take(request.kind, isReused), {
        onNone: () => Effect.tap(regular, (response) => Effect.sync(() => Option.map(refusalIn(response), explain))),
        onSome: (fault) => {
          explain(`fault ${fault._tag}`)
          return perform(fault, { request, body, regular, settings, tokens, secondOrigin })
        }
      })
    })
  })
}

/** The sentence of a refusal. The emulator writes it, so it holds nothing of the request. */
const refusalIn = ({ body, status }: HttpServerResponse.HttpServerResponse): Option.Option<string> =>
  status >= 400 && body._tag === "Uint8Array"
    ? Option.flatMapNullable(
      refusal(new TextDecoder().decode(body.body)),
      ({ error_description, message }) => error_description ?? message
    )
    : Option.none()

const refusal = Schema.decodeOption(Schema.parseJson(Schema.Struct({
  error_description: Schema.optional(Schema.String),
  message: Schema.optional(Schema.String)
})))

const notFound = ({ basePath }: Settings) =>
  HttpServerResponse.unsafeJson({ message: `This server has no path outside ${basePath}/.` }, { status: 404 })

const foreignToken = { access_token: "token-of-another-origin", token_type: "bearer", expires_in: 3600 }

/** Responds to every request with a token, so that a client that follows a redirect here succeeds. */
export const secondOrigin = (settings: Settings, log: RequestLog) =>
  Effect.flatMap(
    requests.current(settings),
    (request) =>
      log.record(request, tokenEndpoint.maxBodyBytes, () => Effect.succeed(HttpServerResponse.unsafeJson(foreignToken)))
  )
