/** Shared code of the pages: figures, tables, and the machine of a measurement. */
import { readFileSync, writeFileSync } from "node:fs"
import { cpus, totalmem } from "node:os"
import type { Spread, Timed } from "./harness.js"

export const number = (value: number, digits = 0): string =>
  value.toLocaleString("en-US", {
    minimumFractionDigits: digits,
    maximumFractionDigits: digits
  }).replaceAll(",", " ")

/** A heading, and what the column shows of a row. */
export type Column<A> = readonly [heading: string, cell: (row: A) => string]

export const table = <A>(rows: ReadonlyArray<A>, columns: ReadonlyArray<Column<A>>): string =>
  [
    columns.map(([heading]) => heading),
    columns.map(() => "---"),
    ...rows.map((row) => columns.map(([, cell]) => cell(row)))
  ].map((cells) => `| ${cells.join(" | ")} |`).join("\n")

/** Replaces what is between the comments `<!-- table: name -->` and `<!-- end -->` of a page. */
export const withTables = (page: string, tables: Readonly<Record<string, string>>): string =>
  page.replace(/<!-- table: (\w+) -->\n[^]*?<!-- end -->/g, (before, name: string) => {
    const table = tables[name]
    return table === undefined ? before : `<!-- table: ${name} -->\n\n${table}\n\n<!-- end -->`
  })

/** The page that `npm run bench` writes. */
export const benchmarks = "docs/evidence/benchmarks.md"

const file = (name: string) => new URL(`../../../${name}`, import.meta.url)

export const read = (name: string): string => readFileSync(file(name), "utf8")

export const write = (name: string, page: string): void => {
  writeFileSync(file(name), page)
  process.stdout.write(`Written: ${name}\n`)
}

const began = performance.now()

/** Reports progress, with the seconds since the start. */
export const tell = (what: string): void => {
  process.stderr.write(
    `${`${Math.round((performance.now() - began) / 1000)}`.padStart(4)} s  ${what}\n`
  )
}

/** Ends this process with exit code 1 if there are problems. */
export const report = (problems: ReadonlyArray<string>): void => {
  for (const problem of problems) process.stderr.write(`Broken: ${problem}\n`)
  process.exitCode = problems.length === 0 ? 0 : 1
}

const packages = [
  "@store-api/core",
  "effect",
  "@effect/platform",
  "@effect/platform-node",
  "@effect/opentelemetry",
  "@opentelemetry/sdk-trace-node",
  "@azure/core-rest-pipeline",
  "@badgateway/oauth2-client",
  "google-auth-library",
  "simple-oauth2"
]

/** The installed version of a dependency of this package. */
const versionOf = (name: string): string => {
  const manifest = readFileSync(
    new URL(`../node_modules/${name}/package.json`, import.meta.url),
    "utf8"
  )
  return (JSON.parse(manifest) as { readonly version: string }).version
}

export const today = () => new Date().toISOString().slice(0, 10)

export const processor = () =>
  `${cpus()[0]?.model.trim() ?? "unknown"}, ${cpus().length} cores`

/** When, on what and with what versions a run measured. */
export const machine = () =>
  [
    `- measured on ${today()}`,
    `- machine: ${processor()}, ${
      Math.round(totalmem() / 2 ** 30)
    } GiB, ${process.platform} ${process.arch}`,
    `- Node ${process.version}; ${
      packages.map((name) => `${name} ${versionOf(name)}`).join(", ")
    }`
  ].join("\n")

const between = ({ high, low, median }: Spread, unit: string, digits = 0) =>
  `${number(median, digits)} ${unit} (${number(low, digits)} to ${number(high, digits)})`

export const nanoseconds = (figure: Spread) => between(figure, "ns")
export const times = (figure: Spread) => between(figure, "×", 2)
export const microseconds = ({ high, low, median }: Spread) =>
  between({ high: high / 1000, low: low / 1000, median: median / 1000 }, "µs", 2)

export const hitTable = (hits: ReadonlyArray<Timed>): string =>
  table(hits, [
    ["per `yield*` in one fiber", ({ name }) => name],
    ["time", ({ ns }) => nanoseconds(ns)],
    ["multiple of `Ref.get` in the same loop", ({ ratio }) => times(ratio)]
  ])
