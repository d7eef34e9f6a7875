/** A check: a statement, and an effect that fails, or ends with a defect, if the statement is false. */
import * as FetchHttpClient from "@effect/platform/FetchHttpClient"
import { StoreAuth } from "@store-api/core"
import { Cause, Data, Effect, Exit, Layer, Redacted, type Scope } from "effect"
import { type Emulator, Laboratory, make } from "./Laboratory.js"

/** No program listens on this port, and the system does not assign it. `fetch` allows it. */
export const nothingListens = "http://127.0.0.1:2"

export interface Check {
  readonly name: string
  readonly run: Effect.Effect<void, unknown, Laboratory | Scope.Scope>
}

/** The result of a check, with a `problem` if it failed. */
export interface Outcome {
  readonly name: string
  readonly problem?: string
}

export class Wrong extends Data.TaggedError("Wrong")<{ readonly message: string }> {}

const shown = (value: unknown) => value instanceof Error ? String(value) : JSON.stringify(value)

export const equal = (what: string, actual: unknown, expected: unknown): Effect.Effect<void, Wrong> =>
  shown(actual) === shown(expected)
    ? Effect.void
    : Effect.fail(new Wrong({ message: `${what}: ${shown(actual)}, not ${shown(expected)}` }))

export const holds = (what: string, condition: boolean): Effect.Effect<void, Wrong> => equal(what, condition, true)

/** The error as `Tag` or `Tag, reason`. Fails if the effect succeeds. A defect stays a defect. */
export const errorOf = <A, E extends { readonly _tag: string }, R>(effect: Effect.Effect<A, E, R>) =>
  Effect.flip(effect).pipe(
    Effect.catchAll(() => Effect.fail(new Wrong({ message: "it succeeded where it had to fail" })))
  )

export const named = (error: { readonly _tag: string }) =>
  "reason" in error ? `${error._tag}, ${String(error.reason)}` : error._tag

/** The options of most checks. */
export const options = ({ clientId, clientSecret, url }: Emulator) => ({
  authUrl: url,
  apiUrl: url,
  clientId,
  clientSecret: Redacted.make(clientSecret)
})

/** The full layer over the runtime's own `fetch`, as in an application. */
export const storeAuth = (given: StoreAuth.Options) =>
  Layer.build(Layer.provide(StoreAuth.layer(given), FetchHttpClient.layer))

/** Longer than any check needs, so that a check that hangs fails. */
const patience = "30 seconds"

/** Runs one check with the laboratory at this URL. */
export const run = ({ name, run }: Check, laboratory: string): Effect.Effect<Outcome> =>
  run.pipe(
    Effect.scoped,
    Effect.timeoutFail({ duration: patience, onTimeout: () => new Wrong({ message: `no end within ${patience}` }) }),
    Effect.provide(Layer.effect(Laboratory, make(laboratory)).pipe(Layer.provide(FetchHttpClient.layer))),
    Effect.exit,
    Effect.map(Exit.match({
      onSuccess: (): Outcome => ({ name }),
      onFailure: (cause): Outcome => ({ name, problem: Cause.pretty(cause) })
    }))
  )
