import * as Headers from "@effect/platform/Headers"
import type * as HttpClientResponse from "@effect/platform/HttpClientResponse"
import * as Option from "effect/Option"

/**
 * Whether a 401 says that another token would not be let in either: the client lacks a scope (RFC 6750 §3.1), or, in the
 * words of a gateway, no product that the client may use matches the request.
 */
export const noTokenHelps = ({ headers }: HttpClientResponse.HttpClientResponse): boolean =>
  Option.exists(
    Headers.get(headers, "www-authenticate"),
    (challenge) => /insufficient_scope|NoApiProductMatch|no api ?product match/i.test(challenge)
  )
