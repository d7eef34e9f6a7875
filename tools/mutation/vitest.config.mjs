/** Runs the tests that MUTATION_TESTS names. */
import { relative } from "node:path"
import { BaseSequencer } from "vitest/node"
import base from "../../vitest.config.ts"

const include = process.env.MUTATION_TESTS.split(",")

/** Runs the tests in the order of the list: a run stops at the first failure. */
class InOrder extends BaseSequencer {
  async sort(specifications) {
    const place = ({ moduleId }) => include.indexOf(relative(process.cwd(), moduleId))
    return [...specifications].sort((one, other) => place(one) - place(other))
  }
}

export default {
  ...base,
  test: {
    ...base.test,
    include,
    projects: undefined,
    runner: `${import.meta.dirname}/runner.mjs`,
    // A mutant may be in code that runs at import, so each test file imports it again.
    isolate: true,
    maxWorkers: 1,
    sequence: { sequencer: InOrder }
  }
}
