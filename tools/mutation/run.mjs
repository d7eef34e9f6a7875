/**
 * `npm run mutation`: changes each file of files.mjs in every way that Stryker knows, one change at a time, and prints
 * the changes that no test notices. Takes two to three hours. With names, as in `npm run mutation -- TokenResponse`, it
 * measures only these files. Exits with code 1 if the tests of any file notice less than 95 % of its changes.
 */
import "../workspace/require-node.mjs"
import { mkdtempSync, readFileSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { basename, join } from "node:path"
import { install } from "../workspace/workspace.mjs"

install()

const { Stryker } = await import("@stryker-mutator/core")
const { explanations, files } = await import("./files.mjs")

const names = process.argv.slice(2)
const wanted = files.filter(({ path }) =>
  names.length === 0 || names.includes(basename(path, ".ts"))
)
if (wanted.length < Math.max(names.length, 1)) {
  process.stderr.write(
    `Unknown file. The files are: ${
      files.map(({ path }) => basename(path, ".ts")).join(", ")
    }\n`
  )
  process.exit(1)
}

const tempDirName = mkdtempSync(join(tmpdir(), "mutation-"))
process.on("exit", () => rmSync(tempDirName, { recursive: true, force: true }))

for (const { path, tests } of wanted) {
  process.env.MUTATION_TESTS = tests.join()
  const lines = readFileSync(path, "utf8").split("\n")
  try {
    // Sets the exit code below the threshold.
    const mutants = await new Stryker({
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
    for (const { location, status } of mutants) {
      if (status !== "Survived" && status !== "NoCoverage") continue
      const code = lines[location.start.line - 1].trim()
      const [, why] = Object.entries(explanations).find(([start]) => code.startsWith(start)) ??
        []
      process.stdout.write(
        `${path}:${location.start.line}: ${why ?? "not explained in files.mjs"}\n`
      )
    }
  } catch (error) {
    process.stderr.write(`${path}: ${error.message}\n`)
    process.exitCode = 1
  }
}
