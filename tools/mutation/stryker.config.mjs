/**
 * Measures the one file that MUTATION_FILE names, because each file has its own tests. The output is in
 * MUTATION_FOLDER.
 */
import { join } from "node:path"
import { least } from "./files.mjs"

const { MUTATION_FILE: file, MUTATION_FOLDER: folder } = process.env

export default {
  plugins: ["@stryker-mutator/vitest-runner"],
  testRunner: "vitest",
  vitest: { configFile: "tools/mutation/vitest.config.mjs", related: false },
  mutate: [file],
  thresholds: { high: 100, low: least, break: least },
  // Every mutator is on.
  tempDirName: join(folder, "sandbox"),
  ignorePatterns: ["**/dist", "**/.tsbuild", "docs"],
  concurrency: 2,
  // On a busy machine, a survivor must not look like an endless loop.
  timeoutMS: 60_000,
  allowEmpty: false,
  reporters: ["progress-append-only", "clear-text", "json"],
  clearTextReporter: { allowColor: false, logTests: false, reportTests: false, reportScoreTable: false },
  jsonReporter: { fileName: join(folder, "mutation.json") }
}
