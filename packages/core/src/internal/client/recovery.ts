import type * as HttpClientRequest from "@effect/platform/HttpClientRequest"
import type * as HttpClientResponse from "@effect/platform/HttpClientResponse"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import type { AccessToken } from "../../AccessToken.js"
import * as boundedBody from "../boundedBody.js"
import { sameValue } from "../repeatedToken.js"
import { type Attempt, isRepeatable, rejectedOf, result, type Send, type Sent } from "./attempt.js"

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
  const recover = (request: HttpClientRequest.HttpClientRequest, first: Attempt<E>, sent: Sent) =>
    Effect.gen(function*() {
      yield* invalidate(sent.token)
      const cached = Option.flatten(yield* Effect.option(current))
      // The provider keeps a rejected token if too many tokens were rejected before.
      const isKept = Option.exists(cached, (cached) => sameValue(cached, sent.token))
      if (isKept || !isRepeatable(sent) || !(yield* retryUnauthorized)) return yield* result(first, header)
      // The token request may need the connection that the unread 401 occupies.
      yield* boundedBody.drain(first.response)
      return yield* send(request, (repeated) => {
        const rejected = rejectedOf(repeated)
        const response = result(repeated, header)
        return rejected === undefined ? response : Effect.zipRight(invalidate(rejected.token), response)
      })
    })

  return (request: HttpClientRequest.HttpClientRequest) =>
    send(request, (first): Effect.Effect<HttpClientResponse.HttpClientResponse, E, R> => {
      const rejected = rejectedOf(first)
      return rejected === undefined ? result(first, header) : recover(request, first, rejected)
    })
}
