/**
 * `npm run interop`: runs the suite against real authorization servers. Options and files of Vitest come after `--`.
 * With `-- --write`, writes the tables of docs/evidence/interop.md; without, compares them with the results.
 */
import "../workspace/require-node.mjs"
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { availableParallelism, cpus, tmpdir } from "node:os"
import { join } from "node:path"
import { build, install, root, tool } from "../workspace/workspace.mjs"

const args = process.argv.slice(2)
const write = args.includes("--write")
const others = args.filter((arg) => arg !== "--write")
// Any argument but a reporter may leave tests out. Only with CI=true does a missing server fail the run.
const whole = others.every((arg) => /^--(reporter|outputFile)/.test(arg))
if (write && !whole) {
  process.stderr.write("--write takes no files or filters, because the tables cover all servers.\n")
  process.exit(1)
}
if (write) Object.assign(process.env, { CI: "true", INTEROP_WRITE: "true" })
const complete = whole && process.env.CI === "true"

install()
build("tools/interop")

const { differences, misfits, parse, write: written } = await import("./dist/page.js")

const folder = mkdtempSync(join(tmpdir(), "interop-"))
process.on("exit", () => rmSync(folder, { recursive: true, force: true }))
const results = join(folder, "results")
writeFileSync(results, "")
process.env.INTEROP_RESULTS = results

tool("vitest", ["run", "--config", "tools/interop/vitest.config.ts", ...others])

const path = join(root, "docs", "evidence", "interop.md")
const page = readFileSync(path, "utf8")
const machine = `${cpus()[0]?.model ?? process.arch}, ${availableParallelism()} cores, ${process.platform}`
const found = [
  ...parse(readFileSync(results, "utf8")),
  { table: "machine", row: { on: new Date().toISOString().slice(0, 10), Node: process.version, machine } }
]
const wrong = [...(complete ? misfits(page, found) : []), ...(write ? [] : differences(page, found, complete))]
for (const problem of wrong) process.stderr.write(`docs/evidence/interop.md: ${problem}\n`)
if (wrong.length > 0) process.exitCode = 1
else if (write) writeFileSync(path, written(page, found))
