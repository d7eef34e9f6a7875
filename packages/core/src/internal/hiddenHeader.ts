import * as Headers from "@effect/platform/Headers"
import * as HttpClientError from "@effect/platform/HttpClientError"
import type * as HttpClientRequest from "@effect/platform/HttpClientRequest"
import * as HttpClientResponse from "@effect/platform/HttpClientResponse"
import * as HttpIncomingMessage from "@effect/platform/HttpIncomingMessage"
import * as Effect from "effect/Effect"
import * as Inspectable from "effect/Inspectable"
import * as Stream from "effect/Stream"

/**
 * Hides a header that was added on the way from what comes back. Responses, and the errors that are made of them later
 * (`filterStatusOk`, a body that cannot be read), hold the request with all its headers, and only Effect's own loggers
 * redact those: `console.error`, `JSON.stringify` and `inspect` print them.
 */
export interface HiddenHeader {
  readonly response: (response: HttpClientResponse.HttpClientResponse) => HttpClientResponse.HttpClientResponse
  readonly error: <E>(error: E) => E
}

export const make = (name: string): HiddenHeader => {
  const request = (request: HttpClientRequest.HttpClientRequest): HttpClientRequest.HttpClientRequest =>
    name in request.headers ? withoutHeader(request, name) : request
  const response = (received: HttpClientResponse.HttpClientResponse) => new Shown(received, request, error)
  const error = <E>(error: E): E =>
    HttpClientError.isHttpClientError(error) ? rebuilt(error) as E & typeof error : error

  const rebuilt = (error: HttpClientError.HttpClientError): HttpClientError.HttpClientError => {
    const fields = {
      request: request(error.request),
      ...(error.cause !== undefined && { cause: error.cause }),
      ...(error.description !== undefined && { description: error.description })
    }
    return error._tag === "RequestError"
      ? new HttpClientError.RequestError({ ...fields, reason: error.reason })
      : new HttpClientError.ResponseError({ ...fields, reason: error.reason, response: response(error.response) })
  }

  return { response, error }
}

/** The same request in all but this, whatever else it is made of. */
const withoutHeader = (
  request: HttpClientRequest.HttpClientRequest,
  name: string
): HttpClientRequest.HttpClientRequest =>
  Object.assign(Object.create(Object.getPrototypeOf(request) as object) as typeof request, request, {
    headers: Headers.remove(request.headers, name)
  })

/** A response whose request, printing and errors lack the header; the one it stands for is out of sight. */
class Shown extends Inspectable.Class implements HttpClientResponse.HttpClientResponse {
  readonly [HttpClientResponse.TypeId]: HttpClientResponse.TypeId = HttpClientResponse.TypeId
  readonly [HttpIncomingMessage.TypeId]: HttpIncomingMessage.TypeId = HttpIncomingMessage.TypeId
  readonly #received: HttpClientResponse.HttpClientResponse
  readonly #request: (request: HttpClientRequest.HttpClientRequest) => HttpClientRequest.HttpClientRequest
  #shownRequest: HttpClientRequest.HttpClientRequest | undefined
  readonly #error: HiddenHeader["error"]

  constructor(
    received: HttpClientResponse.HttpClientResponse,
    request: (request: HttpClientRequest.HttpClientRequest) => HttpClientRequest.HttpClientRequest,
    error: HiddenHeader["error"]
  ) {
    super()
    this.#received = received
    this.#request = request
    this.#error = error
  }

  get request() {
    return this.#shownRequest ??= this.#request(this.#received.request)
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

  get json() {
    return Effect.mapError(this.#received.json, this.#error)
  }

  get text() {
    return Effect.mapError(this.#received.text, this.#error)
  }

  get urlParamsBody() {
    return Effect.mapError(this.#received.urlParamsBody, this.#error)
  }

  get formData() {
    return Effect.mapError(this.#received.formData, this.#error)
  }

  get arrayBuffer() {
    return Effect.mapError(this.#received.arrayBuffer, this.#error)
  }

  get stream() {
    return Stream.mapError(this.#received.stream, this.#error)
  }

  toJSON(): unknown {
    return HttpIncomingMessage.inspect(this, {
      _id: "@effect/platform/HttpClientResponse",
      request: this.request.toJSON(),
      status: this.status
    })
  }
}
