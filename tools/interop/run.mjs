/**
 * `npm run interop`: runs the suite against real authorization servers. Options and files of Vitest come after `--`.
 * With `-- --write`, writes the tables of docs/evidence/interop.md. With CI=true, compares them with the results.
 */
import "../workspace/require-node.mjs"
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { availableParallelism, cpus, tmpdir } from "node:os"
import { join } from "node:path"
import { build, install, root, tool } from "../workspace/workspace.mjs"
import { differences, write } from "./page.mjs"

const args = process.argv.slice(2)
const isWriting = args.includes("--write")
const others = args.filter((arg) => arg !== "--write")
// Any argument but a reporter may leave tests out.
const isWhole = others.every((arg) => /^--(reporter|outputFile)/.test(arg))
if (isWriting && !isWhole) {
  process.stderr.write("--write takes no files or filters, because the tables cover all servers.\n")
  process.exit(1)
}
// Only with CI=true does a missing server fail the run.
if (isWriting) Object.assign(process.env, { CI: "true", INTEROP_WRITE: "true" })

install()
build("tools/interop")

const folder = mkdtempSync(join(tmpdir(), "interop-"))
process.on("exit", () => rmSync(folder, { recursive: true, force: true }))
const results = join(folder, "results")
writeFileSync(results, "")
process.env.INTEROP_RESULTS = results

tool("vitest", ["run", "--config", "tools/interop/vitest.config.ts", ...others])

const machine = `${cpus()[0]?.model ?? process.arch}, ${availableParallelism()} cores, ${process.platform}`
const nameOf = ({ row }) => Object.values(row).join("\n")
const found = [
  ...readFileSync(results, "utf8").split("\n").filter(Boolean).map((line) => JSON.parse(line)),
  { table: "machine", row: { on: new Date().toISOString().slice(0, 10), Node: process.version, machine } }
  // Test files run in no fixed order.
].sort((one, other) => nameOf(one).localeCompare(nameOf(other), "en"))

const path = join(root, "docs", "evidence", "interop.md")
const page = readFileSync(path, "utf8")
const wanted = isWriting ? write(page, found) : page
const problems = isWhole && process.env.CI === "true" ? differences(wanted, found) : []
for (const problem of problems) process.stderr.write(`docs/evidence/interop.md: ${problem}\n`)
if (problems.length > 0) process.exitCode = 1
else if (isWriting) writeFileSync(path, wanted)
