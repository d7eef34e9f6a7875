/** No public value is without a type test, and the type tests find what they are there to find. */
import { cpSync, existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import ts from "typescript"
import { afterAll, assert, describe, it } from "vitest"
import { root, run } from "../repository/support/command.js"

const packages = readdirSync(join(root, "packages")).filter((name) => {
  const file = join(root, "packages", name, "package.json")
  if (!existsSync(file)) return false
  const { exports = {}, private: hidden } = JSON.parse(readFileSync(file, "utf8")) as {
    readonly private?: boolean
    readonly exports?: Readonly<Record<string, unknown>>
  }
  // An application, which nobody imports, has no types for others.
  return hidden !== true && "." in exports
})

const declarations = (name: string) => join(root, "packages", name, "dist")

/** What `index` exports of values, as `Module.name`: what a type test can look at. */
const publicValues = (name: string): ReadonlyArray<string> => {
  const index = join(declarations(name), "index.d.ts")
  const program = ts.createProgram([index], {
    module: ts.ModuleKind.NodeNext,
    target: ts.ScriptTarget.ES2022,
    strict: true,
    skipLibCheck: true,
    types: []
  })
  const checker = program.getTypeChecker()
  const exportsOf = (symbol: ts.Symbol | undefined) => symbol === undefined ? [] : checker.getExportsOfModule(symbol)
  const target = (symbol: ts.Symbol) => symbol.flags & ts.SymbolFlags.Alias ? checker.getAliasedSymbol(symbol) : symbol
  const file = program.getSourceFile(index)
  const modules = exportsOf(file === undefined ? undefined : checker.getSymbolAtLocation(file))
  return modules
    .flatMap((module) =>
      exportsOf(target(module))
        .filter((symbol) => target(symbol).flags & ts.SymbolFlags.Value)
        .map((symbol) => `${module.name}.${symbol.name}`)
    )
    .sort()
}

/** The `Module.name` of each `expect(Module.name).type…`; one that is named without a claim does not count. */
const expected = (folder: string): ReadonlySet<string> => {
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
  for (const name of readdirSync(folder).filter((file) => file.endsWith(".tst.ts"))) {
    visit(ts.createSourceFile(name, readFileSync(join(folder, name), "utf8"), ts.ScriptTarget.ES2022, true))
  }
  return found
}

const missing = (values: ReadonlyArray<string>, folder: string) => {
  const there = expected(folder)
  return values.filter((value) => !there.has(value))
}

const temporary: Array<string> = []
afterAll(() => temporary.forEach((path) => rmSync(path, { recursive: true })))

describe("type tests", { timeout: 120_000 }, () => {
  it("are of every package that can be imported", () => {
    assert.sameMembers(packages, ["core", "emulator", "platform-node", "redis"])
  })

  it.each(packages.map((name) => ({ name })))("are there for every public value of $name", ({ name }) => {
    const values = publicValues(name)
    assert.isAbove(values.length, 3, "nothing to look for")
    assert.deepStrictEqual(missing(values, join(root, "packages", name, "typetest")), [])
  })

  it("would be missed", () => {
    assert.includeMembers([...publicValues("core")], [
      "AccessToken.ensureValid",
      "AccessTokenProvider.AccessTokenProvider",
      "AuthorizedHttpClient.withAccessToken",
      "StoreAuth.layerConfig"
    ])
    const folder = mkdtempSync(join(tmpdir(), "typetest-"))
    temporary.push(folder)
    writeFileSync(
      join(folder, "some.tst.ts"),
      [
        "expect(A.tested).type.toBe<string>()",
        "expect(A.inBothForms(1)).type.toBe<string>()",
        "expect(A.onlyRefused).type.not.toBeCallableWith(1)",
        "expect(A.noClaim)",
        "// expect(A.inAComment).type.toBe<string>()"
      ].join("\n")
    )
    const values = ["A.tested", "A.inBothForms", "A.onlyRefused", "A.noClaim", "A.inAComment", "A.absent"]
    assert.deepStrictEqual(missing(values, folder), values.slice(2))
  })

  it("fail when a type changes: another error, another need, an option that is not checked", async () => {
    // A package of the same name below a folder of its own, its declarations changed.
    const tree = mkdtempSync(join(tmpdir(), "typetest-"))
    temporary.push(tree)
    const core = join(tree, "packages", "core")
    for (const part of ["package.json", "typetest", "dist"]) {
      cpSync(join(root, "packages", "core", part), join(core, part), { recursive: true })
    }
    for (const file of ["tsconfig.base.json", "tools/typetest/tstyche.json"]) cpSync(join(root, file), join(tree, file))
    symlinkSync(join(root, "node_modules"), join(tree, "node_modules"))
    symlinkSync(join(root, "packages", "core", "node_modules"), join(core, "node_modules"))
    const change = (file: string, from: string, to: string) => {
      const path = join(core, "dist", file)
      const text = readFileSync(path, "utf8")
      assert.include(text, from)
      writeFileSync(path, text.replace(from, to))
    }
    change("AccessToken.d.ts", "Effect.Effect<AccessToken, TokenExpiredError>", "Effect.Effect<AccessToken>")
    change(
      "AccessTokenProvider.d.ts",
      "Effect.Effect<Service, never, TokenSource | Scope.Scope>",
      "Effect.Effect<Service>"
    )
    change(
      "TokenEndpoint.d.ts",
      "readonly deadline?: Duration.DurationInput",
      "readonly deadline?: Duration.DurationInput | string"
    )
    change(
      "ClientCredentials.d.ts",
      "readonly clientSecret: Redacted.Redacted",
      "readonly clientSecret: Redacted.Redacted | string"
    )
    const { status, stderr, stdout } = await run(
      process.execPath,
      [join(root, "node_modules", "tstyche", "build", "bin.js"), "--config", join(tree, "tools", "typetest", "tstyche.json")],
      {
        cwd: tree,
        env: {
          NO_COLOR: "1",
          TSTYCHE_NPM_REGISTRY: "http://127.0.0.1:9",
          TSTYCHE_TYPESCRIPT_MODULE: new URL("../../node_modules/typescript/lib/typescript.js", import.meta.url).href
        }
      }
    )
    assert.strictEqual(status, 1, stdout + stderr)
    const failed = [...stderr.matchAll(/ at .* ❭ (.*)$/gm)].map(([, name]) => name)
    assert.includeMembers(failed, [
      "AccessToken",
      "AccessTokenProvider",
      "TokenEndpoint.Options",
      "ClientCredentials.Options"
    ])
    assert.include(stderr, "is not the same as type")
  })
})
