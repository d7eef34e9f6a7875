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

/**
 * Where a step waits for its request: the token endpoint or the protected API.
 *
 * @since 0.1.0
 * @category models
 */
export type Target = "token" | "api"

/**
 * One step. Every case carries `on` and `times` (a whole number from 1, or `Infinity`: for ever).
 *
 * - `Answer`: after `delay`, exactly this status, these headers and these bytes.
 * - `Delay`: after `delay`, what the emulator would have answered at once.
 * - `Hang`: nothing, until the client goes away.
 *
 * @since 0.1.0
 * @category models
 */
export type Fault = Data.TaggedEnum<{
  Answer: Place & {
    readonly delay: Duration.Duration
    readonly status: number
    /** A header with several values is sent several times. */
    readonly headers: Readonly<Record<string, string | ReadonlyArray<string>>>
    readonly body: Uint8Array
  }
  Delay: Place & { readonly delay: Duration.Duration }
  Hang: Place
}>

interface Place {
  readonly on: Target
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
  readonly headers?: Readonly<Record<string, string | ReadonlyArray<string>>> | undefined
  /** How long to wait before answering; default not at all. */
  readonly delay?: Duration.DurationInput | undefined
}

/**
 * Tells the cases apart: `Fault.match(fault, { Answer: …, Delay: …, Hang: … })`.
 *
 * @since 0.1.0
 * @category pattern matching
 */
export const { $is: is, $match: match } = Data.taggedEnum<Fault>()

const { Answer, Delay, Hang } = Data.taggedEnum<Fault>()

const place = (options: Options | undefined): Place => ({ on: options?.on ?? "token", times: options?.times ?? 1 })

const bytes = (body: string | Uint8Array | undefined): Uint8Array =>
  typeof body === "string" ? new TextEncoder().encode(body) : body ?? new Uint8Array()

/**
 * Answers with a status, and with a body if there is one. The status is a whole number from 200 to 999.
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
  options?: AnswerOptions & { readonly body?: string | Uint8Array | undefined }
): Fault =>
  Answer({
    ...place(options),
    delay: Duration.decode(options?.delay ?? 0),
    status,
    headers: options?.headers ?? {},
    body: bytes(options?.body)
  })

/**
 * Answers 200 with exactly this body: an answer that is no token, or a broken one.
 *
 * @since 0.1.0
 * @category constructors
 */
export const body = (body: string | Uint8Array, options?: AnswerOptions): Fault => status(200, { ...options, body })

/**
 * Answers as the emulator should, but only after a while.
 *
 * @since 0.1.0
 * @category constructors
 */
export const delay = (delay: Duration.DurationInput, options?: Options): Fault =>
  Delay({ ...place(options), delay: Duration.decode(delay) })

/**
 * Never answers. The request ends when the client goes away or the emulator stops.
 *
 * @since 0.1.0
 * @category constructors
 */
export const hang = (options?: Options): Fault => Hang(place(options))
