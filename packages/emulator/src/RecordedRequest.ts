/**
 * What arrived at the emulator.
 *
 * @since 0.1.0
 */
import type * as Option from "effect/Option"
import type * as Redacted from "effect/Redacted"

/**
 * Where a request went: the token endpoint, the protected API (any other path under the base path), or elsewhere.
 *
 * @see RecordedRequest
 *
 * @since 0.1.0
 * @category models
 */
export type Kind = "token" | "api" | "other"

/**
 * One request, in the order of arrival. Printing it shows no secret and no token, in whatever way it is printed;
 * `Redacted.value` reveals what a test wants to compare.
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
 * @since 0.1.0
 * @category models
 */
export interface RecordedRequest {
  /** Where it went. */
  readonly kind: Kind
  /** The HTTP method, as it came. */
  readonly method: string
  /**
   * Path and query as sent. A query that names or holds a credential or a token is replaced by `<redacted>`, and so is
   * everything when the path holds one.
   */
  readonly url: string
  /** Path and query as sent, whatever they hold. */
  readonly rawUrl: Redacted.Redacted
  /**
   * By lower-case name, repeated ones joined by a comma. Redacted are those that carry credentials by their name, and
   * those that hold a secret or token known to the emulator.
   */
  readonly headers: Readonly<Record<string, string | Redacted.Redacted>>
  /** The header in which the API expects the token: `Authorization`, unless `Options.header` says otherwise. */
  readonly authorization: Option.Option<Redacted.Redacted>
  /** The body as UTF-8 text; empty until it has arrived, cut at the size the emulator accepts. */
  readonly body: Redacted.Redacted
  /** How many bytes of body arrived. */
  readonly bodyBytes: number
  /** How many bytes were written to the connection as an answer; 0 until it is over, and over TLS with what TLS adds. */
  readonly sentBytes: number
  /** The status that was answered; none while there is no answer, and for ever if there never is one, or one that is broken. */
  readonly status: Option.Option<number>
}
