import * as Headers from "@effect/platform/Headers"
import * as HttpClientError from "@effect/platform/HttpClientError"
import type * as HttpClientRequest from "@effect/platform/HttpClientRequest"
import * as HttpClientResponse from "@effect/platform/HttpClientResponse"
import * as HttpIncomingMessage from "@effect/platform/HttpIncomingMessage"
import * as Effect from "effect/Effect"
import * as Inspectable from "effect/Inspectable"
import * as Option from "effect/Option"
import * as Stream from "effect/Stream"

/**
 * Removes the header that carries the token from the request inside responses and errors. Only Effect's own loggers redact
 * it there: `console.error`, `JSON.stringify` and `inspect` print it. A body that was read into memory replaces the
 * response's own.
 */
export interface HiddenHeader {
  readonly response: (
    response: HttpClientResponse.HttpClientResponse,
    body: Option.Option<Blob>
  ) => HttpClientResponse.HttpClientResponse
  readonly error: <E>(error: E, body: Option.Option<Blob>) => E
}

export const make = (name: string): HiddenHeader => {
  const hide = (request: HttpClientRequest.HttpClientRequest): HttpClientRequest.HttpClientRequest =>
    name in request.headers ? withoutHeader(request, name) : request
  const response: HiddenHeader["response"] = (received, body) => new ResponseWithoutHeader(received, hide, body)
  const error = (error: HttpClientError.HttpClientError, body: Option.Option<Blob>) =>
    error._tag === "RequestError"
      ? new HttpClientError.RequestError({ ...error, cause: error.cause, request: hide(error.request) })
      : responseError(error, response(error.response, body))
  return {
    response,
    error: <E>(failure: E, body: Option.Option<Blob>) =>
      HttpClientError.isHttpClientError(failure) ? error(failure, body) as E & typeof failure : failure
  }
}

const responseError = (
  error: HttpClientError.ResponseError,
  response: HttpClientResponse.HttpClientResponse
): HttpClientError.ResponseError =>
  new HttpClientError.ResponseError({ ...error, cause: error.cause, request: response.request, response })

/** Copies the request, whatever its class and its other properties are. */
const withoutHeader = (
  request: HttpClientRequest.HttpClientRequest,
  name: string
): HttpClientRequest.HttpClientRequest =>
  Object.assign(Object.create(Object.getPrototypeOf(request) as object) as typeof request, request, {
    headers: Headers.remove(request.headers, name)
  })

/** A response whose request, printing and errors lack the header. Private fields, because `inspect` prints all others. */
class ResponseWithoutHeader extends Inspectable.Class implements HttpClientResponse.HttpClientResponse {
  readonly #received: HttpClientResponse.HttpClientResponse
  readonly #hide: (request: HttpClientRequest.HttpClientRequest) => HttpClientRequest.HttpClientRequest
  readonly #body: Option.Option<Blob>
  #request: HttpClientRequest.HttpClientRequest | undefined

  constructor(
    received: HttpClientResponse.HttpClientResponse,
    hide: (request: HttpClientRequest.HttpClientRequest) => HttpClientRequest.HttpClientRequest,
    body: Option.Option<Blob>
  ) {
    super()
    this.#received = received
    this.#hide = hide
    this.#body = body
  }

  get [HttpClientResponse.TypeId](): HttpClientResponse.TypeId {
    return HttpClientResponse.TypeId
  }

  get [HttpIncomingMessage.TypeId](): HttpIncomingMessage.TypeId {
    return HttpIncomingMessage.TypeId
  }

  get request() {
    return this.#request ??= this.#hide(this.#received.request)
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
    return Effect.mapError(this.#content.json, (error) => this.#error(error))
  }

  get text() {
    return Effect.mapError(this.#content.text, (error) => this.#error(error))
  }

  get urlParamsBody() {
    return Effect.mapError(this.#content.urlParamsBody, (error) => this.#error(error))
  }

  get formData() {
    return Effect.mapError(this.#content.formData, (error) => this.#error(error))
  }

  get arrayBuffer() {
    return Effect.mapError(this.#content.arrayBuffer, (error) => this.#error(error))
  }

  get stream() {
    return Stream.mapError(this.#content.stream, (error) => this.#error(error))
  }

  toJSON(): unknown {
    return HttpIncomingMessage.inspect(this, {
      _id: "@effect/platform/HttpClientResponse",
      request: this.request.toJSON(),
      status: this.status
    })
  }

  /** Where the body is read from. From memory it can be read more than once. */
  get #content(): HttpClientResponse.HttpClientResponse {
    return Option.match(this.#body, {
      onNone: () => this.#received,
      onSome: (body) => {
        // `formData` needs the type. `Response` throws when it cannot be the value of a header.
        const typed = Option.liftThrowable((type: string) => new Response(body, { headers: { "content-type": type } }))
        const response = Option.flatMap(Headers.get(this.headers, "content-type"), typed)
        return HttpClientResponse.fromWeb(this.request, Option.getOrElse(response, () => new Response(body)))
      }
    })
  }

  #error(error: HttpClientError.ResponseError): HttpClientError.ResponseError {
    return responseError(error, this)
  }
}
