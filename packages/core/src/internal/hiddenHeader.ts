import * as Headers from "@effect/platform/Headers"
import * as HttpClientError from "@effect/platform/HttpClientError"
import type * as HttpClientRequest from "@effect/platform/HttpClientRequest"
import * as HttpClientResponse from "@effect/platform/HttpClientResponse"
import * as HttpIncomingMessage from "@effect/platform/HttpIncomingMessage"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Stream from "effect/Stream"
import * as httpErrors from "./httpErrors.js"
import { ResponseBase } from "./responseBase.js"

/**
 * Removes the header with the token from the request inside responses and errors. Effect's loggers redact it there, but
 * `console.error`, `JSON.stringify` and `inspect` print it. A `body` in memory replaces the body of the response.
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
  const response: HiddenHeader["response"] = (original, body) => new ResponseWithoutHeader(original, hide, body)
  return {
    response,
    error: <E>(failure: E, body: Option.Option<Blob>) =>
      HttpClientError.isHttpClientError(failure)
        ? httpErrors.replace(failure, hide, (original) => response(original, body)) as E & typeof failure
        : failure
  }
}

/** Returns a copy of the request with its class and all its properties, but without the header. */
const withoutHeader = (
  request: HttpClientRequest.HttpClientRequest,
  name: string
): HttpClientRequest.HttpClientRequest =>
  Object.assign(Object.create(Object.getPrototypeOf(request) as object) as typeof request, request, {
    headers: Headers.remove(request.headers, name)
  })

/**
 * A response whose request, output and errors lack the header. Its fields are private because `inspect` prints others.
 */
class ResponseWithoutHeader extends ResponseBase implements HttpClientResponse.HttpClientResponse {
  readonly #original: HttpClientResponse.HttpClientResponse
  readonly #hide: (request: HttpClientRequest.HttpClientRequest) => HttpClientRequest.HttpClientRequest
  readonly #body: Option.Option<Blob>
  #request: HttpClientRequest.HttpClientRequest | undefined

  constructor(
    original: HttpClientResponse.HttpClientResponse,
    hide: (request: HttpClientRequest.HttpClientRequest) => HttpClientRequest.HttpClientRequest,
    body: Option.Option<Blob>
  ) {
    super(original)
    this.#original = original
    this.#hide = hide
    this.#body = body
  }

  get request() {
    return this.#request ??= this.#hide(this.#original.request)
  }

  get json() {
    return Effect.mapError(this.#readable.json, (error) => this.hidden(error))
  }

  get text() {
    return Effect.mapError(this.#readable.text, (error) => this.hidden(error))
  }

  get urlParamsBody() {
    return Effect.mapError(this.#readable.urlParamsBody, (error) => this.hidden(error))
  }

  get formData() {
    return Effect.mapError(this.#readable.formData, (error) => this.hidden(error))
  }

  get arrayBuffer() {
    return Effect.mapError(this.#readable.arrayBuffer, (error) => this.hidden(error))
  }

  get stream() {
    return Stream.mapError(this.#readable.stream, (error) => this.hidden(error))
  }

  toJSON(): unknown {
    return HttpIncomingMessage.inspect(this, {
      _id: "@effect/platform/HttpClientResponse",
      request: this.request.toJSON(),
      status: this.status
    })
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

  protected hidden(error: httpErrors.BodyError): httpErrors.BodyError {
    return httpErrors.withResponse(error, this)
  }
}
