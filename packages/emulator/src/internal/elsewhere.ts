/** A second origin, which nothing that carries a credential has any business with. It lets everybody in. */
import * as HttpServerRequest from "@effect/platform/HttpServerRequest"
import * as HttpServerResponse from "@effect/platform/HttpServerResponse"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import type * as Scope from "effect/Scope"
import type { EmulatorError } from "../EmulatorError.js"
import type { RecordedRequest } from "../RecordedRequest.js"
import * as bodies from "./body.js"
import * as exchanges from "./exchange.js"
import * as listen from "./listen.js"
import type { Observing } from "./observer.js"
import * as requestLog from "./requestLog.js"
import type { Settings } from "./settings.js"
import type { Tokens } from "./tokens.js"

export interface Elsewhere {
  readonly url: string
  readonly requests: Effect.Effect<ReadonlyArray<RecordedRequest>>
}

const maxBodyBytes = 64 * 1024

/** What a thief would answer: a token, so that a client which came this far goes on. */
const answer = { access_token: "token-of-another-origin", token_type: "bearer", expires_in: 3600 }

export const start = (
  settings: Settings,
  observer: Observing,
  tokens: Tokens
): Effect.Effect<Elsewhere, EmulatorError, Scope.Scope> =>
  Effect.gen(function*() {
    const own = { ...settings, port: 0 }
    const log = requestLog.make(own, { ...observer, onEnd: () => Effect.void }, tokens)
    const app = Effect.gen(function*() {
      const exchange = exchanges.make(yield* HttpServerRequest.HttpServerRequest, own)
      const entry = yield* log.open(exchange)
      const body = yield* bodies.read(exchange.incoming, maxBodyBytes)
      yield* entry.arrived(body.bytes, body.received)
      yield* entry.answered(200)
      return HttpServerResponse.unsafeJson(answer)
    }).pipe(Effect.interruptible)
    const { origin } = yield* listen.listen(own, app, { take: Option.none, tls: undefined })
    return { url: origin, requests: log.all }
  })
