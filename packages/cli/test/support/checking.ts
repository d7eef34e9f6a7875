/** `store-api check`, run by a user, and the steps that it prints. */
import { assert } from "@effect/vitest"
import { deepStrictEqual } from "@effect/vitest/utils"
import { Effect } from "effect"
import { run, type User } from "./cli.js"

/** The steps of a check: how each ended, and what it said. */
const stepsOf = (text: string) =>
  [...text.matchAll(/^(ok {2}|FAIL) (.{17}) *\d+ ms {3}(.*)\n(?: {5}(\S.*)\n)?/gm)].map(
    ([, word = "", name = "", said = "", remedy]) => ({ failed: word === "FAIL", name: name.trim(), said, remedy })
  )

/** `runs` runs the command in this process, or the binary. */
export const check = (user: User, args: ReadonlyArray<string> = [], runs: typeof run = run) =>
  Effect.gen(function*() {
    const outcome = yield* runs(user, ["check", ...args])
    const steps = stepsOf(outcome.stdout)
    // Each line is a step or its remedy.
    const lines = steps.map(({ remedy }) => remedy === undefined ? 1 : 2).reduce((sum, n) => sum + n, 0)
    assert.lengthOf(outcome.stdout.trimEnd().split("\n"), lines, outcome.stdout)
    for (const { failed, remedy } of steps) {
      if (failed) assert.match(remedy ?? "", /^[A-Z].*[.]$/)
      else assert.isUndefined(remedy)
    }
    assert.strictEqual(outcome.stderr, "")
    return { code: outcome.code, steps, failed: steps.filter(({ failed }) => failed) }
  })

/** The exit code, the one step that fails, and what that step says. */
export type Expected = readonly [code: number, step: string, said: RegExp, remedy: RegExp]

/** Checks that one step fails as expected, and returns all steps. */
export const fails = (
  user: User,
  args: ReadonlyArray<string>,
  [code, step, said, remedy]: Expected,
  runs: typeof run = run
) =>
  Effect.gen(function*() {
    const { failed, steps, ...outcome } = yield* check(user, args, runs)
    const [fault] = failed
    deepStrictEqual([outcome.code, failed.map(({ name }) => name)], [code, [step]], JSON.stringify(steps))
    assert.match(fault?.said ?? "", said)
    assert.match(fault?.remedy ?? "", remedy)
    return steps
  })
