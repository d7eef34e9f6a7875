import { assert, describe, it } from "vitest"
import { differences, misfits, parse, type Result, write } from "../src/page.js"

const page = (...tables: ReadonlyArray<string>) => ["# Title", ...tables, "The end."].join("\n\n")

const place = (name: string, ...lines: ReadonlyArray<string>) =>
  [`<!-- table: ${name} -->`, "", ...lines, ...(lines.length > 0 ? [""] : []), "<!-- end -->"].join("\n")

const results: ReadonlyArray<Result> = [
  { table: "servers", row: { server: "b", version: "2.0", token: "JWT | opaque" } },
  { table: "servers", row: { server: "a", version: "1.0" } },
  { table: "load", row: { server: "a", calls: "10,000" } }
]

const written = page(
  place(
    "servers",
    "| server | version | token |",
    "| --- | --- | --- |",
    "| a | 1.0 |  |",
    "| b | 2.0 | JWT \\| opaque |"
  ),
  place("load", "| server | calls |", "| --- | --- |", "| a | 10,000 |")
)

describe("the page", () => {
  it("is written from the results, each table in its place, and again", () => {
    assert.strictEqual(write(page(place("servers"), place("load")), results), written)
    assert.strictEqual(write(written, results), written)
  })

  it("is not written if a result has no table, or a table no result", () => {
    assert.deepStrictEqual(misfits(written, results), [])
    assert.deepStrictEqual(misfits(page(place("servers"), place("nginx")), results), [
      "The run reported no row for nginx.",
      "The page has no place for load."
    ])
  })

  it("must have the results of a run, except for the figures", () => {
    const slower = results.map(({ row, table }) => ({ table, row: table === "load" ? { ...row, calls: "9" } : row }))
    assert.deepStrictEqual(differences(written, slower, true), [])
    const newer = results.map(({ row, table }) => ({ table, row: row["version"] ? { ...row, version: "3.0" } : row }))
    assert.deepStrictEqual(differences(written, newer, true), [
      "The page does not say: servers: a | 3.0 | ",
      "The page does not say: servers: b | 3.0 | JWT \\| opaque",
      "Not found, but on the page: servers: a | 1.0 | ",
      "Not found, but on the page: servers: b | 2.0 | JWT \\| opaque"
    ])
    const without = results.filter(({ row }) => row["server"] !== "b")
    assert.include(differences(written, without, true), "Not found, but on the page: servers: b | 2.0 | JWT \\| opaque")
    const renamed = results.map(({ row: { calls, ...row }, table }) => ({
      table,
      row: calls ? { ...row, all: calls } : row
    }))
    assert.deepStrictEqual(differences(written, renamed, true), [
      "The page does not say: load: server | all",
      "Not found, but on the page: load: server | calls"
    ])
  })

  it("is compared with a partial run only in servers and versions", () => {
    assert.deepStrictEqual(differences(written, results.slice(0, 1), false), [])
    assert.deepStrictEqual(differences(page(place("servers")), results.slice(0, 1), false), [
      "The page does not say: servers: b | 2.0"
    ])
  })

  it("is written from results in a file with one line each", () => {
    assert.deepStrictEqual(parse(results.map((result) => `${JSON.stringify(result)}\n`).join("")), results)
  })
})
