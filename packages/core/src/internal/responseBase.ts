import * as HttpClientResponse from "@effect/platform/HttpClientResponse"
import * as HttpIncomingMessage from "@effect/platform/HttpIncomingMessage"
import * as Inspectable from "effect/Inspectable"
import type { BodyError } from "./httpErrors.js"

/** Forwards all properties of a response except its request and its body. */
export abstract class ResponseBase extends Inspectable.Class {
  /** Private, because `inspect` prints other fields. */
  readonly #original: HttpClientResponse.HttpClientResponse

  constructor(original: HttpClientResponse.HttpClientResponse) {
    super()
    this.#original = original
  }

  /** Returns a copy of an error of the original response without the header. */
  protected abstract hidden(error: BodyError): BodyError

  get [HttpClientResponse.TypeId](): HttpClientResponse.TypeId {
    return HttpClientResponse.TypeId
  }

  get [HttpIncomingMessage.TypeId](): HttpIncomingMessage.TypeId {
    return HttpIncomingMessage.TypeId
  }

  get status() {
    return this.#original.status
  }

  get headers() {
    return this.#original.headers
  }

  get cookies() {
    return this.#original.cookies
  }

  get remoteAddress() {
    return this.#original.remoteAddress
  }
}
