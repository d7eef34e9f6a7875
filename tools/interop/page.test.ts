import { assert, describe, it } from "vitest"
import { differences, read, write } from "./page.mjs"

const page = (...tables: ReadonlyArray<string>) => ["# Title", ...tables, "The end."].join("\n\n")

const place = (name: string, ...lines: ReadonlyArray<string>) =>
  [`<!-- table: ${name} -->`, "", ...lines, ...(lines.length > 0 ? [""] : []), "<!-- end -->"].join("\n")

const results = [
  { table: "servers", row: { server: "a", version: "1.0", token: "opaque" } },
  { table: "servers", row: { server: "b", version: "2.0", token: "JWT | opaque" } },
  { table: "load", row: { server: "a", calls: "10,000" } }
]

const written = page(
  place(
    "servers",
    "| server | version | token |",
    "| --- | --- | --- |",
    "| a | 1.0 | opaque |",
    "| b | 2.0 | JWT \\| opaque |"
  ),
  place("load", "| server | calls |", "| --- | --- |", "| a | 10,000 |")
)

describe("the page", () => {
  it("is written from the results, each table in its place, and again", () => {
    assert.strictEqual(write(page(place("servers"), place("load")), results), written)
    assert.strictEqual(write(written, results), written)
  })

  it("has the rows of the results", () => {
    assert.deepStrictEqual(read(written), results)
    assert.deepStrictEqual(read(page(place("servers"))), [])
  })

  it("differs if a result has no table, or a table no result", () => {
    assert.deepStrictEqual(differences(written, results), [])
    const other = page(place("servers"), place("nginx"))
    assert.deepStrictEqual(differences(write(other, results), results), [
      "The run reported no row for nginx.",
      "The page does not say: load: server: a | calls"
    ])
  })

  it("must have the results of a run, except for the figures", () => {
    const changed = (name: string, column: string, cell: string) =>
      results.map(({ row, table }) => table === name ? { table, row: { ...row, [column]: cell } } : { table, row })
    assert.deepStrictEqual(differences(written, changed("load", "calls", "9")), [])
    assert.lengthOf(differences(written, changed("load", "server", "c")), 2)
    assert.lengthOf(differences(written, changed("servers", "version", "3.0")), 4)
    assert.deepStrictEqual(differences(written, results.slice(0, 2)), [
      "The run reported no row for load.",
      "Not found, but on the page: load: server: a | calls"
    ])
    assert.lengthOf(differences(written, [...results.slice(0, 2), { table: "load", row: { all: "10,000" } }]), 2)
  })
})
