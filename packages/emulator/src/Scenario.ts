/**
 * Named scripts of faults, one for each kind of thing that a token service and an API do to their clients, with what a
 * good client makes of it. An application is tested with the ones that the client itself is tested with.
 *
 * @since 0.1.0
 */
import type { Script } from "./FaultModel.js"
import { scenarios } from "./internal/scenarios.js"

/**
 * A script of faults, and what is to come of it.
 *
 * @see all
 *
 * @since 0.1.0
 * @category models
 */
export interface Scenario {
  /** What `Emulator.fail` takes. */
  readonly script: Script
  /** What a good client makes of it, in a few words. */
  readonly expected: string
  /** Whether it needs an emulator that was started with `tls: true`. */
  readonly tls: boolean
}

/**
 * What the scenarios are called: `token/…` for the token endpoint, `api/…` for the API. The README of the package lists
 * them.
 *
 * @see get
 *
 * @since 0.1.0
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
 * @since 0.1.0
 * @category constants
 */
export const all: Readonly<Record<Name, Scenario>> = scenarios

/**
 * The names, in the order of the package's README: for a test of each.
 *
 * @example
 * ```ts
 * import { Scenario } from "@store-api/emulator"
 *
 * const overHttp = Scenario.names.filter((name) => !Scenario.all[name].tls)
 * ```
 *
 * @since 0.1.0
 * @category constants
 */
export const names: ReadonlyArray<Name> = Object.keys(scenarios) as Array<Name>

/**
 * The script of a scenario.
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
 * @since 0.1.0
 * @category getters
 */
export const get = (name: Name): Script => all[name].script
