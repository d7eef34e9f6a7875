import * as Headers from "@effect/platform/Headers"
import * as HttpClientError from "@effect/platform/HttpClientError"
import type * as HttpClientRequest from "@effect/platform/HttpClientRequest"
import * as HttpClientResponse from "@effect/platform/HttpClientResponse"
import * as HttpIncomingMessage from "@effect/platform/HttpIncomingMessage"
import * as Effect from "effect/Effect"
import * as Inspectable from "effect/Inspectable"
import * as Option from "effect/Option"
import * as Stream from "effect/Stream"
import * as httpErrors from "../httpErrors.js"

/**
 * Removes the header with the token from the request and the response inside an error of the HTTP client. Effect's
 * loggers redact it there, but `console.error`, `JSON.stringify` and `inspect` print it. A `body` in memory replaces
 * the body of the response.
 */
export const errorWithoutHeader = <E>(error: E, name: string, body: Option.Option<Blob>): E =>
  HttpClientError.isHttpClientError(error)
    ? httpErrors.replace(
      error,
      (request) => withoutHeader(request, name),
      (response) => new ResponseWithoutHeader(response, name, body)
    ) as E & typeof error
    : error

/** Returns a copy of the request with its class and all its properties, but without the header. */
const withoutHeader = (
  request: HttpClientRequest.HttpClientRequest,
  name: string
): HttpClientRequest.HttpClientRequest =>
  name in request.headers
    ? Object.assign(Object.create(Object.getPrototypeOf(request) as object) as typeof request, request, {
      headers: Headers.remove(request.headers, name)
    })
    : request

/**
 * A response whose request, output and errors lack the header. Its fields are private because `inspect` prints others.
 */
export class ResponseWithoutHeader extends Inspectable.Class implements HttpClientResponse.HttpClientResponse {
  readonly #original: HttpClientResponse.HttpClientResponse
  readonly #name: string
  readonly #body: Option.Option<Blob>
  #request: HttpClientRequest.HttpClientRequest | undefined

  constructor(original: HttpClientResponse.HttpClientResponse, name: string, body: Option.Option<Blob>) {
    super()
    this.#original = original
    this.#name = name
    this.#body = body
  }

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

  get request() {
    return this.#request ??= withoutHeader(this.#original.request, this.#name)
  }

  get json() {
    return this.#hiding(this.#readable.json)
  }

  get text() {
    return this.#hiding(this.#readable.text)
  }

  get urlParamsBody() {
    return this.#hiding(this.#readable.urlParamsBody)
  }

  get formData() {
    return this.#hiding(this.#readable.formData)
  }

  get arrayBuffer() {
    return this.#hiding(this.#readable.arrayBuffer)
  }

  get stream(): HttpClientResponse.HttpClientResponse["stream"] {
    return Stream.mapError(this.#readable.stream, (error) => httpErrors.withResponse(error, this))
  }

  toJSON(): unknown {
    return HttpIncomingMessage.inspect(this, {
      _id: "@effect/platform/HttpClientResponse",
      request: this.request.toJSON(),
      status: this.status
    })
  }

  #hiding<A>(body: Effect.Effect<A, httpErrors.BodyError>): Effect.Effect<A, httpErrors.BodyError> {
    return Effect.mapError(body, (error) => httpErrors.withResponse(error, this))
  }

  /** The response whose body is read. A body in memory can be read more than once. */
  get #readable(): HttpClientResponse.HttpClientResponse {
    return Option.match(this.#body, {
      onNone: () => this.#original,
      onSome: (body) => {
        // `formData` needs the content type, and `Response` throws if it is not a valid header value.
        const responseOf = Option.liftThrowable((type: string) =>
          new Response(body, { headers: { "content-type": type } })
        )
        const response = Option.flatMap(Headers.get(this.headers, "content-type"), responseOf)
        return HttpClientResponse.fromWeb(this.request, Option.getOrElse(response, () => new Response(body)))
      }
    })
  }
}
