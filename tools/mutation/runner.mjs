/**
 * A mutant may make a test file throw while it loads. Such a file has no tests, and Stryker counts only failed tests,
 * so this runner adds one.
 */
import { test } from "vitest"
import { VitestTestRunner } from "vitest/runners"

export default class extends VitestTestRunner {
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
}
