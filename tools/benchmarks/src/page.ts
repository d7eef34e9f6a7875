/** Shared code of the generated pages: figures, tables, templates, and the machine of a measurement. */
import { mkdirSync, readFileSync, writeFileSync } from "node:fs"
import { cpus, totalmem } from "node:os"

export const number = (value: number, digits = 0): string =>
  value.toLocaleString("en-US", { minimumFractionDigits: digits, maximumFractionDigits: digits }).replaceAll(",", " ")

/** A heading, and what the column shows of a row. */
export type Column<A> = readonly [heading: string, cell: (row: A) => string]

export const table = <A>(rows: ReadonlyArray<A>, columns: ReadonlyArray<Column<A>>): string =>
  [
    columns.map(([heading]) => heading),
    columns.map(() => "---"),
    ...rows.map((row) => columns.map(([, cell]) => cell(row)))
  ].map((cells) => `| ${cells.join(" | ")} |`).join("\n")

/** Fills the `{{names}}` of a template. The links of a template lead from its own folder. */
export const fill = (page: "benchmarks" | "fleets", values: Readonly<Record<string, string>>): string =>
  readFileSync(new URL(`../${page}.template.md`, import.meta.url), "utf8")
    .replaceAll("../../docs/evidence/", "")
    .replaceAll(/\{\{(\w+)\}\}/g, (_, name: string) => {
      const value = values[name]
      if (value === undefined) throw new Error(`The page ${page} has no value for {{${name}}}`)
      return value
    })

const file = (path: string) => new URL(`../../../docs/evidence/${path}`, import.meta.url)

export const read = (path: string): string => readFileSync(file(path), "utf8")

/** Writes files, by their paths in `docs/evidence`. */
export const write = (files: Readonly<Record<string, string>>): void => {
  for (const [path, text] of Object.entries(files)) {
    mkdirSync(new URL(".", file(path)), { recursive: true })
    writeFileSync(file(path), text)
    process.stdout.write(`Written: docs/evidence/${path}\n`)
  }
}

const began = performance.now()

/** Reports progress, with the seconds since the start. */
export const tell = (what: string): void => {
  process.stderr.write(`${`${Math.round((performance.now() - began) / 1000)}`.padStart(4)} s  ${what}\n`)
}

/** Ends this process with exit code 1 if there are problems. */
export const report = (problems: ReadonlyArray<string>): void => {
  for (const problem of problems) process.stderr.write(`Broken: ${problem}\n`)
  process.exitCode = problems.length === 0 ? 0 : 1
}

export const machine = () => {
  const cores = cpus()
  return {
    cpu: cores[0]?.model.trim() ?? "unknown",
    cores: cores.length,
    memory: `${Math.round(totalmem() / 2 ** 30)} GiB`,
    node: process.version,
    platform: `${process.platform} ${process.arch}`,
    date: new Date().toISOString().slice(0, 10)
  }
}

/** The installed version of a dependency of this package. */
export const versionOf = (name: string): string => {
  const manifest = readFileSync(new URL(`../node_modules/${name}/package.json`, import.meta.url), "utf8")
  return (JSON.parse(manifest) as { readonly version: string }).version
}
