/** The tables of a page, each between two comments: `<!-- table: name -->` and `<!-- end -->`. */

const places = /<!-- table: (.+?) -->\n[^]*?<!-- end -->/g

const line = (cells) => `| ${cells.map((cell) => cell.replaceAll("|", "\\|")).join(" | ")} |`

const cellsOf = (line) => line.slice(1, -1).split(/(?<!\\)\|/).map((cell) => cell.trim().replaceAll("\\|", "|"))

const markdown = (rows) => {
  const columns = Object.keys(rows[0])
  return [columns, columns.map(() => "---"), ...rows.map((row) => columns.map((column) => row[column]))].map(line)
    .join("\n")
}

/** All rows of a page, as a run reports them: each with its table, and the text of its cells by column. */
export const read = (page) =>
  [...page.matchAll(places)].flatMap(([place, table]) => {
    const [columns, , ...rows] = place.split("\n").filter((line) => line.startsWith("|")).map(cellsOf)
    return rows.map((cells) => ({
      table,
      row: Object.fromEntries(columns.map((column, index) => [column, cells[index]]))
    }))
  })

/** Returns the page with the tables of these rows. A table without rows stays as it is. */
export const write = (page, results) =>
  page.replace(places, (place, name) => {
    const rows = results.filter(({ table }) => table === name).map(({ row }) => row)
    return rows.length === 0 ? place : `<!-- table: ${name} -->\n\n${markdown(rows)}\n\n<!-- end -->`
  })

/** How many columns, from the left, are the same in each run; the others are figures. By default all. */
const steady = { machine: 0, load: 1, nginx: 2 }

const fact = ({ row, table }) => {
  const columns = Object.entries(row).map(([column, cell], index) =>
    index < (steady[table] ?? Infinity) ? `${column}: ${cell}` : column
  )
  return `${table}: ${columns.join(" | ")}`
}

/** The differences between the page and a run, without the figures. */
export const differences = (page, results) => {
  const told = new Set(read(page).map(fact))
  const found = new Set(results.map(fact))
  const tables = [...page.matchAll(places)].map(([, table]) => table)
  return [
    ...tables.filter((name) => results.every(({ table }) => table !== name))
      .map((table) => `The run reported no row for ${table}.`),
    ...[...found].filter((fact) => !told.has(fact)).map((fact) => `The page does not say: ${fact}`),
    ...[...told].filter((fact) => !found.has(fact)).map((fact) => `Not found, but on the page: ${fact}`)
  ]
}
