/**
 * Named scripts of faults for the token endpoint and the API, each with the outcome that a correct client has. The
 * clients of this suite are tested with all of them.
 *
 * @since 1.0.0
 */
import type { Script } from "./Fault.js"
import { scenarios } from "./internal/scenarios.js"

/**
 * A script of faults and its expected outcome.
 *
 * @see all
 *
 * @since 1.0.0
 * @category models
 */
export interface Scenario {
  /** The script, for `fail` of the running emulator. */
  readonly script: Script
  /** The outcome that a correct client has, in a few words. */
  readonly expected: string
  /** Whether it needs an emulator that was started with `tls: true`. */
  readonly tls: boolean
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
 * const { expected, script } = Scenario.all["token/429-retry-after-seconds"]
 * ```
 *
 * @since 1.0.0
 * @category constants
 */
export const all: Readonly<Record<Name, Scenario>> = scenarios

/**
 * The names in the order of the package's README, for a test of each scenario.
 *
 * @example
 * ```ts
 * import { Scenario } from "@store-api/emulator"
 *
 * const overHttp = Scenario.names.filter((name) => !Scenario.all[name].tls)
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
