/** Reads, creates and copies the errors of the HTTP client, which differ between Effect 3 and Effect 4. */
import * as HttpClientError from "effect/http/HttpClientError"
import type * as HttpClientRequest from "effect/http/HttpClientRequest"
import type * as HttpClientResponse from "effect/http/HttpClientResponse"

/** The error of reading a body. */
export type BodyError = HttpClientError.HttpClientError

export const isEmptyBody = ({ reason }: BodyError): boolean => reason._tag === "EmptyBodyError"

/** The response in the error of a client that fails because of a status, such as `filterStatusOk`. */
export const statusResponse = (error: unknown): HttpClientResponse.HttpClientResponse | undefined =>
  HttpClientError.isHttpClientError(error) && error.reason._tag === "StatusCodeError" ? error.reason.response : undefined

export const make = (
  reason: "InvalidUrl" | "Transport" | "Encode",
  request: HttpClientRequest.HttpClientRequest,
  cause: Error
): HttpClientError.HttpClientError =>
  new HttpClientError.HttpClientError({
    reason: new HttpClientError[`${reason}Error`]({ request, cause, description: cause.message })
  })

/** Copies an error with another request, response and cause. */
export const copy = ({ reason }: HttpClientError.HttpClientError, change: {
  readonly request: (request: HttpClientRequest.HttpClientRequest) => HttpClientRequest.HttpClientRequest
  readonly response: (response: HttpClientResponse.HttpClientResponse) => HttpClientResponse.HttpClientResponse
  readonly cause: (cause: unknown) => unknown
}): HttpClientError.HttpClientError => {
  const changed = { ...reason, request: change.request(reason.request), cause: change.cause(reason.cause) }
  return new HttpClientError.HttpClientError({
    reason: "response" in changed
      ? new HttpClientError[changed._tag]({ ...changed, response: change.response(changed.response) })
      : new HttpClientError[changed._tag](changed)
  })
}
