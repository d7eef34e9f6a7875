/** The options of Stryker for each file, with all mutators. run.mjs names the file. */
export default {
  plugins: ["@stryker-mutator/vitest-runner"],
  testRunner: "vitest",
  vitest: { configFile: "tools/mutation/vitest.config.mjs", related: false },
  ignorePatterns: ["**/dist", "**/.tsbuild", "docs"],
  concurrency: 2,
  // On a busy machine, a survivor must not look like an endless loop.
  timeoutMS: 60_000,
  thresholds: { high: 100, low: 95, break: 95 },
  reporters: ["progress-append-only", "clear-text"],
  clearTextReporter: { allowColor: false, logTests: false, reportTests: false }
}
