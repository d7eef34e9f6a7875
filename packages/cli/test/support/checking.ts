/** `store-api check`, run by a user, and the steps that it prints. */
import { assert } from "@effect/vitest"
import { deepStrictEqual } from "@effect/vitest/utils"
import { Emulator, type Fault } from "@store-api/emulator"
import { Effect } from "effect"
import { run, type User, userOf } from "./cli.js"

export const startedWith = (options: Emulator.Options = {}, ...script: ReadonlyArray<Fault.Script>) =>
  Effect.gen(function*() {
    const emulator = yield* Emulator.make(options)
    for (const step of script) yield* emulator.fail(step)
    return { emulator, user: yield* userOf(emulator) }
  })

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

/** The one step that fails, what it names, and the exit code. */
export const fails = (
  user: User,
  args: ReadonlyArray<string>,
  expected: { readonly step: string; readonly said: RegExp; readonly remedy: RegExp; readonly code: number },
  runs: typeof run = run
) =>
  Effect.gen(function*() {
    const { code, failed, steps } = yield* check(user, args, runs)
    const [fault] = failed
    deepStrictEqual(failed.map(({ name }) => name), [expected.step], JSON.stringify(steps))
    assert.match(fault?.said ?? "", expected.said)
    assert.match(fault?.remedy ?? "", expected.remedy)
    assert.strictEqual(code, expected.code)
    return steps
  })
