/** Runs the tests of the file that MUTATION_FILE names. */
import { relative } from "node:path"
import { BaseSequencer } from "vitest/node"
import base from "../../vitest.config.ts"
import { files } from "./files.mjs"

const { tests } = files.find(({ path }) => path === process.env.MUTATION_FILE)

/** Runs the tests in the order of the list, quick ones first: a run stops at the first failure. */
class InOrder extends BaseSequencer {
  async sort(specifications) {
    const place = ({ moduleId }) => tests.indexOf(relative(process.cwd(), moduleId))
    return [...specifications].sort((one, other) => place(one) - place(other))
  }
}

export default {
  ...base,
  test: {
    ...base.test,
    projects: undefined,
    include: tests,
    runner: new URL("./runner.mjs", import.meta.url).pathname,
    // A mutant may be in code that runs at import, so each test file imports it again.
    isolate: true,
    maxWorkers: 1,
    sequence: { sequencer: InOrder },
    setupFiles: [new URL("./setup.mjs", import.meta.url).pathname],
    // A mutant that makes a test hang is found after this time.
    testTimeout: 20_000
  }
}
