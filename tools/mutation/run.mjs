/**
 * `npm run mutation`: changes each file of files.mjs in every way that Stryker knows, one change at a time, and prints
 * the changes that no test notices. Takes two to three hours. With names, as in `npm run mutation -- TokenResponse`, it
 * measures only these files. Exits with code 1 if the tests of any file notice less than 95 % of its changes.
 */
import "../workspace/require-node.mjs"
import { mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { basename, join } from "node:path"
import { install } from "../workspace/workspace.mjs"

install()

const { Stryker } = await import("@stryker-mutator/core")
const { files } = await import("./files.mjs")

const names = process.argv.slice(2)
const wanted = files.filter(({ path }) => names.length === 0 || names.includes(basename(path, ".ts")))
if (wanted.length < Math.max(names.length, 1)) {
  process.stderr.write(`Unknown file. The files are: ${files.map(({ path }) => basename(path, ".ts")).join(", ")}\n`)
  process.exit(1)
}

const tempDirName = mkdtempSync(join(tmpdir(), "mutation-"))
process.on("exit", () => rmSync(tempDirName, { recursive: true, force: true }))

for (const { path, tests } of wanted) {
  process.env.MUTATION_TESTS = tests.join()
  try {
    // Sets the exit code below the threshold.
    await new Stryker({
      mutate: [path],
      tempDirName,
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
    }).runMutationTest()
  } catch (error) {
    process.stderr.write(`${path}: ${error.message}\n`)
    process.exitCode = 1
  }
}
