/** The tables of docs/interop.md: each between two comments, its rows what a run reported. */

/** A row of a table: its columns and their texts, the first of them what the row is about. */
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

/** The results as the command finds them: a line each. */
export const parse = (lines: string): ReadonlyArray<Result> =>
  lines.split("\n").filter((line) => line !== "").map((line) => JSON.parse(line) as Result)

/** What keeps a page from being written: a table without rows, rows without a table. */
export const misfits = (page: string, results: ReadonlyArray<Result>): ReadonlyArray<string> => {
  const tables = [...page.matchAll(places)].map(([, table = ""]) => table)
  return [
    ...tables.filter((table) => rowsOf(results, table).length === 0).map((table) => `Nothing was found for ${table}.`),
    ...[...new Set(results.map(({ table }) => table))].filter((table) => !tables.includes(table)).map((table) =>
      `The page has no place for ${table}.`
    )
  ]
}

/** The page with each table made anew. */
export const write = (page: string, results: ReadonlyArray<Result>): string =>
  page.replace(
    places,
    (_, table: string) => `<!-- table: ${table} -->\n\n${markdown(rowsOf(results, table))}\n\n<!-- end -->`
  )

interface Tested {
  readonly server: string
  readonly version: string
}

const named = ({ server, version }: Tested) => `${server} ${version}`

/** The servers that the rows of a page name, with their versions. */
const testedIn = (page: string): ReadonlyArray<string> =>
  [...page.matchAll(places)].flatMap(([place]) => {
    const rows = place.split("\n").filter((line) => line.startsWith("|")).map((line) =>
      line.slice(1, -1).split(/(?<!\\)\|/).map((cell) => cell.trim())
    )
    const server = rows[0]?.indexOf("server") ?? -1
    const version = rows[0]?.indexOf("version") ?? -1
    return server < 0 || version < 0
      ? []
      : rows.slice(2).map((cells) => named({ server: cells[server] ?? "", version: cells[version] ?? "" }))
  })

const testedBy = (results: ReadonlyArray<Result>): ReadonlyArray<string> =>
  results.flatMap(({ row: { server, version } }) =>
    server === undefined || version === undefined ? [] : [escaped(named({ server, version }))]
  )

/**
 * Where the page and a run differ in the servers and versions they name; figures differ from run to run. A run of only a
 * part cannot tell of the others on the page.
 */
export const differences = (
  page: string,
  results: ReadonlyArray<Result>,
  complete: boolean
): ReadonlyArray<string> => {
  const told = new Set(testedIn(page))
  const ran = new Set(testedBy(results))
  return [
    ...[...ran].filter((tested) => !told.has(tested)).map((tested) => `The page does not name ${tested}.`),
    ...[...told].filter((tested) => complete && !ran.has(tested)).map((tested) =>
      `The page names ${tested}, which did not run.`
    )
  ]
}
