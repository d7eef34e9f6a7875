/**
 * Named scripts of faults for the token endpoint and the API, each with the outcome that a correct client has. The
 * clients of this suite are tested with all of them.
 *
 * @since 1.0.0
 */
import type { ClientAuthentication, Dpop } from "./EmulatorOptions.js"
import type { Script } from "./Fault.js"
import { scenarios } from "./internal/scenarios.js"

/**
 * What a correct client gets instead of a token: the tag of an error of this suite and its `reason`.
 *
 * @see describeOutcome
 *
 * @since 1.0.0
 * @category models
 */
export interface Failure {
  /** The tag, such as `TokenRefusedError`. */
  readonly error: string
  /** The reason of the error, such as `Unavailable`. Default: none. */
  readonly reason?: string | undefined
}

/**
 * The outcome at the token endpoint. Without `error`, the client gets a token. Without `requests` and `attempts`, their
 * number is open.
 *
 * @see describeOutcome
 *
 * @since 1.0.0
 * @category models
 */
export interface TokenOutcome extends Partial<Failure> {
  /** The failures that a correct client may have instead, depending on its HTTP layer. */
  readonly or?: ReadonlyArray<Failure> | undefined
  /** The number of requests that the emulator receives; `"several"` is at least 2. */
  readonly requests?: number | "several" | undefined
  /** The number of attempts, including those without a request; `"several"` is at least 2. */
  readonly attempts?: number | "several" | undefined
}

/**
 * The outcome of calls of the API. The other origin never receives the token.
 *
 * @see describeOutcome
 *
 * @since 1.0.0
 * @category models
 */
export interface ApiOutcome {
  /** The status that the caller gets, from a client that does not follow redirects. */
  readonly status?: number | undefined
  /** The tag of the error that the caller gets instead of a status. */
  readonly error?: string | undefined
  /** The number of concurrent calls. `requests` is then the most that the emulator receives. Default: one call. */
  readonly calls?: number | undefined
  /** The number of requests to the API. */
  readonly requests: number
  /** The number of tokens that the client requests after its first one. */
  readonly newTokens: number
}

/**
 * The options that an emulator must have for a scenario. Those that are absent may have any value.
 *
 * @see all
 *
 * @since 1.0.0
 * @category models
 */
export interface Requirements {
  /** The emulator may accept other methods too. */
  readonly clientAuthentication?: ClientAuthentication | undefined
  /** Exactly these nonces. */
  readonly dpop?: Dpop | undefined
  /** The emulator serves https. */
  readonly tls?: true | undefined
}

/**
 * A script of faults and its expected outcome.
 *
 * @see all
 *
 * @since 1.0.0
 * @category models
 */
export interface Scenario<Outcome = TokenOutcome | ApiOutcome> {
  /** The script, for `fail` of the running emulator. */
  readonly script: Script
  /** The outcome that a correct client has. */
  readonly outcome: Outcome
  /** Options for `Emulator.make` or `Emulator.layer`. With others, `fail` refuses the scenario by name. */
  readonly options: Requirements
}

/**
 * The name of a scenario: `token/…` for the token endpoint, `api/…` for the API. The README of the package lists them.
 *
 * @see get
 *
 * @since 1.0.0
 * @category models
 */
export type Name = keyof typeof scenarios

/**
 * All scenarios by name.
 *
 * @example
 * ```ts
 * import { Scenario } from "@store-api/emulator"
 *
 * const { outcome, script } = Scenario.all["token/429-retry-after-seconds"]
 * ```
 *
 * @since 1.0.0
 * @category constants
 */
export const all: {
  readonly [Key in Name]: Scenario<Key extends `token/${string}` ? TokenOutcome : ApiOutcome>
} = scenarios

/**
 * The names in the order of the package's README, for a test of each scenario.
 *
 * @example
 * ```ts
 * import { Scenario } from "@store-api/emulator"
 *
 * const overHttp = Scenario.names.filter((name) => !Scenario.all[name].options.tls)
 * ```
 *
 * @since 1.0.0
 * @category constants
 */
export const names: ReadonlyArray<Name> = Object.keys(scenarios) as Array<Name>

/**
 * Returns the script of a scenario.
 *
 * @example
 * ```ts
 * import { Emulator, Scenario } from "@store-api/emulator"
 * import { Effect } from "effect"
 *
 * const program = Effect.gen(function*() {
 *   const emulator = yield* Emulator.Emulator
 *   yield* emulator.fail(Scenario.get("token/reset-in-body"))
 *   // … run the application against `emulator.url` …
 * })
 * ```
 *
 * @since 1.0.0
 * @category getters
 */
export const get = (name: Name): Script => all[name].script

const count = (amount: number | "several", noun: string) => {
  if (amount === 0) return `no ${noun}`
  return amount === 1 ? `one ${noun}` : `${amount} ${noun}s`
}

const describeFailure = ({ error = "a token", reason }: Partial<Failure>) =>
  reason === undefined ? error : `${error} (${reason})`

const describeTokenOutcome = (outcome: TokenOutcome) => {
  const { attempts, or = [], requests } = outcome
  const results = [outcome, ...or].map(describeFailure).join(" or ")
  if (requests !== undefined) return `${results} after ${count(requests, "request")}`
  if (attempts !== undefined) return `${results} after ${count(attempts, "attempt")}`
  return results
}

const describeApiOutcome = ({ calls, error, newTokens, requests, status }: ApiOutcome) => {
  const result = error ?? `status ${status}`
  const requestCount = `${count(requests, "request")} and ${count(newTokens, "new token")}`
  return calls === undefined
    ? `${result} with ${requestCount}`
    : `${result} for ${calls} calls with at most ${requestCount}`
}

/**
 * Returns the outcome in words, as the README of the package and the command line print it.
 *
 * @example
 * ```ts
 * import { Scenario } from "@store-api/emulator"
 *
 * const words = Scenario.describeOutcome(Scenario.all["token/503-json"].outcome)
 * // TokenRefusedError (Unavailable) after 6 requests
 * ```
 *
 * @since 1.0.0
 * @category getters
 */
export const describeOutcome = (outcome: TokenOutcome | ApiOutcome): string =>
  "newTokens" in outcome ? describeApiOutcome(outcome) : describeTokenOutcome(outcome)
