/**
 * `npm run mutation`: changes each file of files.mjs in every way that Stryker knows, one change at a time, and counts
 * the changes that its tests find. Writes docs/evidence/mutation/report.json and docs/evidence/mutation.md. Takes about
 * an hour. With names, as in `npm run mutation -- TokenResponse`, it measures only these files, and keeps the results
 * of the others. Exits with code 1 when a file is below the threshold.
 */
import "../workspace/require-node.mjs"
import { spawnSync } from "node:child_process"
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { createRequire } from "node:module"
import { tmpdir } from "node:os"
import { basename, dirname, join } from "node:path"
import { install, root } from "../workspace/workspace.mjs"

install()

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

const require = createRequire(import.meta.url)
const stryker = join(dirname(require.resolve("@stryker-mutator/core/package.json")), "bin", "stryker.js")
const folder = mkdtempSync(join(tmpdir(), "store-api-mutation-"))

/** Runs Stryker on one file. Returns `undefined` if Stryker wrote no result. */
const measure = (path) => {
  const output = join(folder, "mutation.json")
  const started = Date.now()
  const { error, status } = spawnSync(process.execPath, [stryker, "run", "tools/mutation/stryker.config.mjs"], {
    cwd: root,
    stdio: "inherit",
    env: { ...process.env, MUTATION_FILE: path, MUTATION_FOLDER: folder }
  })
  if (error !== undefined) process.stderr.write(`${error.message}\n`)
  try {
    const result = JSON.parse(readFileSync(output, "utf8"))
    rmSync(output)
    const measured = new Date(started).toISOString().slice(0, 10)
    return { measured, ...summaryOf(result.files[path]), seconds: Math.round((Date.now() - started) / 1000) }
  } catch {
    process.stderr.write(`${path}: Stryker exited with code ${status} and wrote no result.\n`)
    return undefined
  }
}

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
try {
  for (const { path } of wanted) {
    const report = write(path, measure(path))
    process.stdout.write(`${path}: ${report.files[path]?.score ?? "-"} %\n`)
    problems.push(...problemsOf(report).filter((problem) => problem.startsWith(path)))
  }
} finally {
  rmSync(folder, { recursive: true, force: true })
}

for (const problem of problems) process.stderr.write(`${problem}\n`)
process.exitCode = problems.length > 0 ? 1 : 0
