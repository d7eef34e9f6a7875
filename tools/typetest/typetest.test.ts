/** The public API matches surface.txt, and each of its values has a type test. */
import { existsSync, readdirSync, readFileSync } from "node:fs"
import { join } from "node:path"
import ts from "typescript"
import { assert, describe, expect, it } from "vitest"
import { root } from "../repository/support/command.js"

interface Manifest {
  readonly private?: boolean
  readonly exports?: Readonly<Record<string, unknown>>
}

const packages = readdirSync(join(root, "packages")).filter((name) => {
  const file = join(root, "packages", name, "package.json")
  if (!existsSync(file)) return false
  const { exports = {}, private: hidden } = JSON.parse(readFileSync(file, "utf8")) as Manifest
  // An application cannot be imported, and has no public types.
  return hidden !== true && "." in exports
})

const sources = (name: string) =>
  readdirSync(join(root, "packages", name, "src"), { recursive: true, encoding: "utf8" })
    .filter((path) => path.endsWith(".ts"))
    .map((path) => join(root, "packages", name, "src", path))

/** Our sources without their imports, because only the names of the exports are needed. */
const program = ts.createProgram(packages.flatMap(sources), {
  module: ts.ModuleKind.NodeNext,
  noLib: true,
  noResolve: true,
  types: []
})
const checker = program.getTypeChecker()

/** The exports of `index`, as `Module.name`. */
const publicNames = (name: string, kind: ts.SymbolFlags): ReadonlyArray<string> => {
  const exportsOf = (symbol: ts.Symbol | undefined) => symbol === undefined ? [] : checker.getExportsOfModule(symbol)
  const target = (symbol: ts.Symbol) => symbol.flags & ts.SymbolFlags.Alias ? checker.getAliasedSymbol(symbol) : symbol
  const file = program.getSourceFile(join(root, "packages", name, "src", "index.ts"))
  return exportsOf(file && checker.getSymbolAtLocation(file))
    .flatMap((module) =>
      exportsOf(target(module))
        .filter((symbol) => target(symbol).flags & kind)
        .map((symbol) => `${module.name}.${symbol.name}`)
    )
    .sort()
}

const publicValues = (name: string) => publicNames(name, ts.SymbolFlags.Value)

/** The `Module.name` of each `expect(Module.name).type.to…`. A name without a claim does not count. */
const tested = (texts: ReadonlyArray<string>): ReadonlySet<string> => {
  const found = new Set<string>()
  const visit = (node: ts.Node): void => {
    if (
      ts.isPropertyAccessExpression(node) && node.name.text === "type" && ts.isCallExpression(node.expression) &&
      node.expression.expression.getText() === "expect"
    ) {
      const of = node.expression.arguments[0]
      const claim = node.parent
      const exact = ts.isPropertyAccessExpression(claim) && claim.name.text !== "not"
      if (of !== undefined && exact) found.add((ts.isCallExpression(of) ? of.expression : of).getText())
    }
    ts.forEachChild(node, visit)
  }
  for (const text of texts) visit(ts.createSourceFile("some.tst.ts", text, ts.ScriptTarget.ES2022, true))
  return found
}

const testsOf = (name: string) => {
  const folder = join(root, "packages", name, "typetest")
  return readdirSync(folder).filter((file) => file.endsWith(".tst.ts")).map((file) =>
    readFileSync(join(folder, file), "utf8")
  )
}

const untested = (values: ReadonlyArray<string>, texts: ReadonlyArray<string>) => {
  const names = tested(texts)
  return values.filter((value) => !names.has(value))
}

describe("type tests", () => {
  it("exist for every package that can be imported", () => {
    assert.sameMembers(packages, ["core", "emulator", "platform-node", "redis"])
  })

  it("surface.txt lists every public value and type, so that an addition is a decision", async () => {
    const surface = packages.flatMap((name) =>
      publicNames(name, ts.SymbolFlags.Value | ts.SymbolFlags.Type).map((entry) => `${name} ${entry}\n`)
    )
    assert.includeMembers(surface, ["core StoreAuth.layer\n", "core StoreAuth.Options\n"])
    await expect(surface.join("")).toMatchFileSnapshot("surface.txt")
  })

  it.each(packages)("exist for every public value of %s", (name) => {
    const values = publicValues(name)
    assert.isAbove(values.length, 3)
    assert.deepStrictEqual(untested(values, testsOf(name)), [])
  })

  it("a value without a type test is reported", () => {
    assert.includeMembers([...publicValues("core")], [
      "AccessToken.ensureValid",
      "AccessTokenProvider.AccessTokenProvider",
      "AuthorizedHttpClient.withAccessToken",
      "StoreAuth.layerConfig"
    ])
    const text = [
      "expect(A.tested).type.toBe<string>()",
      "expect(A.inBothForms(1)).type.toBe<string>()",
      "expect(A.onlyRefused).type.not.toBeCallableWith(1)",
      "expect(A.noClaim)",
      "// expect(A.inAComment).type.toBe<string>()"
    ].join("\n")
    const values = ["A.tested", "A.inBothForms", "A.onlyRefused", "A.noClaim", "A.inAComment", "A.absent"]
    assert.deepStrictEqual(untested(values, [text]), values.slice(2))
  })
})
