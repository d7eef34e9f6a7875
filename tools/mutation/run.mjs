/**
 * `npm run mutation`: changes each file of files.mjs in every way that Stryker knows, one change at a time, and counts
 * the changes that its tests find. Takes two to three hours. With names, as in `npm run mutation -- TokenResponse`, it
 * measures only these files. Exits with code 1 when a file is below the threshold.
 */
import "../workspace/require-node.mjs"
import { mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { basename, join } from "node:path"
import { install } from "../workspace/workspace.mjs"

install()

const { Stryker } = await import("@stryker-mutator/core")
const { files, least } = await import("./files.mjs")
const { summaryOf } = await import("./report.mjs")

const names = process.argv.slice(2)
const wanted = files.filter(({ path }) => names.length === 0 || names.includes(basename(path, ".ts")))
if (wanted.length < Math.max(names.length, 1)) {
  process.stderr.write(
    `Unknown file. The measured files are: ${files.map(({ path }) => basename(path, ".ts")).join(", ")}\n`
  )
  process.exit(1)
}

const sandbox = mkdtempSync(join(tmpdir(), "mutation-"))
process.on("exit", () => rmSync(sandbox, { recursive: true, force: true }))

/** Runs Stryker on one file, with all mutators. Returns `undefined` if Stryker fails. */
const measure = async (path) => {
  process.env.MUTATION_FILE = path
  try {
    const mutants = await new Stryker({
      plugins: ["@stryker-mutator/vitest-runner"],
      testRunner: "vitest",
      vitest: { configFile: "tools/mutation/vitest.config.mjs", related: false },
      mutate: [path],
      tempDirName: sandbox,
      ignorePatterns: ["**/dist", "**/.tsbuild", "docs"],
      concurrency: 2,
      // On a busy machine, a survivor must not look like an endless loop.
      timeoutMS: 60_000,
      reporters: ["progress-append-only", "clear-text"],
      clearTextReporter: { allowColor: false, logTests: false, reportTests: false, reportScoreTable: false }
    }).runMutationTest()
    return summaryOf(path, mutants)
  } catch (error) {
    process.stderr.write(`${path}: ${error.message}\n`)
    return undefined
  }
}

for (const { path } of wanted) {
  const found = await measure(path)
  if (found === undefined || !(found.score >= least)) process.exitCode = 1
  if (found === undefined) continue
  const { killed, score, survived, survivors, timeout } = found
  process.stdout.write(`${path}: ${score} %, ${killed} found, ${timeout} by a timeout, ${survived} survived\n`)
  for (const survivor of survivors) process.stdout.write(`  ${survivor}\n`)
}
