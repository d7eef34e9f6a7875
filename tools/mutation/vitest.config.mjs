/** The tests of the file that is mutated: MUTATION_FILE names it. */
import { relative } from "node:path"
import { BaseSequencer } from "vitest/node"
import base from "../../vitest.config.ts"
import { files } from "./files.mjs"

const { tests } = files.find(({ path }) => path === process.env.MUTATION_FILE.split(":")[0])

/** In the order of the list, the quick ones first: a run ends with the first test that fails. */
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
    include: tests,
    runner: new URL("./runner.mjs", import.meta.url).pathname,
    // A mutant may be in code that runs when its module is loaded: each test file loads it anew.
    isolate: true,
    maxWorkers: 1,
    sequence: { sequencer: InOrder },
    setupFiles: [new URL("./setup.mjs", import.meta.url).pathname],
    // A mutant that makes a test wait for ever is found out after this time.
    testTimeout: 20_000
  }
}
