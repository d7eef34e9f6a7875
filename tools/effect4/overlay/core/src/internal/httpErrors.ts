/** Reads, creates and copies the errors of the HTTP client. */
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

/** Copies an error with another response and its request. */
export const withResponse = (error: BodyError, response: HttpClientResponse.HttpClientResponse): BodyError =>
  replace(error, () => response.request, () => response)

/** Copies an error with another request and response. */
export const replace = (
  { reason }: HttpClientError.HttpClientError,
  request: (request: HttpClientRequest.HttpClientRequest) => HttpClientRequest.HttpClientRequest,
  response: (response: HttpClientResponse.HttpClientResponse) => HttpClientResponse.HttpClientResponse
): HttpClientError.HttpClientError => {
  const copied = { ...reason, cause: reason.cause, request: request(reason.request) }
  return new HttpClientError.HttpClientError({
    reason: "response" in copied
      ? new HttpClientError[copied._tag]({ ...copied, response: response(copied.response) })
      : new HttpClientError[copied._tag](copied)
  })
}
