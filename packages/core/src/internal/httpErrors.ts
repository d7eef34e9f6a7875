/** Reads, creates and copies the errors of the HTTP client. */
import * as HttpClientError from "@effect/platform/HttpClientError"
import type * as HttpClientRequest from "@effect/platform/HttpClientRequest"
import type * as HttpClientResponse from "@effect/platform/HttpClientResponse"

/** The error of reading a body. */
export type BodyError = HttpClientError.ResponseError

export const isEmptyBody = (error: BodyError): boolean => error.reason === "EmptyBody"

/** The response in the error of a client that fails because of a status, such as `filterStatusOk`. */
export const statusResponse = (error: unknown): HttpClientResponse.HttpClientResponse | undefined =>
  HttpClientError.isHttpClientError(error) && error.reason === "StatusCode" ? error.response : undefined

export const make = (
  reason: "InvalidUrl" | "Transport" | "Encode",
  request: HttpClientRequest.HttpClientRequest,
  cause: Error
): HttpClientError.HttpClientError =>
  new HttpClientError.RequestError({ request, reason, cause, description: cause.message })

/** Copies an error without a response, with another request. */
const withRequest = (error: HttpClientError.RequestError, request: HttpClientRequest.HttpClientRequest) =>
  new HttpClientError.RequestError({ ...error, cause: error.cause, request })

/** Copies an error with another response and its request. */
export const withResponse = (error: BodyError, response: HttpClientResponse.HttpClientResponse): BodyError =>
  new HttpClientError.ResponseError({ ...error, cause: error.cause, request: response.request, response })

/** Copies an error with another request and response. */
export const replace = (
  error: HttpClientError.HttpClientError,
  request: (request: HttpClientRequest.HttpClientRequest) => HttpClientRequest.HttpClientRequest,
  response: (response: HttpClientResponse.HttpClientResponse) => HttpClientResponse.HttpClientResponse
): HttpClientError.HttpClientError =>
  error._tag === "RequestError"
    ? withRequest(error, request(error.request))
    : withResponse(error, response(error.response))
