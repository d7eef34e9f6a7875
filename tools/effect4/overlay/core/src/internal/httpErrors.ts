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

const reasons = {
  InvalidUrl: HttpClientError.InvalidUrlError,
  Transport: HttpClientError.TransportError,
  Encode: HttpClientError.EncodeError
}

export const make = (
  reason: keyof typeof reasons,
  request: HttpClientRequest.HttpClientRequest,
  cause: Error
): HttpClientError.HttpClientError =>
  new HttpClientError.HttpClientError({ reason: new reasons[reason]({ request, cause, description: cause.message }) })

interface Change {
  readonly request: (request: HttpClientRequest.HttpClientRequest) => HttpClientRequest.HttpClientRequest
  readonly response: (response: HttpClientResponse.HttpClientResponse) => HttpClientResponse.HttpClientResponse
  readonly error: (error: unknown) => unknown
}

/** Copies an error with another request, response and cause. */
export const copy = ({ reason }: HttpClientError.HttpClientError, change: Change): HttpClientError.HttpClientError =>
  new HttpClientError.HttpClientError({ reason: copyReason(reason, change) })

const copyReason = (reason: HttpClientError.HttpClientErrorReason, change: Change) => {
  const changed = { request: change.request(reason.request), cause: change.error(reason.cause) }
  switch (reason._tag) {
    case "EncodeError":
      return new HttpClientError.EncodeError({ ...reason, ...changed })
    case "InvalidUrlError":
      return new HttpClientError.InvalidUrlError({ ...reason, ...changed })
    case "TransportError":
      return new HttpClientError.TransportError({ ...reason, ...changed })
    case "DecodeError":
      return new HttpClientError.DecodeError({ ...reason, ...changed, response: change.response(reason.response) })
    case "EmptyBodyError":
      return new HttpClientError.EmptyBodyError({ ...reason, ...changed, response: change.response(reason.response) })
    case "StatusCodeError":
      return new HttpClientError.StatusCodeError({ ...reason, ...changed, response: change.response(reason.response) })
  }
}
