/**
 * A request that the emulator received.
 *
 * @since 1.0.0
 */
import type * as DateTime from "effect/DateTime"
import type * as Option from "effect/Option"
import type * as Redacted from "effect/Redacted"
import type { ClientAuthentication } from "./EmulatorOptions.js"
import type { IssuedToken } from "./IssuedToken.js"

/**
 * The destination of a request: the token endpoint, the protected API (any other path below the base path), or a path
 * outside the base path.
 *
 * @see RecordedRequest
 *
 * @since 1.0.0
 * @category models
 */
export type Kind = "token" | "api" | "other"

/**
 * A request that the emulator received. Printing it in any way shows no secret and no token. A test reads a redacted
 * value with `Redacted.value`.
 *
 * @example
 * ```ts
 * import { Emulator, type RecordedRequest } from "@store-api/emulator"
 * import { Effect } from "effect"
 *
 * const isTokenRequest = ({ kind }: RecordedRequest.RecordedRequest) => kind === "token"
 *
 * const tokenRequests = Effect.flatMap(Emulator.Emulator, ({ requests }) => requests).pipe(
 *   Effect.map((requests) => requests.filter(isTokenRequest).length)
 * )
 * ```
 *
 * @since 1.0.0
 * @category models
 */
export interface RecordedRequest {
  /** The number of the request, from 1 in the order of arrival. */
  readonly id: number
  /** When it arrived, by the emulator's clock. */
  readonly startedAt: DateTime.Utc
  /** When its response was ready or its client had gone. None until then. */
  readonly endedAt: Option.Option<DateTime.Utc>
  /** The token of this emulator that it carried or received, as it was at that time. */
  readonly token: Option.Option<IssuedToken>
  /** The destination. */
  readonly kind: Kind
  /** The HTTP method as sent. */
  readonly method: string
  /**
   * Path and query as sent. If the query names or holds a credential or a token, it is replaced by `<redacted>`. If the
   * path holds one, the whole value is `<redacted>`.
   */
  readonly url: string
  /** Path and query as sent. */
  readonly rawUrl: Redacted.Redacted
  /**
   * The headers by lower-case name, with repeated ones joined by a comma. A value is redacted if its header is meant
   * for credentials, or if it holds a secret or a token of the emulator.
   */
  readonly headers: Readonly<Record<string, string | Redacted.Redacted>>
  /** The header in which the API expects the token. It is `Authorization` unless the option `header` names another. */
  readonly authorization: Option.Option<Redacted.Redacted>
  /**
   * The methods by which a token request sends credentials, whether they are accepted or not. A correct request uses
   * one. It is empty until the body has arrived.
   */
  readonly clientAuthentication: ReadonlyArray<ClientAuthentication>
  /**
   * The body as UTF-8 text, truncated to the size that the emulator accepts. It is empty until all of it has arrived.
   */
  readonly body: Redacted.Redacted
  /** The number of bytes of the body that arrived. */
  readonly bodyBytes: number
  /** The number of bytes of the response on the connection, including those of TLS. It is 0 until the response ends. */
  readonly sentBytes: number
  /** The status of the response. None until there is a response, and for a broken one. */
  readonly status: Option.Option<number>
  /**
   * Why the emulator refused the request, or which fault applied to it: `fault` and the name of its scenario, or else
   * of its case. None for any other request.
   */
  readonly reason: Option.Option<string>
}
