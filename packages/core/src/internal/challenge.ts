import type * as HttpClientResponse from "@effect/platform/HttpClientResponse"

/**
 * Whether a 401 says that another token would not be let in either: the client lacks a scope (RFC 6750 §3.1), or, in the
 * words of a gateway, no product that the client may use matches the request.
 */
export const noTokenHelps = ({ headers }: HttpClientResponse.HttpClientResponse): boolean =>
  /insufficient_scope|NoApiProductMatch|no api ?product match/i.test(headers["www-authenticate"] ?? "")
