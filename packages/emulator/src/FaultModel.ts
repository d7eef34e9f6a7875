/**
 * The steps of a script of faults.
 *
 * @since 1.0.0
 */
import type * as Data from "effect/Data"
import type * as Duration from "effect/Duration"

/**
 * The requests to which a step applies: those to the token endpoint or those to the protected API.
 *
 * @see Fault.status
 *
 * @since 1.0.0
 * @category models
 */
export type Target = "token" | "api"

/**
 * The end of a connection after the bytes of a step: it is closed, reset (RST), or stays open without more bytes.
 * Over TLS, a reset is a close without `close_notify`.
 *
 * @see Fault.raw
 *
 * @since 1.0.0
 * @category models
 */
export type Ending = "Close" | "Reset" | "Silence"

/**
 * The moment at which the emulator breaks off: when the connection opens, after the request and before the response, in
 * the middle of the headers, or in the middle of the body.
 *
 * @see Fault.reset, Fault.close, Fault.silence
 *
 * @since 1.0.0
 * @category models
 */
export type Moment = "connection" | "answer" | "headers" | "body"

/**
 * The target of a redirect: the other origin (`elsewhere` of the running emulator), another path of the same origin,
 * the same URL again, or exactly the given `location`.
 *
 * @see Fault.redirect
 *
 * @since 1.0.0
 * @category models
 */
export type RedirectTarget = "elsewhere" | "itself" | "loop" | {
  /** The exact value of `Location`. Default: the response has no such header. */
  readonly location?: string | undefined
}

/**
 * The flaw of a TLS server: a bad certificate, or TLS 1.1 as its only version.
 *
 * @see Fault.tls
 *
 * @since 1.0.0
 * @category models
 */
export type TlsFlaw = "SelfSigned" | "Expired" | "WrongHost" | "Tls1.1"

/**
 * One step, as created by the functions of `Fault`. Every case has `on`, and `times`: a whole number from 1, or
 * `Infinity`. If the scenario of a step was given by name, `scenario` is that name. The normal response is the one that
 * the emulator sends without a fault.
 *
 * - `Answer`: Responds with exactly this status, these headers and these bytes after `delay`.
 * - `Delay`: Sends the normal response after `delay`.
 * - `Hang`: Sends nothing until the client disconnects.
 * - `Amend`: Sends the normal response with changed fields and more headers.
 * - `Gzip`: Sends the normal response, compressed.
 * - `Continue`: Sends a 100 Continue and then the normal response.
 * - `Revoke`: Revokes all existing tokens and then sends the normal response.
 * - `Echo`: Responds with an error that repeats the body of the request.
 * - `RetryDate`: Responds with a date in `Retry-After` and no body.
 * - `Drip`: Sends a body without end, one space at a time.
 * - `Flood`: Sends a body of `bytes` bytes as fast as the client reads it.
 * - `Redirect`: Redirects to the target `to`.
 * - `Raw`: Sends bytes instead of a response, and then ends the connection as `ending` says.
 * - `Stale`: Resets a connection that had an earlier request, when the next request arrives on it.
 * - `Connection`: Sends bytes on a new connection before a request arrives, and then ends it as `ending` says.
 * - `Tls`: Passes a new connection to a TLS server with a flaw.
 *
 * @see Fault.match
 *
 * @since 1.0.0
 * @category models
 */
export type Fault = Data.TaggedEnum<{
  Answer: OnRequest & {
    readonly delay: Duration.DurationInput
    readonly status: number
    readonly headers: Headers
    readonly body: Uint8Array
  }
  Delay: OnRequest & { readonly delay: Duration.DurationInput }
  Hang: OnRequest
  Amend: OnRequest & { readonly fields: Readonly<Record<string, unknown>>; readonly headers: Headers }
  Gzip: OnRequest
  Continue: OnRequest
  Revoke: OnRequest
  Echo: OnRequest & { readonly status: number }
  RetryDate: OnRequest & { readonly status: number; readonly wait: Duration.DurationInput }
  Drip: OnRequest & { readonly status: number; readonly every: Duration.DurationInput }
  Flood: OnRequest & { readonly status: number; readonly bytes: number }
  Redirect: OnRequest & { readonly status: number; readonly to: RedirectTarget }
  Raw: OnRequest & { readonly bytes: Uint8Array; readonly ending: Ending }
  Stale: OnRequest
  Connection: OnConnection & { readonly bytes: Uint8Array; readonly ending: Ending }
  Tls: OnConnection & { readonly flaw: TlsFlaw }
}>

/**
 * Headers by name. A header with several values is sent several times.
 *
 * @see Fault.status
 *
 * @since 1.0.0
 * @category models
 */
export type Headers = Readonly<Record<string, string | ReadonlyArray<string>>>

interface Step<On> {
  readonly on: On
  readonly times: number
  readonly scenario?: string | undefined
}

type OnRequest = Step<Target>
type OnConnection = Step<"connection">

/**
 * A step, or several steps in order, for `fail` of the running emulator.
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
 * @since 1.0.0
 * @category models
 */
export type Script = Fault | ReadonlyArray<Fault>

/**
 * The options of every step.
 *
 * @see Fault.hang
 *
 * @since 1.0.0
 * @category models
 */
export interface Options {
  /** The requests to which it applies. Default: `"token"`. */
  readonly on?: Target | undefined
  /** The number of requests to which it applies: a whole number from 1, or `Infinity` for all. Default: 1. */
  readonly times?: number | undefined
}

/**
 * The options of a step that responds with a status.
 *
 * @see Fault.status
 *
 * @since 1.0.0
 * @category models
 */
export interface AnswerOptions extends Options {
  /** Sent without changes. A body without a `Content-Type` is sent as `application/json`. */
  readonly headers?: Headers | undefined
  /** How long the response is delayed. Default: not at all. */
  readonly delay?: Duration.DurationInput | undefined
}

/**
 * The options of a step that responds with a long body.
 *
 * @see Fault.drip
 *
 * @since 1.0.0
 * @category models
 */
export interface StatusOptions extends Options {
  /** The status of the response, a whole number from 200 to 999. Default: 200. */
  readonly status?: number | undefined
}
