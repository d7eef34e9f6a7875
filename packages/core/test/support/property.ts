/** Property tests with fast-check. */
import { it } from "@effect/vitest"
import { Effect, FastCheck as fc } from "effect"

type Arbitraries<T> = { readonly [K in keyof T]: fc.Arbitrary<T[K]> }

interface Options {
  readonly fastCheck?: { readonly numRuns: number }
}

const tupleOf = <T extends ReadonlyArray<unknown>>(arbitraries: Arbitraries<T>): fc.Arbitrary<T> =>
  // As an array, a tuple loses the types of its elements.
  fc.tuple(...arbitraries as ReadonlyArray<fc.Arbitrary<unknown>>) as fc.Arbitrary<unknown> as fc.Arbitrary<T>

/** Declares a property test. */
export const prop = <T extends readonly [unknown, ...ReadonlyArray<unknown>]>(
  title: string,
  arbitraries: Arbitraries<T>,
  check: (values: T) => void,
  { fastCheck }: Options = {}
): void =>
  it(title, () => {
    fc.assert(fc.property(tupleOf(arbitraries), check), fastCheck)
  })

/** Declares a property test whose check is an effect. */
export const propEffect = <T extends readonly [unknown, ...ReadonlyArray<unknown>], E>(
  title: string,
  arbitraries: Arbitraries<T>,
  check: (values: T) => Effect.Effect<void, E>
): void =>
  it(title, () => fc.assert(fc.asyncProperty(tupleOf(arbitraries), (values) => Effect.runPromise(check(values)))))
