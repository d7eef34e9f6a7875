import type * as HttpClientRequest from "@effect/platform/HttpClientRequest"
import type * as HttpClientResponse from "@effect/platform/HttpClientResponse"
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import type { AccessToken } from "../../AccessToken.js"
import * as boundedBody from "../boundedBody.js"
import { sameValue } from "../repeatedToken.js"
import { isRepeatable, rejectedOf, result, type Send } from "./attempt.js"

/** Milliseconds. `acquiredAt` may be this much before the token request that follows a 401, because clocks round. */
const clockRounding = 10

interface Options {
  readonly header: string
  readonly retryUnauthorized: Effect.Effect<boolean>
  readonly invalidate: (token: AccessToken) => Effect.Effect<void>
  readonly current: Effect.Effect<Option.Option<AccessToken>, unknown>
}

/**
 * Returns a function that sends a request. After a 401, it invalidates the token and repeats the request with the token
 * that the provider then returns. Fails with the error of the provider if it has none.
 *
 * It repeats the request once more if the repeat gets a 401 for a token that was acquired before the first 401: both
 * may have been revoked together, as when processes that share tokens have two. The store has then lost both. So the
 * token of a further repeat would be new, and the API rejects that too.
 */
export const make = <E, R>(send: Send<E, R>, { current, header, invalidate, retryUnauthorized }: Options) => {
  /** A 401 leads to a repeat only if its token was acquired before this time. */
  const execute = (
    request: HttpClientRequest.HttpClientRequest,
    acquiredBefore = Infinity
  ): Effect.Effect<HttpClientResponse.HttpClientResponse, E, R> =>
    send(request, (attempt) => {
      const rejected = rejectedOf(attempt)
      return rejected === undefined ? result(attempt, header) : Effect.gen(function*() {
        const now = yield* Clock.currentTimeMillis
        const { token } = rejected
        yield* invalidate(token)
        // The provider keeps a rejected token if too many tokens were rejected before.
        const isKept = Option.exists(yield* Effect.option(current), Option.exists((cached) => sameValue(cached, token)))
        const isNew = token.acquiredAt.epochMillis >= acquiredBefore
        if (isNew || isKept || !isRepeatable(rejected) || !(yield* retryUnauthorized)) {
          return yield* result(attempt, header)
        }
        // The token request may need the connection that the unread 401 occupies.
        yield* boundedBody.drain(attempt.response)
        return yield* execute(request, acquiredBefore < Infinity ? 0 : now - clockRounding)
      })
    })

  return execute
}
