/**
 * Faults on demand: the steps of a script for `fail` of the running emulator.
 *
 * A step applies to the next `times` requests to the token endpoint or to the API, as `on` says. Steps with the same
 * `on` apply in order. A request for which no step is left receives the normal response.
 *
 * @since 1.0.0
 */
import * as Data from "effect/Data"
import type * as Duration from "effect/Duration"
import * as rawResponses from "./internal/rawResponses.js"

/**
 * The requests to which a step applies: those to the token endpoint or those to the protected API.
 *
 * @see status
 *
 * @since 1.0.0
 * @category models
 */
export type Target = "token" | "api"

/**
 * The end of a connection after the bytes of a step: it is closed, reset (RST), or stays open without more bytes.
 * Over TLS, a reset is a close without `close_notify`.
 *
 * @see raw
 *
 * @since 1.0.0
 * @category models
 */
export type Ending = "Close" | "Reset" | "Silence"

/**
 * The moment at which the emulator breaks off: when the connection opens, after the request and before the response, in
 * the middle of the headers, or in the middle of the body.
 *
 * @see reset, close, silence
 *
 * @since 1.0.0
 * @category models
 */
export type Moment = "connection" | "answer" | "headers" | "body"

/**
 * The target of a redirect: the other origin (`elsewhere` of the running emulator), another path of the same origin,
 * the same URL again, or exactly the given `location`.
 *
 * @see redirect
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
 * @see tls
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
 * - `ForgetNonces`: Makes all nonces of proofs stale and then sends the normal response.
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
 * @see match
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
  Amend: OnRequest & {
    readonly fields: Readonly<Record<string, unknown>>
    readonly headers: Headers
  }
  Gzip: OnRequest
  Continue: OnRequest
  Revoke: OnRequest
  ForgetNonces: OnRequest
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
 * @see status
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
 * @see hang
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
 * @see status
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
 * @see drip
 *
 * @since 1.0.0
 * @category models
 */
export interface StatusOptions extends Options {
  /** The status of the response, a whole number from 200 to 999. Default: 200. */
  readonly status?: number | undefined
}

const cases = Data.taggedEnum<Fault>()

/**
 * Returns a predicate for the steps of one case.
 *
 * @example
 * ```ts
 * import { Emulator, Fault } from "@store-api/emulator"
 * import { Effect } from "effect"
 *
 * const hanging = Effect.flatMap(Emulator.Emulator, ({ pendingFaults }) => pendingFaults).pipe(
 *   Effect.map((faults) => faults.filter(Fault.is("Hang")).length)
 * )
 * ```
 *
 * @since 1.0.0
 * @category pattern matching
 */
export const is = cases.$is

/**
 * Takes a function for each case, and calls the one for the case of the step.
 *
 * @example
 * ```ts
 * import { Fault } from "@store-api/emulator"
 *
 * const isOnConnection = Fault.match({
 *   Answer: () => false, Delay: () => false, Hang: () => false, Amend: () => false, Gzip: () => false,
 *   Continue: () => false, Revoke: () => false, ForgetNonces: () => false, Echo: () => false, RetryDate: () => false,
 *   Drip: () => false, Flood: () => false, Redirect: () => false, Raw: () => false, Stale: () => false,
 *   Connection: () => true, Tls: () => true
 * })
 * ```
 *
 * @since 1.0.0
 * @category pattern matching
 */
export const match = cases.$match

const onRequest = (options: Options | undefined) => {
  const { on = "token", times = 1 } = options ?? {}
  return { on, times }
}

const withStatus = (options: StatusOptions | undefined) => {
  const { status = 200 } = options ?? {}
  return { ...onRequest(options), status }
}

const onConnection = (times = 1) => ({ on: "connection" as const, times })

const bytes = (body: string | Uint8Array): Uint8Array =>
  typeof body === "string" ? new TextEncoder().encode(body) : body

/**
 * Responds with a status, and optionally headers and a body. The status is a whole number from 200 to 999. As for every
 * step, `fail` fails with `EmulatorError` if a value cannot be used.
 *
 * @example
 * ```ts
 * import { Emulator, Fault } from "@store-api/emulator"
 * import { Effect } from "effect"
 *
 * const program = Effect.gen(function*() {
 *   const emulator = yield* Emulator.Emulator
 *   yield* emulator.fail([
 *     Fault.status(503, { headers: { "Retry-After": "1" } }),
 *     Fault.status(401, { on: "api", body: `{"message":"no entitlement"}` })
 *   ])
 * })
 * ```
 *
 * @since 1.0.0
 * @category constructors
 */
export const status = (
  status: number,
  options?: AnswerOptions & {
    /** Text or bytes. Default: none. */
    readonly body?: string | Uint8Array | undefined
  }
): Fault => {
  const { body = "", delay = 0, headers = {} } = options ?? {}
  return cases.Answer({ ...onRequest(options), delay, status, headers, body: bytes(body) })
}

/**
 * Responds with status 200 and exactly this body, such as a broken token response.
 *
 * @example
 * ```ts
 * import { Fault } from "@store-api/emulator"
 *
 * const truncated = Fault.body(`{"access_token":"an-inv`)
 * ```
 *
 * @since 1.0.0
 * @category constructors
 */
export const body = (body: string | Uint8Array, options?: AnswerOptions): Fault =>
  status(200, { ...options, body })

/**
 * Sends the normal response after a delay, by the emulator's clock.
 *
 * @example
 * ```ts
 * import { Fault } from "@store-api/emulator"
 *
 * const slow = Fault.delay("12 seconds", { times: 2 })
 * ```
 *
 * @since 1.0.0
 * @category constructors
 */
export const delay = (delay: Duration.DurationInput, options?: Options): Fault =>
  cases.Delay({ ...onRequest(options), delay })

/**
 * Never responds. The request ends when the client disconnects or the emulator stops.
 *
 * @example
 * ```ts
 * import { Fault } from "@store-api/emulator"
 *
 * const never = Fault.hang({ on: "api" })
 * ```
 *
 * @since 1.0.0
 * @category constructors
 */
export const hang = (options?: Options): Fault => cases.Hang(onRequest(options))

/**
 * Changes fields of the normal response, and leaves out those that are `undefined`. A response with a status other than
 * 200 is not changed.
 *
 * @example
 * ```ts
 * import { Fault } from "@store-api/emulator"
 *
 * const short = Fault.fields({ expires_in: "2", scope: undefined })
 * ```
 *
 * @since 1.0.0
 * @category constructors
 */
export const fields = (
  fields: Readonly<Record<string, unknown>>,
  options?: Options & {
    /** Headers to add or to replace. Default: none. */
    readonly headers?: Headers | undefined
  }
): Fault => {
  const { headers = {} } = options ?? {}
  return cases.Amend({ ...onRequest(options), fields, headers })
}

/**
 * Compresses the normal response with gzip, whether or not the request accepts it. A response with a status other than
 * 200 is not changed.
 *
 * @example
 * ```ts
 * import { Fault } from "@store-api/emulator"
 *
 * const compressed = Fault.gzip()
 * ```
 *
 * @since 1.0.0
 * @category constructors
 */
export const gzip = (options?: Options): Fault => cases.Gzip(onRequest(options))

/**
 * Sends a 100 Continue that the client did not request (RFC 9110 §15.2.1), and then the normal response.
 *
 * @example
 * ```ts
 * import { Fault } from "@store-api/emulator"
 *
 * const continued = Fault.unaskedContinue()
 * ```
 *
 * @since 1.0.0
 * @category constructors
 */
export const unaskedContinue = (options?: Options): Fault => cases.Continue(onRequest(options))

/**
 * Revokes all existing tokens when the request arrives, and then sends the normal response: on the API, a 401 for this
 * request and for all others with these tokens.
 *
 * @example
 * ```ts
 * import { Fault } from "@store-api/emulator"
 *
 * const revoked = Fault.revoke({ on: "api" })
 * ```
 *
 * @since 1.0.0
 * @category constructors
 */
export const revoke = (options?: Options): Fault => cases.Revoke(onRequest(options))

/**
 * Makes all nonces for proofs (RFC 9449 §8, §9) stale when the request arrives, and then sends the normal response: one
 * that asks for a new nonce. Without the option `dpop`, or with `"no-nonce"`, it changes nothing.
 *
 * @example
 * ```ts
 * import { Fault } from "@store-api/emulator"
 *
 * const stale = Fault.forgetNonces({ on: "api" })
 * ```
 *
 * @since 1.0.0
 * @category constructors
 */
export const forgetNonces = (options?: Options): Fault =>
  cases.ForgetNonces(onRequest(options))

/**
 * Responds with an error whose description repeats the body of the request, including the credentials. The status is a
 * whole number from 200 to 999.
 *
 * @example
 * ```ts
 * import { Fault } from "@store-api/emulator"
 *
 * const echoed = Fault.echo(400)
 * ```
 *
 * @since 1.0.0
 * @category constructors
 */
export const echo = (status: number, options?: Options): Fault =>
  cases.Echo({ ...onRequest(options), status })

/**
 * Responds without a body and with a date in `Retry-After` (RFC 9110 §10.2.3): the time of the response plus `wait`, in
 * whole seconds. The status is a whole number from 200 to 999. More than a year counts as a year.
 *
 * @example
 * ```ts
 * import { Fault } from "@store-api/emulator"
 *
 * const later = Fault.retryDate(503, "3 seconds")
 * ```
 *
 * @since 1.0.0
 * @category constructors
 */
export const retryDate = (
  status: number,
  wait: Duration.DurationInput,
  options?: Options
): Fault => cases.RetryDate({ ...onRequest(options), status, wait })

/**
 * Sends the headers at once and then one space per interval, without end. The interval is more than zero; default: 50
 * milliseconds.
 *
 * @example
 * ```ts
 * import { Fault } from "@store-api/emulator"
 *
 * const trickle = Fault.drip("1 second", { status: 500 })
 * ```
 *
 * @since 1.0.0
 * @category constructors
 */
export const drip = (every: Duration.DurationInput = 50, options?: StatusOptions): Fault =>
  cases.Drip({ ...withStatus(options), every })

/**
 * Sends a body of this many bytes as fast as the client reads it; `Infinity` is a body without end.
 *
 * @example
 * ```ts
 * import { Fault } from "@store-api/emulator"
 *
 * const endless = Fault.flood(Infinity)
 * ```
 *
 * @since 1.0.0
 * @category constructors
 */
export const flood = (bytes: number, options?: StatusOptions): Fault =>
  cases.Flood({ ...withStatus(options), bytes })

/**
 * Sends a decompression bomb: this many megabytes of zeros, compressed with gzip to a thousandth of their size.
 * A whole number from 1 to 1024. Default: 100.
 *
 * @example
 * ```ts
 * import { Fault } from "@store-api/emulator"
 *
 * const bomb = Fault.bomb(10)
 * ```
 *
 * @since 1.0.0
 * @category constructors
 */
export const bomb = (megabytes = 100, options?: StatusOptions): Fault =>
  cases.Answer({
    ...withStatus(options),
    delay: 0,
    headers: { "Content-Encoding": "gzip" },
    // `fail` refuses the number of megabytes.
    body: rawResponses.bomb(megabytes) as Uint8Array
  })

/**
 * Responds with a redirect (RFC 9110 §15.4). The status is a whole number from 300 to 399.
 *
 * @example
 * ```ts
 * import { Fault } from "@store-api/emulator"
 *
 * const away = Fault.redirect(307, "elsewhere")
 * ```
 *
 * @since 1.0.0
 * @category constructors
 */
export const redirect = (status: number, to: RedirectTarget, options?: Options): Fault =>
  cases.Redirect({ ...onRequest(options), status, to })

/**
 * Writes exactly these bytes to the socket, such as an invalid HTTP response, and then ends the connection, by default
 * with `"Close"`.
 *
 * @example
 * ```ts
 * import { Fault } from "@store-api/emulator"
 *
 * const garbage = Fault.raw("HTTP/1.1 2oo OK\r\n\r\n", "Reset")
 * ```
 *
 * @since 1.0.0
 * @category constructors
 */
export const raw = (
  response: string | Uint8Array,
  ending: Ending = "Close",
  options?: Options
): Fault => cases.Raw({ ...onRequest(options), bytes: bytes(response), ending })

/** On `"connection"` there is no request yet, so `on` cannot apply. */
const breakOff = (ending: Ending) => (moment: Moment, options?: Options): Fault =>
  moment === "connection"
    ? cases.Connection({ ...onConnection(options?.times), bytes: bytes(""), ending })
    : raw(rawResponses.sentBefore[moment], ending, options)

/**
 * Resets the connection (RST) at this moment. On `"connection"`, the step applies to the next connections that open,
 * and `on` has no effect. The same holds for `close` and `silence`.
 *
 * @example
 * ```ts
 * import { Fault } from "@store-api/emulator"
 *
 * const broken = Fault.reset("headers", { times: 2 })
 * ```
 *
 * @since 1.0.0
 * @category constructors
 */
export const reset: (moment: Moment, options?: Options) => Fault = breakOff("Reset")

/**
 * Closes the connection (FIN) at this moment, before the response is complete.
 *
 * @example
 * ```ts
 * import { Fault } from "@store-api/emulator"
 *
 * const cut = Fault.close("body")
 * ```
 *
 * @since 1.0.0
 * @category constructors
 */
export const close: (moment: Moment, options?: Options) => Fault = breakOff("Close")

/**
 * Sends nothing more after this moment, and keeps the connection open.
 *
 * @example
 * ```ts
 * import { Fault } from "@store-api/emulator"
 *
 * const silent = Fault.silence("connection")
 * ```
 *
 * @since 1.0.0
 * @category constructors
 */
export const silence: (moment: Moment, options?: Options) => Fault = breakOff("Silence")

/**
 * Sends a chunked body whose chunk has no size (RFC 9112 §7.1), followed by a token that a client would accept if it
 * ignored the error.
 *
 * @example
 * ```ts
 * import { Fault } from "@store-api/emulator"
 *
 * const unreadable = Fault.badChunks()
 * ```
 *
 * @since 1.0.0
 * @category constructors
 */
export const badChunks = (options?: Options): Fault =>
  raw(rawResponses.badChunks, "Close", options)

/**
 * Sends two different values of `Content-Length` (RFC 9110 §8.6), followed by a token.
 *
 * @example
 * ```ts
 * import { Fault } from "@store-api/emulator"
 *
 * const ambiguous = Fault.contradictingLengths()
 * ```
 *
 * @since 1.0.0
 * @category constructors
 */
export const contradictingLengths = (options?: Options): Fault =>
  raw(rawResponses.contradictingLengths, "Close", options)

/**
 * Sends the greeting of a mail server instead of an HTTP response.
 *
 * @example
 * ```ts
 * import { Fault } from "@store-api/emulator"
 *
 * const mail = Fault.notHttp()
 * ```
 *
 * @since 1.0.0
 * @category constructors
 */
export const notHttp = (options?: Options): Fault =>
  raw(rawResponses.notHttp, "Close", options)

/**
 * Sends a megabyte of headers, followed by a token.
 *
 * @example
 * ```ts
 * import { Fault } from "@store-api/emulator"
 *
 * const large = Fault.hugeHeaders()
 * ```
 *
 * @since 1.0.0
 * @category constructors
 */
export const hugeHeaders = (options?: Options): Fault =>
  raw(rawResponses.hugeHeaders, "Close", options)

/**
 * Resets the connection when a request arrives on one that had an earlier request, as a server does with an idle pooled
 * connection. The step does not apply to the first request on a connection.
 *
 * @example
 * ```ts
 * import { Fault } from "@store-api/emulator"
 *
 * const idle = Fault.stale()
 * ```
 *
 * @since 1.0.0
 * @category constructors
 */
export const stale = (options?: Options): Fault => cases.Stale(onRequest(options))

/**
 * Passes the next connection to a TLS server with this flaw. Needs an emulator with `tls`; without it, `fail` fails.
 *
 * @example
 * ```ts
 * import { Fault } from "@store-api/emulator"
 *
 * const expired = Fault.tls("Expired")
 * ```
 *
 * @since 1.0.0
 * @category constructors
 */
export const tls = (flaw: TlsFlaw, options?: Pick<Options, "times">): Fault =>
  cases.Tls({ ...onConnection(options?.times), flaw })

/**
 * Sends the first bytes of a TLS handshake on the next connection, and nothing more.
 *
 * @example
 * ```ts
 * import { Fault } from "@store-api/emulator"
 *
 * const stuck = Fault.unfinishedHandshake()
 * ```
 *
 * @since 1.0.0
 * @category constructors
 */
export const unfinishedHandshake = (options?: Pick<Options, "times">): Fault =>
  cases.Connection({
    ...onConnection(options?.times),
    bytes: rawResponses.halfServerHello,
    ending: "Silence"
  })
