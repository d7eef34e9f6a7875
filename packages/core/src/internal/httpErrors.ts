/** Reads, creates and copies the errors of the HTTP client, which differ between Effect 3 and Effect 4. */
import * as HttpClientError from "@effect/platform/HttpClientError"
import type * as HttpClientRequest from "@effect/platform/HttpClientRequest"
import type * as HttpClientResponse from "@effect/platform/HttpClientResponse"

/** The error of reading a body. */
export type BodyError = HttpClientError.ResponseError

export const isEmptyBody = (error: BodyError): boolean => error.reason === "EmptyBody"

/** The response in the error of a client that fails because of a status, such as `filterStatusOk`. */
export const statusResponse = (
  error: unknown
): HttpClientResponse.HttpClientResponse | undefined =>
  HttpClientError.isHttpClientError(error) && error.reason === "StatusCode"
    ? error.response
    : undefined

export const make = (
  reason: "InvalidUrl" | "Transport" | "Encode",
  request: HttpClientRequest.HttpClientRequest,
  cause: Error
): HttpClientError.HttpClientError =>
  new HttpClientError.RequestError({ request, reason, cause, description: cause.message })

/** Copies an error with another request, response and cause. */
export const copy = (error: HttpClientError.HttpClientError, change: {
  readonly request: (
    request: HttpClientRequest.HttpClientRequest
  ) => HttpClientRequest.HttpClientRequest
  readonly response: (
    response: HttpClientResponse.HttpClientResponse
  ) => HttpClientResponse.HttpClientResponse
  readonly error: (error: unknown) => unknown
}): HttpClientError.HttpClientError => {
  const changed = { request: change.request(error.request), cause: change.error(error.cause) }
  return error._tag === "RequestError"
    ? new HttpClientError.RequestError({ ...error, ...changed })
    : new HttpClientError.ResponseError({
      ...error,
      ...changed,
      response: change.response(error.response)
    })
}
