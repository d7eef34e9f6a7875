/**
 * What a step of a script of faults is.
 *
 * @since 0.1.0
 */
import type * as Data from "effect/Data"
import type * as Duration from "effect/Duration"

/**
 * Where a step waits for its request: the token endpoint or the protected API.
 *
 * @since 0.1.0
 * @category models
 */
export type Target = "token" | "api"

/**
 * What becomes of a connection after the bytes that were sent on it. A reset over TLS is a close without notice.
 *
 * @since 0.1.0
 * @category models
 */
export type Ending = "Close" | "Reset" | "Silence"

/**
 * How far the emulator gets before it breaks off: nothing but the connection, the request read and nothing answered, the
 * middle of the headers, the middle of the body.
 *
 * @since 0.1.0
 * @category models
 */
export type Moment = "connection" | "answer" | "headers" | "body"

/**
 * Where a redirect points: the second origin (`Emulator.elsewhere`), another path here, the same URL again, or exactly
 * what `location` says; without one there is no `Location` header.
 *
 * @since 0.1.0
 * @category models
 */
export type RedirectTarget = "elsewhere" | "itself" | "loop" | { readonly location?: string | undefined }

/**
 * What is wrong with a TLS server: its certificate, or that it speaks TLS 1.1 only.
 *
 * @since 0.1.0
 * @category models
 */
export type TlsFlaw = "SelfSigned" | "Expired" | "WrongHost" | "Tls1.1"

/**
 * One step. Every case carries `on` and `times` (a whole number from 1, or `Infinity`: for ever).
 *
 * - `Answer`: after `delay`, exactly this status, these headers and these bytes.
 * - `Delay`: after `delay`, what the emulator would have answered at once.
 * - `Hang`: nothing, until the client goes away.
 * - `Amend`, `Gzip`, `Continue`: the emulator's own answer, with changed fields, compressed, or behind a 100.
 * - `Revoke`: the emulator's own answer, once all tokens so far are revoked.
 * - `Echo`: a refusal that repeats the body of the request.
 * - `RetryDate`: a refusal with a date in `Retry-After`.
 * - `Drip`, `Flood`: a body that never ends, or too late.
 * - `Redirect`: a 3xx.
 * - `Raw`: bytes instead of an answer, and what becomes of the connection.
 * - `Stale`: a connection that was used before is reset as the request arrives.
 * - `Connection`, `Tls`: a new connection is met, before there is a request.
 *
 * @since 0.1.0
 * @category models
 */
export type Fault = Data.TaggedEnum<{
  Answer: Place & {
    readonly delay: Duration.Duration
    readonly status: number
    readonly headers: Headers
    readonly body: Uint8Array
  }
  Delay: Place & { readonly delay: Duration.Duration }
  Hang: Place
  Amend: Place & { readonly fields: Readonly<Record<string, unknown>>; readonly headers: Headers }
  Gzip: Place
  Continue: Place
  Revoke: Place
  Echo: Place & { readonly status: number }
  RetryDate: Place & { readonly status: number; readonly wait: Duration.Duration }
  Drip: Place & { readonly status: number; readonly every: Duration.Duration }
  Flood: Place & { readonly status: number; readonly bytes: number }
  Redirect: Place & { readonly status: number; readonly to: RedirectTarget }
  Raw: Place & { readonly bytes: Uint8Array; readonly ending: Ending }
  Stale: Place
  Connection: OnConnection & { readonly bytes: Uint8Array; readonly ending: Ending }
  Tls: OnConnection & { readonly flaw: TlsFlaw }
}>

/**
 * Headers by name; one with several values is sent several times.
 *
 * @since 0.1.0
 * @category models
 */
export type Headers = Readonly<Record<string, string | ReadonlyArray<string>>>

interface Place {
  readonly on: Target
  readonly times: number
}

interface OnConnection {
  readonly on: "connection"
  readonly times: number
}

/**
 * A step, or several in the order in which they are taken.
 *
 * @since 0.1.0
 * @category models
 */
export type Script = Fault | ReadonlyArray<Fault>

/**
 * What every step can be told.
 *
 * @since 0.1.0
 * @category models
 */
export interface Options {
  /** Default `"token"`. */
  readonly on?: Target | undefined
  /** How many requests it is for; default 1, `Infinity` for all. */
  readonly times?: number | undefined
}

/**
 * What an answer can be told besides.
 *
 * @since 0.1.0
 * @category models
 */
export interface AnswerOptions extends Options {
  /** Sent as they are; a body without a `Content-Type` here is sent as `application/json`. */
  readonly headers?: Headers | undefined
  /** How long to wait before answering; default not at all. */
  readonly delay?: Duration.DurationInput | undefined
}

/**
 * What a body that never ends can be told besides.
 *
 * @since 0.1.0
 * @category models
 */
export interface StatusOptions extends Options {
  /** Default 200. */
  readonly status?: number | undefined
}
