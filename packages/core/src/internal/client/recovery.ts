import type * as HttpClientRequest from "@effect/platform/HttpClientRequest"
import type * as HttpClientResponse from "@effect/platform/HttpClientResponse"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import type { AccessToken } from "../../AccessToken.js"
import * as boundedBody from "../boundedBody.js"
import { sameValue } from "../repeatedToken.js"
import { type Attempt, isRepeatable, rejectedToken, result, type Send } from "./attempt.js"

interface Options {
  readonly header: string
  readonly retryUnauthorized: Effect.Effect<boolean>
  readonly invalidate: (token: AccessToken) => Effect.Effect<void>
  readonly current: Effect.Effect<Option.Option<AccessToken>, unknown>
}

/**
 * Returns a function that sends a request. After a 401, it invalidates the token and repeats the request once, with
 * the token that the provider then returns. Fails with the error of the provider if it has none.
 */
export const make = <E, R>(send: Send<E, R>, { current, header, invalidate, retryUnauthorized }: Options) => {
  const recover = (request: HttpClientRequest.HttpClientRequest, rejected: Attempt<E>, token: AccessToken) =>
    Effect.gen(function*() {
      yield* invalidate(token)
      const cached = Option.flatten(yield* Effect.option(current))
      // The provider keeps a rejected token if too many tokens were rejected before.
      const isKept = Option.exists(cached, (cached) => sameValue(cached, token))
      if (isKept || !isRepeatable(rejected) || !(yield* retryUnauthorized)) return yield* result(rejected, header)
      // The token request may need the connection that the unread 401 occupies.
      yield* boundedBody.drain(rejected.response)
      return yield* send(request, (repeated) => {
        const token = rejectedToken(repeated)
        const response = result(repeated, header)
        return token === undefined ? response : Effect.zipRight(invalidate(token), response)
      })
    })

  return (request: HttpClientRequest.HttpClientRequest) =>
    send(request, (first): Effect.Effect<HttpClientResponse.HttpClientResponse, E, R> => {
      const token = rejectedToken(first)
      return token === undefined ? result(first, header) : recover(request, first, token)
    })
}
