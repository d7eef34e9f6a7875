import * as Effect from "effect/Effect"
import * as HttpClientResponse from "effect/http/HttpClientResponse"
import * as HttpIncomingMessage from "effect/http/HttpIncomingMessage"
import * as Inspectable from "effect/Inspectable"
import { pipeArguments } from "effect/Pipeable"
import type { BodyError } from "./httpErrors.js"

/** A response that stands for another one: what the HTTP client's interface has besides request and body. */
export abstract class ResponseBase extends Inspectable.Class {
  readonly [HttpClientResponse.TypeId]: typeof HttpClientResponse.TypeId = HttpClientResponse.TypeId
  readonly [HttpIncomingMessage.TypeId]: typeof HttpIncomingMessage.TypeId = HttpIncomingMessage.TypeId
  /** Private, because `inspect` prints all other fields. */
  readonly #received: HttpClientResponse.HttpClientResponse

  constructor(received: HttpClientResponse.HttpClientResponse) {
    super()
    this.#received = received
  }

  /** What replaces an error of the other response. */
  protected abstract hidden(error: BodyError): BodyError

  get url() {
    return this.#received.url
  }

  get status() {
    return this.#received.status
  }

  get headers() {
    return this.#received.headers
  }

  get cookies() {
    return this.#received.cookies
  }

  get remoteAddress() {
    return this.#received.remoteAddress
  }

  get upgrade() {
    return Effect.mapError(this.#received.upgrade, (error) => this.hidden(error))
  }

  pipe() {
    return pipeArguments(this, arguments)
  }
}
