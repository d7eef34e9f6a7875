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
 * Makes functions that return a copy of a request, a response or an error, in which no request has the header. Errors
 * of other kinds stay as they are.
 */
export const make = (header: string) => {
  const hidden = {
    error: <E>(error: E): E =>
      HttpClientError.isHttpClientError(error)
        ? httpErrors.copy(error, hidden) as E & typeof error // A copy of an error has its class.
        : error,

    /** Keeps the class and all other properties. */
    request: (request: HttpClientRequest.HttpClientRequest): typeof request =>
      header in request.headers
        ? Object.assign(
          Object.create(Object.getPrototypeOf(request) as object) as typeof request,
          request,
          {
            // A proof of possession (RFC 9449), which other packages add, is as private as the token.
            headers: Headers.remove(Headers.remove(request.headers, header), "dpop")
          }
        )
        : request,

    /**
     * Also hides the header in the output and the errors of the response. An object that inherits from the response
     * would still show it, because a response of `HttpClient` delegates to a second one, and that of node:http keeps
     * the request in a closure. The target of the proxy is empty, because `inspect` can show the target.
     */
    response: (original: HttpClientResponse.HttpClientResponse): typeof original => {
      let request: HttpClientRequest.HttpClientRequest | undefined
      // The handler has all other members.
      const printed = Object.create(Inspectable.BaseProto) as typeof original
      const response = new Proxy(printed, {
        has: (_, key) => key in original,
        get: (_, key): unknown => {
          if (key === "request") return request ??= hidden.request(original.request)
          if (key === "toJSON") {
            return () => ({
              ...original.toJSON() as object,
              request: response.request.toJSON()
            })
          }
          if (key === "stream") return Stream.mapError(original.stream, hidden.error)
          const value: unknown = Reflect.get(key in printed ? printed : original, key)
          // The effects that read the body. An option is an effect too.
          return Effect.isEffect(value) && !Option.isOption(value)
            ? Effect.mapError(value, hidden.error)
            : value
        }
      })
      return response
    }
  }
  return hidden
}
