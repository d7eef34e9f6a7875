/**
 * `npm run mutation`: changes each file of files.mjs in every way that Stryker knows, one change at a time, and counts
 * the changes that its tests find. Writes docs/evidence/mutation/report.json and docs/evidence/mutation.md. Takes two
 * to three hours. With names, as in `npm run mutation -- TokenResponse`, it measures only these files, and keeps the
 * results of the others. Exits with code 1 when a file is below the threshold.
 */
import "../workspace/require-node.mjs"
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { createRequire } from "node:module"
import { tmpdir } from "node:os"
import { basename, dirname, join } from "node:path"
import { install, root } from "../workspace/workspace.mjs"

install()

const { Stryker } = await import("@stryker-mutator/core")
const { files } = await import("./files.mjs")
const { pageOf, pagePath, problemsOf, readReport, reportPath, summaryOf } = await import("./report.mjs")

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
  const started = new Date()
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
    const seconds = Math.round((Date.now() - started) / 1000)
    return { measured: started.toISOString().slice(0, 10), ...summaryOf(path, mutants), seconds }
  } catch (error) {
    process.stderr.write(`${path}: ${error.message}\n`)
    return undefined
  }
}

const require = createRequire(import.meta.url)
const versionOf = (name) => require(`${name}/package.json`).version

/** Writes the result of one file into the report and the page, or removes the file if it could not be measured. */
const write = (path, found) => {
  const all = { ...readReport()?.files, [path]: found }
  const report = {
    versions: {
      "@stryker-mutator/core": versionOf("@stryker-mutator/core"),
      "@stryker-mutator/vitest-runner": versionOf("@stryker-mutator/vitest-runner"),
      vitest: versionOf("vitest"),
      node: process.versions.node
    },
    files: Object.fromEntries(files.flatMap(({ path }) => all[path] === undefined ? [] : [[path, all[path]]]))
  }
  mkdirSync(join(root, dirname(reportPath)), { recursive: true })
  writeFileSync(join(root, reportPath), `${JSON.stringify(report, undefined, 2)}\n`)
  writeFileSync(join(root, pagePath), pageOf(report))
  return report
}

const problems = []
for (const { path } of wanted) {
  const report = write(path, await measure(path))
  process.stdout.write(`${path}: ${report.files[path]?.score ?? "-"} %\n`)
  problems.push(...problemsOf(report).filter((problem) => problem.startsWith(path)))
}

for (const problem of problems) process.stderr.write(`${problem}\n`)
process.exitCode = problems.length > 0 ? 1 : 0
