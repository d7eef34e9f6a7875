import { FastCheck } from "effect"
import { test } from "vitest"
import { VitestTestRunner } from "vitest/runners"
import { slow } from "./files.mjs"

// Properties use the same examples in each run, so that no mutant is found by chance.
FastCheck.configureGlobal({ ...FastCheck.readConfigureGlobal(), seed: 1 })

export default class extends VitestTestRunner {
  /**
   * A mutant may make a test file throw while it loads. Such a file has no tests, and Stryker counts only failed tests,
   * so this adds one.
   */
  async importFile(path, source) {
    try {
      return await super.importFile(path, source)
    } catch (error) {
      if (source !== "collect") throw error
      test("the test file loads", () => {
        throw error
      })
    }
  }

  async onBeforeTryTask(task, ...given) {
    if (slow.test(task.name)) task.context.skip()
    return super.onBeforeTryTask?.(task, ...given)
  }
}
