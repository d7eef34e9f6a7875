import * as Headers from "@effect/platform/Headers"
import * as HttpClientError from "@effect/platform/HttpClientError"
import type * as HttpClientRequest from "@effect/platform/HttpClientRequest"
import type * as HttpClientResponse from "@effect/platform/HttpClientResponse"
import * as Effect from "effect/Effect"
import * as Inspectable from "effect/Inspectable"
import * as Option from "effect/Option"
import * as Stream from "effect/Stream"
import * as httpErrors from "../httpErrors.js"

/**
 * Removes the header with the token from the request and the response inside an error of the HTTP client, and inside
 * its cause. Effect's loggers redact it there, but `console.error`, `JSON.stringify` and `inspect` print it.
 */
export const errorWithoutHeader = <E>(error: E, header: string): E =>
  HttpClientError.isHttpClientError(error)
    ? httpErrors.copy(error, {
      request: (request) => requestWithoutHeader(request, header),
      response: (response) => responseWithoutHeader(response, header),
      cause: (cause) => errorWithoutHeader(cause, header)
    }) as E & typeof error // A copy of an error has its class.
    : error

/** Returns a copy of the request with its class and all its properties, but without the header. */
const requestWithoutHeader = (
  request: HttpClientRequest.HttpClientRequest,
  header: string
): HttpClientRequest.HttpClientRequest =>
  header in request.headers
    ? Object.assign(
      Object.create(Object.getPrototypeOf(request) as object) as typeof request,
      request,
      {
        // A proof of possession (RFC 9449), which other packages add, is as private as the token.
        headers: Headers.remove(Headers.remove(request.headers, header), "dpop")
      }
    )
    : request

/**
 * Returns the response with a request that lacks the header, also in its output and its errors. An object that inherits
 * from the response would still show the header, because a response of `HttpClient` delegates to a second one, and that
 * of node:http keeps the request in a closure. The target of the proxy is empty, because `inspect` can show the target.
 */
export const responseWithoutHeader = (
  original: HttpClientResponse.HttpClientResponse,
  header: string
): HttpClientResponse.HttpClientResponse => {
  let request: HttpClientRequest.HttpClientRequest | undefined
  const hide = <E>(error: E) => errorWithoutHeader(error, header)
  // The handler has all other members.
  const printed = Object.create(Inspectable.BaseProto) as HttpClientResponse.HttpClientResponse
  const response = new Proxy(printed, {
    has: (_, key) => key in original,
    get: (_, key): unknown => {
      if (key === "request") return request ??= requestWithoutHeader(original.request, header)
      if (key === "toJSON") {
        return () => ({ ...original.toJSON() as object, request: response.request.toJSON() })
      }
      if (key === "stream") return Stream.mapError(original.stream, hide)
      const value: unknown = Reflect.get(key in printed ? printed : original, key)
      // The effects that read the body. An option is an effect too.
      return Effect.isEffect(value) && !Option.isOption(value)
        ? Effect.mapError(value, hide)
        : value
    }
  })
  return response
}
