import { appendFileSync } from "node:fs"
import { Effect } from "effect"

/** Writes and compares the tables of docs/evidence/interop.md. Each is between two comments; a run reports its rows. */

/** A row of a table: the text of each column. The first column names the row. */
export type Row = Readonly<Record<string, string>>

export interface Result {
  readonly table: string
  readonly row: Row
}

const places = /<!-- table: (.+?) -->\n[^]*?<!-- end -->/g

const escaped = (text: string) => text.replaceAll("|", "\\|").replaceAll(/\s+/g, " ")

const line = (cells: ReadonlyArray<string>) => `| ${cells.join(" | ")} |`

/** Test files run in no fixed order. */
const byCells = (a: Row, b: Row) => Object.values(a).join("\n").localeCompare(Object.values(b).join("\n"), "en")

const markdown = (rows: ReadonlyArray<Row>) => {
  const columns = [...new Set(rows.flatMap((row) => Object.keys(row)))]
  return [
    line(columns),
    line(columns.map(() => "---")),
    ...[...rows].sort(byCells).map((row) => line(columns.map((column) => escaped(row[column] ?? ""))))
  ].join("\n")
}

const rowsOf = (results: ReadonlyArray<Result>, table: string) =>
  results.filter((result) => result.table === table).map(({ row }) => row)

/** Parses the results of a run, one per line. */
export const parse = (lines: string): ReadonlyArray<Result> =>
  lines.split("\n").filter((line) => line !== "").map((line) => JSON.parse(line) as Result)

/** The reasons not to write the page: tables without rows, and rows without a table. */
export const misfits = (page: string, results: ReadonlyArray<Result>): ReadonlyArray<string> => {
  const tables = [...page.matchAll(places)].map(([, table = ""]) => table)
  return [
    ...tables.filter((table) => rowsOf(results, table).length === 0).map((table) =>
      `The run reported no row for ${table}.`
    ),
    ...[...new Set(results.map(({ table }) => table))].filter((table) => !tables.includes(table)).map((table) =>
      `The page has no place for ${table}.`
    )
  ]
}

/** Returns the page with new tables. */
export const write = (page: string, results: ReadonlyArray<Result>): string =>
  page.replace(
    places,
    (_, table: string) => `<!-- table: ${table} -->\n\n${markdown(rowsOf(results, table))}\n\n<!-- end -->`
  )

/** How many columns, from the left, are the same in each run; the others are figures. By default all. */
const steady: Readonly<Record<string, number>> = { machine: 0, load: 1, nginx: 2 }

/** The facts of a page that are the same in every run: the column names, and the rows without their figures. */
const factsIn = (page: string, most: number): ReadonlyArray<string> =>
  [...page.matchAll(places)].flatMap(([place, table = ""]) => {
    const rows = place.split("\n").filter((line) => line.startsWith("|")).map((line) =>
      line.slice(1, -1).split(/(?<!\\)\|/).map((cell) => cell.trim())
    )
    const columns = Math.min(steady[table] ?? Infinity, most)
    const fact = (cells: ReadonlyArray<string>) => `${table}: ${cells.join(" | ")}`
    const facts = columns === 0 ? [] : rows.slice(2).map((cells) => fact(cells.slice(0, columns)))
    return most === Infinity ? [...rows.slice(0, 1).map(fact), ...facts] : facts
  })

/**
 * The differences between the page and a run, without the figures. A partial run lacks some servers and some columns,
 * so only its first two columns are compared: a server and its version.
 */
export const differences = (
  page: string,
  results: ReadonlyArray<Result>,
  complete: boolean
): ReadonlyArray<string> => {
  const most = complete ? Infinity : 2
  const told = new Set(factsIn(page, most))
  const found = new Set(factsIn(write(page, results), most))
  return [
    ...[...found].filter((fact) => !told.has(fact)).map((fact) => `The page does not say: ${fact}`),
    ...[...told].filter((fact) => complete && !found.has(fact)).map((fact) => `Not found, but on the page: ${fact}`)
  ]
}

/**
 * Adds a row to a table of docs/evidence/interop.md: writes it to the file that `INTEROP_RESULTS` names. Without that
 * variable it does nothing, so a test file can run alone.
 */
export const report = (table: string, row: Row): Effect.Effect<void> =>
  Effect.sync(() => {
    const { INTEROP_RESULTS: file } = process.env
    if (file !== undefined) appendFileSync(file, `${JSON.stringify({ table, row })}\n`)
  })
