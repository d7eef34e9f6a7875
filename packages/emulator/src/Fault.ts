/**
 * Things that go wrong on demand: the steps of a script for `Emulator.fail`.
 *
 * A step waits until a request comes to the place it is meant for (`on`), and is used up by it, or by as many as
 * `times` says. Steps for one place are taken in order. When none is left, the emulator answers as it should.
 *
 * @since 0.1.0
 */
import * as Data from "effect/Data"
import * as Duration from "effect/Duration"
import type * as Model from "./FaultModel.js"
import * as rawAnswers from "./internal/rawAnswers.js"

/** Documented where they are defined. */
export type { AnswerOptions, Ending, Fault, Headers, Moment, Options } from "./FaultModel.js"
/** Documented where they are defined. */
export type { RedirectTarget, Script, StatusOptions, Target, TlsFlaw } from "./FaultModel.js"

const cases = Data.taggedEnum<Model.Fault>()

/**
 * Tests whether a step is of one case.
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
 * @since 0.1.0
 * @category pattern matching
 */
export const is = cases.$is

/**
 * Takes a function for each case of a step and calls the one that fits.
 *
 * @example
 * ```ts
 * import { Fault } from "@store-api/emulator"
 *
 * const meetsConnection = Fault.match({
 *   Answer: () => false, Delay: () => false, Hang: () => false, Amend: () => false, Gzip: () => false,
 *   Continue: () => false, Revoke: () => false, Echo: () => false, RetryDate: () => false, Drip: () => false,
 *   Flood: () => false, Redirect: () => false, Raw: () => false, Stale: () => false, Connection: () => true, Tls: () => true
 * })
 * ```
 *
 * @since 0.1.0
 * @category pattern matching
 */
export const match = cases.$match

const place = (options: Model.Options | undefined) => ({ on: options?.on ?? "token", times: options?.times ?? 1 })

const onConnection = (times = 1) => ({ on: "connection" as const, times })

const bytes = (body: string | Uint8Array | undefined): Uint8Array =>
  typeof body === "string" ? new TextEncoder().encode(body) : body ?? new Uint8Array()

/**
 * Answers with a status, and with a body if there is one: text or bytes, by default none. The status is a whole number from
 * 200 to 999; another one is a defect of `Emulator.fail`.
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
 * @since 0.1.0
 * @category constructors
 */
export const status = (
  status: number,
  options?: Model.AnswerOptions & {
    /** Text, or bytes; default none. */
    readonly body?: string | Uint8Array | undefined
  }
): Model.Fault =>
  cases.Answer({
    ...place(options),
    delay: Duration.decode(options?.delay ?? 0),
    status,
    headers: options?.headers ?? {},
    body: bytes(options?.body)
  })

/**
 * Answers 200 with exactly this body: an answer that is no token, or a broken one.
 *
 * @example
 * ```ts
 * import { Fault } from "@store-api/emulator"
 *
 * const truncated = Fault.body(`{"access_token":"an-inv`)
 * ```
 *
 * @since 0.1.0
 * @category constructors
 */
export const body = (body: string | Uint8Array, options?: Model.AnswerOptions): Model.Fault =>
  status(200, { ...options, body })

/**
 * Answers as the emulator should, but only after a while, by the clock of the layer.
 *
 * @example
 * ```ts
 * import { Fault } from "@store-api/emulator"
 *
 * const slow = Fault.delay("12 seconds", { times: 2 })
 * ```
 *
 * @since 0.1.0
 * @category constructors
 */
export const delay = (delay: Duration.DurationInput, options?: Model.Options): Model.Fault =>
  cases.Delay({ ...place(options), delay: Duration.decode(delay) })

/**
 * Never answers. The request ends when the client goes away or the emulator stops.
 *
 * @example
 * ```ts
 * import { Fault } from "@store-api/emulator"
 *
 * const never = Fault.hang({ on: "api" })
 * ```
 *
 * @since 0.1.0
 * @category constructors
 */
export const hang = (options?: Model.Options): Model.Fault => cases.Hang(place(options))

/**
 * The emulator's own answer with some fields changed, or left out where `undefined`; an answer other than 200 stays as it is.
 *
 * @example
 * ```ts
 * import { Fault } from "@store-api/emulator"
 *
 * const short = Fault.fields({ expires_in: "2", scope: undefined })
 * ```
 *
 * @since 0.1.0
 * @category constructors
 */
export const fields = (
  fields: Readonly<Record<string, unknown>>,
  options?: Model.Options & {
    /** Headers that are added, or take the place of its own; default none. */
    readonly headers?: Model.Headers | undefined
  }
): Model.Fault => cases.Amend({ ...place(options), fields, headers: options?.headers ?? {} })

/**
 * The emulator's own answer, compressed by gzip though nobody asked; an answer other than 200 stays as it is.
 *
 * @example
 * ```ts
 * import { Fault } from "@store-api/emulator"
 *
 * const compressed = Fault.gzip()
 * ```
 *
 * @since 0.1.0
 * @category constructors
 */
export const gzip = (options?: Model.Options): Model.Fault => cases.Gzip(place(options))

/**
 * A 100 Continue that nobody asked for (RFC 9110 §15.2.1), and behind it the emulator's own answer.
 *
 * @example
 * ```ts
 * import { Fault } from "@store-api/emulator"
 *
 * const continued = Fault.unaskedContinue()
 * ```
 *
 * @since 0.1.0
 * @category constructors
 */
export const unaskedContinue = (options?: Model.Options): Model.Fault => cases.Continue(place(options))

/**
 * The emulator's own answer, with all tokens revoked as the request arrives: a `401` for the one it carries, and for all
 * others that carry it.
 *
 * @example
 * ```ts
 * import { Fault } from "@store-api/emulator"
 *
 * const revoked = Fault.revoke({ on: "api" })
 * ```
 *
 * @since 0.1.0
 * @category constructors
 */
export const revoke = (options?: Model.Options): Model.Fault => cases.Revoke(place(options))

/**
 * A refusal whose description repeats the body of the request, credentials and all. The status is a whole number from 200 to
 * 999.
 *
 * @example
 * ```ts
 * import { Fault } from "@store-api/emulator"
 *
 * const indiscreet = Fault.echo(400)
 * ```
 *
 * @since 0.1.0
 * @category constructors
 */
export const echo = (status: number, options?: Model.Options): Model.Fault => cases.Echo({ ...place(options), status })

/**
 * An answer without a body whose `Retry-After` is the date that is so far away (RFC 9110 §10.2.3), in whole seconds. The
 * status is a whole number from 200 to 999.
 *
 * @example
 * ```ts
 * import { Fault } from "@store-api/emulator"
 *
 * const later = Fault.retryDate(503, "3 seconds")
 * ```
 *
 * @since 0.1.0
 * @category constructors
 */
export const retryDate = (status: number, wait: Duration.DurationInput, options?: Model.Options): Model.Fault =>
  cases.RetryDate({ ...place(options), status, wait: Duration.decode(wait) })

/**
 * Headers at once, and then a blank each time so much has passed, more than zero, for ever. Default 50 milliseconds.
 *
 * @example
 * ```ts
 * import { Fault } from "@store-api/emulator"
 *
 * const trickle = Fault.drip("1 second", { status: 500 })
 * ```
 *
 * @since 0.1.0
 * @category constructors
 */
export const drip = (every: Duration.DurationInput = 50, options?: Model.StatusOptions): Model.Fault =>
  cases.Drip({ ...place(options), status: options?.status ?? 200, every: Duration.decode(every) })

/**
 * A body of so many bytes, or an endless one (`Infinity`), as fast as the client reads it.
 *
 * @example
 * ```ts
 * import { Fault } from "@store-api/emulator"
 *
 * const endless = Fault.flood(Infinity)
 * ```
 *
 * @since 0.1.0
 * @category constructors
 */
export const flood = (bytes: number, options?: Model.StatusOptions): Model.Fault =>
  cases.Flood({ ...place(options), status: options?.status ?? 200, bytes })

/**
 * A decompression bomb: so many megabytes of zeros, sent as the thousandth part of them. Default 100.
 *
 * @example
 * ```ts
 * import { Fault } from "@store-api/emulator"
 *
 * const bomb = Fault.bomb(10)
 * ```
 *
 * @since 0.1.0
 * @category constructors
 */
export const bomb = (megabytes = 100, options?: Model.StatusOptions): Model.Fault =>
  status(options?.status ?? 200, {
    ...options,
    headers: { "Content-Encoding": "gzip" },
    body: rawAnswers.bomb(megabytes)
  })

/**
 * A redirect (RFC 9110 §15.4); the status is a whole number from 300 to 399.
 *
 * @example
 * ```ts
 * import { Fault } from "@store-api/emulator"
 *
 * const away = Fault.redirect(307, "elsewhere")
 * ```
 *
 * @since 0.1.0
 * @category constructors
 */
export const redirect = (status: number, to: Model.RedirectTarget, options?: Model.Options): Model.Fault =>
  cases.Redirect({ ...place(options), status, to })

/**
 * Exactly these bytes on the socket, and then its end, by default `"Close"`. Answers that no HTTP server would make are made
 * of these.
 *
 * @example
 * ```ts
 * import { Fault } from "@store-api/emulator"
 *
 * const garbage = Fault.raw("HTTP/1.1 2oo OK\r\n\r\n", "Reset")
 * ```
 *
 * @since 0.1.0
 * @category constructors
 */
export const raw = (
  answer: string | Uint8Array,
  ending: Model.Ending = "Close",
  options?: Model.Options
): Model.Fault => cases.Raw({ ...place(options), bytes: bytes(answer), ending })

/** A new connection is broken off before there is a request, so for that moment nothing can say what it is for. */
const breakOff = (ending: Model.Ending) => (moment: Model.Moment, options?: Model.Options): Model.Fault =>
  moment === "connection"
    ? cases.Connection({ ...onConnection(options?.times), bytes: bytes(""), ending })
    : raw(rawAnswers.upTo[moment], ending, options)

/**
 * Resets the connection (RST) at this moment. On `"connection"` it meets the next connections that are opened, whatever
 * they are for, and `on` does not count; so do `close` and `silence`.
 *
 * @example
 * ```ts
 * import { Fault } from "@store-api/emulator"
 *
 * const broken = Fault.reset("headers", { times: 2 })
 * ```
 *
 * @since 0.1.0
 * @category constructors
 */
export const reset: (moment: Model.Moment, options?: Model.Options) => Model.Fault = breakOff("Reset")

/**
 * Closes the connection in good order at this moment, too early.
 *
 * @example
 * ```ts
 * import { Fault } from "@store-api/emulator"
 *
 * const cut = Fault.close("body")
 * ```
 *
 * @since 0.1.0
 * @category constructors
 */
export const close: (moment: Model.Moment, options?: Model.Options) => Model.Fault = breakOff("Close")

/**
 * Sends nothing more from this moment on, and keeps the connection open.
 *
 * @example
 * ```ts
 * import { Fault } from "@store-api/emulator"
 *
 * const mute = Fault.silence("connection")
 * ```
 *
 * @since 0.1.0
 * @category constructors
 */
export const silence: (moment: Model.Moment, options?: Model.Options) => Model.Fault = breakOff("Silence")

/**
 * A chunked body whose chunk has no size (RFC 9112 §7.1). Behind it stands a token, for clients that look away.
 *
 * @example
 * ```ts
 * import { Fault } from "@store-api/emulator"
 *
 * const unreadable = Fault.badChunks()
 * ```
 *
 * @since 0.1.0
 * @category constructors
 */
export const badChunks = (options?: Model.Options): Model.Fault => raw(rawAnswers.badChunks, "Close", options)

/**
 * Two values of `Content-Length` that contradict each other (RFC 9110 §8.6), and a token behind them.
 *
 * @example
 * ```ts
 * import { Fault } from "@store-api/emulator"
 *
 * const ambiguous = Fault.contradictingLengths()
 * ```
 *
 * @since 0.1.0
 * @category constructors
 */
export const contradictingLengths = (options?: Model.Options): Model.Fault =>
  raw(rawAnswers.contradictingLengths, "Close", options)

/**
 * The greeting of another protocol, that of a mail server, in place of an answer.
 *
 * @example
 * ```ts
 * import { Fault } from "@store-api/emulator"
 *
 * const mail = Fault.notHttp()
 * ```
 *
 * @since 0.1.0
 * @category constructors
 */
export const notHttp = (options?: Model.Options): Model.Fault => raw(rawAnswers.notHttp, "Close", options)

/**
 * Headers of a megabyte, and a token behind them.
 *
 * @example
 * ```ts
 * import { Fault } from "@store-api/emulator"
 *
 * const large = Fault.hugeHeaders()
 * ```
 *
 * @since 0.1.0
 * @category constructors
 */
export const hugeHeaders = (options?: Model.Options): Model.Fault => raw(rawAnswers.hugeHeaders, "Close", options)

/**
 * A pooled connection that died: the next request on a connection that had one before is reset as it arrives. Requests
 * on new connections pass it by.
 *
 * @example
 * ```ts
 * import { Fault } from "@store-api/emulator"
 *
 * const idle = Fault.stale()
 * ```
 *
 * @since 0.1.0
 * @category constructors
 */
export const stale = (options?: Model.Options): Model.Fault => cases.Stale(place(options))

/**
 * The next connection meets a TLS server with this flaw. For an emulator with `tls`; with another, `Emulator.fail` dies.
 *
 * @example
 * ```ts
 * import { Fault } from "@store-api/emulator"
 *
 * const expired = Fault.tls("Expired")
 * ```
 *
 * @since 0.1.0
 * @category constructors
 */
export const tls = (flaw: Model.TlsFlaw, options?: Pick<Model.Options, "times">): Model.Fault =>
  cases.Tls({ ...onConnection(options?.times), flaw })

/**
 * The next connection is sent the beginning of a TLS handshake, and nothing more.
 *
 * @example
 * ```ts
 * import { Fault } from "@store-api/emulator"
 *
 * const stuck = Fault.unfinishedHandshake()
 * ```
 *
 * @since 0.1.0
 * @category constructors
 */
export const unfinishedHandshake = (options?: Pick<Model.Options, "times">): Model.Fault =>
  cases.Connection({ ...onConnection(options?.times), bytes: rawAnswers.halfServerHello, ending: "Silence" })
