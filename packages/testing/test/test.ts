/** Declares tests: by the steps of a generator, or by a property of fast-check. */
import { it } from "@effect/vitest"
import { Effect, FastCheck as fc } from "effect"
import type { LiveSteps, Steps } from "./effectMajor.js"

/** A test with a scope, on the test clock. */
export const test = (title: string, steps: () => Steps, timeout?: number): void =>
  it.scoped(title, () => Effect.gen(steps), timeout)

/** One such test for each row. */
test.each =
  <const Row>(rows: ReadonlyArray<Row>) => (title: string, steps: (row: Row) => Steps): void =>
    it.scoped.each([...rows])(title, (row) => Effect.gen(() => steps(row)))

const live = (title: string, steps: () => LiveSteps, timeout?: number): void =>
  it.scopedLive(title, () => Effect.gen(steps), timeout)

live.each =
  <const Row>(rows: ReadonlyArray<Row>) =>
  (title: string, steps: (row: Row) => LiveSteps): void =>
    it.scopedLive.each([...rows])(title, (row) => Effect.gen(() => steps(row)))

live.runIf = (condition: boolean) => (title: string, steps: () => LiveSteps): void =>
  it.scopedLive.runIf(condition)(title, () => Effect.gen(steps))

/** A test with a scope, on the real clock. */
test.live = live

type Arbitraries<T> = { readonly [K in keyof T]: fc.Arbitrary<T[K]> }

interface Options {
  readonly fastCheck?: { readonly numRuns: number }
}

const tupleOf = <T extends ReadonlyArray<unknown>>(
  arbitraries: Arbitraries<T>
): fc.Arbitrary<T> =>
  // As an array, a tuple loses the types of its elements.
  fc.tuple(...arbitraries as ReadonlyArray<fc.Arbitrary<unknown>>) as fc.Arbitrary<
    unknown
  > as fc.Arbitrary<T>

/**
 * A property that lets the event loop turn before each of its runs. In virtual time, a whole property may otherwise run
 * at one turn, and Vitest fails if a worker reads none of its messages for a minute.
 */
export const asyncProperty = <T extends [unknown, ...Array<unknown>]>(
  ...definition: [...Arbitraries<T>, (...values: T) => Promise<void>]
): fc.IAsyncPropertyWithHooks<T> =>
  fc.asyncProperty<T>(...definition).beforeEach(() =>
    new Promise((resolve) => setImmediate(resolve))
  )

/** Declares a property test. */
export const prop = <T extends readonly [unknown, ...ReadonlyArray<unknown>]>(
  title: string,
  arbitraries: Arbitraries<T>,
  check: (values: T) => void,
  { fastCheck }: Options = {}
): void =>
  it(
    title,
    () =>
      fc.assert(
        asyncProperty(tupleOf(arbitraries), async (values) => check(values)),
        fastCheck
      )
  )

/** Declares a property test whose check is an effect. */
export const propEffect = <T extends readonly [unknown, ...ReadonlyArray<unknown>], E>(
  title: string,
  arbitraries: Arbitraries<T>,
  check: (values: T) => Effect.Effect<void, E>
): void =>
  it(
    title,
    () =>
      fc.assert(
        asyncProperty(tupleOf(arbitraries), (values) => Effect.runPromise(check(values)))
      )
  )
