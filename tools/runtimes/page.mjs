/** The table of docs/evidence/runtimes.md: one row for each runtime. */
import { readFileSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { read, write } from "../interop/page.mjs"
import { root } from "../workspace/workspace.mjs"
import { isNode, names, pins } from "./binaries.mjs"

const path = join(root, "docs", "evidence", "runtimes.md")

const rows = () => read(readFileSync(path, "utf8")).map(({ row }) => row)

const rowOf = ({ checks, name, seconds, tests = { passed: "", failed: "", skipped: "" } }) => ({
  "runtime": name,
  "version": pins[name].version,
  "tests passed": `${tests.passed}`,
  "tests failed": `${tests.failed}`,
  "tests skipped": `${tests.skipped}`,
  "checks on fetch passed": `${checks.passed}`,
  "checks failed": `${checks.failed}`,
  "seconds": `${seconds}`,
  "measured on": new Date().toISOString().slice(0, 10)
})

/** Writes the result of a runtime. Keeps the rows of other runtimes if they have the pinned version. */
export const writeResult = (result) => {
  const found = [...rows().filter(({ runtime }) => runtime !== result.name), rowOf(result)]
  const kept = names.flatMap((name) =>
    found.filter(({ runtime, version }) => runtime === name && version === pins[name].version)
  )
  writeFileSync(path, write(readFileSync(path, "utf8"), kept.map((row) => ({ table: "runtimes", row }))))
}

const isGood = (row) =>
  Number(row["checks on fetch passed"]) > 0 && row["checks failed"] === "0" &&
  (!isNode(row.runtime) || (Number(row["tests passed"]) > 0 && row["tests failed"] === "0"))

/** The problems of the table: it must have each pinned runtime at its version, with all checks passed. */
export const problems = () => {
  const found = rows()
  const { engines } = JSON.parse(readFileSync(join(root, "package.json"), "utf8"))
  const floor = engines.node.replace(/^>=/, "")
  const isFloorPinned = names.some((name) => isNode(name) && pins[name].version.startsWith(`${floor}.`))
  return [
    ...names.flatMap((name) => {
      const row = found.find(({ runtime }) => runtime === name)
      const { version } = pins[name]
      if (row?.version !== version) return [`${name}: ${row?.version ?? "missing"}, but ${version} is pinned`]
      return isGood(row) ? [] : [`${name}: not all tests and checks passed`]
    }),
    ...found.filter(({ runtime }) => !names.includes(runtime)).map(({ runtime }) => `${runtime}: not pinned`),
    ...(isFloorPinned ? [] : [`Node ${floor}: not pinned`])
  ]
}
