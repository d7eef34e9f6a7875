/** Each value of the public API has a type test. An addition also changes docs/reference/api. */
import { join } from "node:path"
import ts from "typescript"
import { assert, describe, it } from "vitest"
import { root } from "../repository/support/command.js"
import { filesOf, read } from "../repository/support/pages.js"

/** The packages that can be imported. The command line cannot. */
const packages = filesOf("packages/*/src/index.ts").map((path) => path.split("/")[1] ?? "")

/** Our sources without their imports, because only the names of the exports are needed. */
const program = ts.createProgram(filesOf("packages/*/src/*.ts").map((path) => join(root, path)), {
  module: ts.ModuleKind.NodeNext,
  noLib: true,
  noResolve: true,
  types: []
})
const checker = program.getTypeChecker()

/** The values that `index` exports, as `Module.name`. */
const publicValues = (name: string): ReadonlyArray<string> => {
  const exportsOf = (symbol: ts.Symbol | undefined) => symbol === undefined ? [] : checker.getExportsOfModule(symbol)
  const target = (symbol: ts.Symbol) => symbol.flags & ts.SymbolFlags.Alias ? checker.getAliasedSymbol(symbol) : symbol
  const file = program.getSourceFile(join(root, "packages", name, "src", "index.ts"))
  return exportsOf(file && checker.getSymbolAtLocation(file)).flatMap((module) =>
    exportsOf(target(module))
      .filter((symbol) => target(symbol).flags & ts.SymbolFlags.Value)
      .map((symbol) => `${module.name}.${symbol.name}`)
  )
}

describe("the public API", () => {
  it.each(packages)("has a type test for every value of %s", (name) => {
    const tests = filesOf(`packages/${name}/typetest/*.tst.ts`).map(read).join("\n")
    const isTested = (value: string) => new RegExp(`\\bexpect\\(\\s*${value}[(<)]`).test(tests)
    const values = publicValues(name)
    assert.isAbove(values.length, 3)
    assert.deepStrictEqual(values.filter((value) => !isTested(value)), [])
    assert.isFalse(isTested("StoreAuth.unknown"))
  })
})
