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
 * @see Fault.status
 *
 * @since 0.1.0
 * @category models
 */
export type Target = "token" | "api"

/**
 * What becomes of a connection after the bytes that were sent on it. A reset over TLS is a close without notice.
 *
 * @see Fault.raw
 *
 * @since 0.1.0
 * @category models
 */
export type Ending = "Close" | "Reset" | "Silence"

/**
 * How far the emulator gets before it breaks off: nothing but the connection, the request read and nothing answered, the
 * middle of the headers, the middle of the body.
 *
 * @see Fault.reset, Fault.close, Fault.silence
 *
 * @since 0.1.0
 * @category models
 */
export type Moment = "connection" | "answer" | "headers" | "body"

/**
 * Where a redirect points: the second origin (`Emulator.elsewhere`), another path here, the same URL again, or exactly
 * what `location` says; without one there is no `Location` header.
 *
 * @see Fault.redirect
 *
 * @since 0.1.0
 * @category models
 */
export type RedirectTarget = "elsewhere" | "itself" | "loop" | {
  /** Sent as it is, as the value of `Location`; default: no such header. */
  readonly location?: string | undefined
}

/**
 * What is wrong with a TLS server: its certificate, or that it speaks TLS 1.1 only.
 *
 * @see Fault.tls
 *
 * @since 0.1.0
 * @category models
 */
export type TlsFlaw = "SelfSigned" | "Expired" | "WrongHost" | "Tls1.1"

/**
 * One step, as the functions of `Fault` make it. Every case carries `on` and `times` (a whole number from 1, or `Infinity`:
 * for ever).
 *
 * - `Answer`: After `delay`, exactly this status, these headers and these bytes.
 * - `Delay`: After `delay`, what the emulator would have answered at once.
 * - `Hang`: Nothing, until the client goes away.
 * - `Amend`: The emulator's own answer with changed fields and further headers.
 * - `Gzip`: The emulator's own answer, compressed.
 * - `Continue`: The emulator's own answer behind a 100.
 * - `Revoke`: The emulator's own answer, once all tokens so far are revoked.
 * - `Echo`: A refusal that repeats the body of the request.
 * - `RetryDate`: A refusal with a date in `Retry-After`.
 * - `Drip`: A body that never ends, a blank at a time.
 * - `Flood`: A body of so many bytes, as fast as it is read.
 * - `Redirect`: A redirect to where `to` says.
 * - `Raw`: Bytes instead of an answer, and what becomes of the connection.
 * - `Stale`: A connection that was used before is reset as the request arrives.
 * - `Connection`: A new connection is sent bytes, before there is a request, and ended.
 * - `Tls`: A new connection meets a TLS server with a flaw.
 *
 * @see Fault.match
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
 * @see Fault.status
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
 * A step, or several in the order in which they are taken: what `Emulator.fail` takes.
 *
 * @example
 * ```ts
 * import { Emulator, Fault } from "@store-api/emulator"
 * import { Effect } from "effect"
 *
 * const outage: Fault.Script = [Fault.status(503, { times: 2 }), Fault.delay("2 seconds")]
 *
 * const begin = Effect.flatMap(Emulator.Emulator, (emulator) => emulator.fail(outage))
 * ```
 *
 * @since 0.1.0
 * @category models
 */
export type Script = Fault | ReadonlyArray<Fault>

/**
 * What every step can be told.
 *
 * @see Fault.hang
 *
 * @since 0.1.0
 * @category models
 */
export interface Options {
  /** Where it waits for its request; default `"token"`. */
  readonly on?: Target | undefined
  /** How many requests it is for: a whole number from 1, or `Infinity` for all; default 1. */
  readonly times?: number | undefined
}

/**
 * What an answer can be told besides.
 *
 * @see Fault.status
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
 * @see Fault.drip
 *
 * @since 0.1.0
 * @category models
 */
export interface StatusOptions extends Options {
  /** The status of its answer, a whole number from 200 to 999; default 200. */
  readonly status?: number | undefined
}
