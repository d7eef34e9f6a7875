/** Declares a test whose steps are those of a generator. */
import { it } from "@effect/vitest"
import { Effect } from "effect"
import type { LiveSteps, Steps } from "./effectLine.js"

/** A test with a scope, on the test clock. */
export const test = (title: string, steps: () => Steps, timeout?: number): void =>
  it.scoped(title, () => Effect.gen(steps), timeout)

/** One such test for each row. */
test.each = <Row>(rows: ReadonlyArray<Row>) => (title: string, steps: (row: Row) => Steps): void =>
  it.scoped.each([...rows])(title, (row) => Effect.gen(() => steps(row)))

const live = (title: string, steps: () => LiveSteps, timeout?: number): void =>
  it.scopedLive(title, () => Effect.gen(steps), timeout)

live.each = <Row>(rows: ReadonlyArray<Row>) => (title: string, steps: (row: Row) => LiveSteps): void =>
  it.scopedLive.each([...rows])(title, (row) => Effect.gen(() => steps(row)))

live.runIf = (condition: boolean) => (title: string, steps: () => LiveSteps): void =>
  it.scopedLive.runIf(condition)(title, () => Effect.gen(steps))

/** A test with a scope, on the real clock. */
test.live = live
