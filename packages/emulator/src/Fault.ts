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
import type * as Model from "./FaultModel.js"
import * as rawResponses from "./internal/rawResponses.js"

/** Documented in `FaultModel`. */
export type { AnswerOptions, Ending, Fault, Headers, Moment, Options } from "./FaultModel.js"
/** Documented in `FaultModel`. */
export type { RedirectTarget, Script, StatusOptions, Target, TlsFlaw } from "./FaultModel.js"

const cases = Data.taggedEnum<Model.Fault>()

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
 *   Continue: () => false, Revoke: () => false, Echo: () => false, RetryDate: () => false, Drip: () => false,
 *   Flood: () => false, Redirect: () => false, Raw: () => false, Stale: () => false,
 *   Connection: () => true, Tls: () => true
 * })
 * ```
 *
 * @since 1.0.0
 * @category pattern matching
 */
export const match = cases.$match

const onRequest = (options: Model.Options | undefined) => {
  const { on = "token", times = 1 } = options ?? {}
  return { on, times }
}

const withStatus = (options: Model.StatusOptions | undefined) => {
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
  options?: Model.AnswerOptions & {
    /** Text or bytes. Default: none. */
    readonly body?: string | Uint8Array | undefined
  }
): Model.Fault => {
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
export const body = (body: string | Uint8Array, options?: Model.AnswerOptions): Model.Fault =>
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
export const delay = (delay: Duration.DurationInput, options?: Model.Options): Model.Fault =>
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
export const hang = (options?: Model.Options): Model.Fault => cases.Hang(onRequest(options))

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
  options?: Model.Options & {
    /** Headers to add or to replace. Default: none. */
    readonly headers?: Model.Headers | undefined
  }
): Model.Fault => {
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
export const gzip = (options?: Model.Options): Model.Fault => cases.Gzip(onRequest(options))

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
export const unaskedContinue = (options?: Model.Options): Model.Fault => cases.Continue(onRequest(options))

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
export const revoke = (options?: Model.Options): Model.Fault => cases.Revoke(onRequest(options))

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
export const echo = (status: number, options?: Model.Options): Model.Fault =>
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
export const retryDate = (status: number, wait: Duration.DurationInput, options?: Model.Options): Model.Fault =>
  cases.RetryDate({ ...onRequest(options), status, wait })

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
export const drip = (every: Duration.DurationInput = 50, options?: Model.StatusOptions): Model.Fault =>
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
export const flood = (bytes: number, options?: Model.StatusOptions): Model.Fault =>
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
export const bomb = (megabytes = 100, options?: Model.StatusOptions): Model.Fault =>
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
export const redirect = (status: number, to: Model.RedirectTarget, options?: Model.Options): Model.Fault =>
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
  ending: Model.Ending = "Close",
  options?: Model.Options
): Model.Fault => cases.Raw({ ...onRequest(options), bytes: bytes(response), ending })

/** On `"connection"` there is no request yet, so `on` cannot apply. */
const breakOff = (ending: Model.Ending) => (moment: Model.Moment, options?: Model.Options): Model.Fault =>
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
export const reset: (moment: Model.Moment, options?: Model.Options) => Model.Fault = breakOff("Reset")

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
export const close: (moment: Model.Moment, options?: Model.Options) => Model.Fault = breakOff("Close")

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
export const silence: (moment: Model.Moment, options?: Model.Options) => Model.Fault = breakOff("Silence")

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
export const badChunks = (options?: Model.Options): Model.Fault => raw(rawResponses.badChunks, "Close", options)

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
export const contradictingLengths = (options?: Model.Options): Model.Fault =>
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
export const notHttp = (options?: Model.Options): Model.Fault => raw(rawResponses.notHttp, "Close", options)

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
export const hugeHeaders = (options?: Model.Options): Model.Fault => raw(rawResponses.hugeHeaders, "Close", options)

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
export const stale = (options?: Model.Options): Model.Fault => cases.Stale(onRequest(options))

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
export const tls = (flaw: Model.TlsFlaw, options?: Pick<Model.Options, "times">): Model.Fault =>
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
export const unfinishedHandshake = (options?: Pick<Model.Options, "times">): Model.Fault =>
  cases.Connection({ ...onConnection(options?.times), bytes: rawResponses.halfServerHello, ending: "Silence" })
