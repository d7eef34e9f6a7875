/** Declares a test whose steps are those of a generator. */
import { it } from "@effect/vitest"
import { Effect } from "effect"
import type { LiveSteps, Steps } from "./effectLine.js"

/** A test with a scope, on the test clock. */
export const test = (title: string, steps: () => Steps, timeout?: number): void =>
  it.scoped(title, () => Effect.gen(steps), timeout)

/** A test with a scope, on the real clock. */
test.live = (title: string, steps: () => LiveSteps, timeout?: number): void =>
  it.scopedLive(title, () => Effect.gen(steps), timeout)
