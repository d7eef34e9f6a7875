/** Writes the table of docs/evidence/runtimes.md from a run, and compares it with the pinned versions. */
import { readFileSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { root } from "../workspace/workspace.mjs"
import { isNode, names, pins } from "./binaries.mjs"

const page = join(root, "docs", "evidence", "runtimes.md")

const [begin, end] = ["<!-- written by npm run runtimes -- --write -->", "<!-- to here -->"]

const columns = [
  "runtime",
  "version",
  "tests passed",
  "tests failed",
  "tests skipped",
  "checks on fetch passed",
  "checks failed",
  "seconds",
  "measured on"
]

const parts = () => {
  const text = readFileSync(page, "utf8")
  const [from, to] = [text.indexOf(begin), text.indexOf(end)]
  if (from < 0 || to < from) throw new Error(`${page} has no place for the table.`)
  return {
    before: text.slice(0, from + begin.length),
    table: text.slice(from + begin.length, to),
    after: text.slice(to)
  }
}

/** The rows of the page by runtime. */
const rows = () =>
  new Map(
    parts().table.split("\n")
      .filter((line) => line.startsWith("| "))
      .slice(2)
      .map((line) => line.split("|").slice(1, -1).map((cell) => cell.trim()))
      .map((row) => [row[0], row])
  )

const line = (cells) => `| ${cells.join(" | ")} |`

/** Writes the results. Keeps the rows of other runtimes if they have the pinned version. */
export const write = (results) => {
  const date = new Date().toISOString().slice(0, 10)
  const table = new Map([...rows()].filter(([name, [, version]]) => pins[name]?.version === version))
  for (const { checks, name, seconds, tests } of results) {
    const ofSuite = tests === undefined ? ["", "", ""] : [tests.passed, tests.failed, tests.skipped]
    table.set(name, [name, pins[name].version, ...ofSuite, checks.passed, checks.failed, seconds, date].map(String))
  }
  const body = names.flatMap((name) => (table.has(name) ? [line(table.get(name))] : []))
  const { after, before } = parts()
  const head = [line(columns), line(columns.map(() => "---"))]
  writeFileSync(page, `${before}\n\n${[...head, ...body].join("\n")}\n\n${after}`)
}

/** The problems of the table: it must have each pinned runtime at its version, with all checks passed. */
export const problems = () => {
  const found = rows()
  const { engines } = JSON.parse(readFileSync(join(root, "package.json"), "utf8"))
  const floor = engines.node.replace(/^>=/, "")
  return [
    ...names.flatMap((name) => {
      const [, version, passed, failed, , checks, checksFailed] = found.get(name) ?? []
      if (version !== pins[name].version) {
        return [`${name}: ${version ?? "missing"}, but ${pins[name].version} is pinned`]
      }
      const good = Number(checks) > 0 && checksFailed === "0" &&
        (!isNode(name) || (Number(passed) > 0 && failed === "0"))
      return good ? [] : [`${name}: not all tests and checks passed`]
    }),
    ...[...found.keys()].filter((name) => !names.includes(name)).map((name) => `${name}: not pinned`),
    ...(names.some((name) => isNode(name) && pins[name].version.startsWith(`${floor}.`))
      ? []
      : [`Node ${floor}: not pinned`])
  ]
}
