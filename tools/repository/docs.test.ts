/** The code in the pages and docstrings compiles, and is the code that the tests run. */
import { join } from "node:path"
import ts from "typescript"
import { assert, describe, it } from "vitest"
import { root } from "./support/command.js"
import { blocksInPages, blocksInSources, type CodeBlock, fenced, read, sectionOf } from "./support/pages.js"

const isTypeScript = ({ language }: CodeBlock) => language === "ts"

/** Resolves the packages to their sources, without a build. `internal` cannot be imported. */
const compilerOptions = (): ts.CompilerOptions => {
  const folder = join(root, "tools", "lint-deps")
  const { config } = ts.readConfigFile(join(folder, "tsconfig.json"), (path) => ts.sys.readFile(path)) as {
    readonly config: object
  }
  const { options } = ts.parseJsonConfigFileContent({ ...config, files: [], include: [] }, ts.sys, folder)
  const modules = Object.keys(options.paths ?? {}).filter((path) => path.endsWith("/*"))
  const closed = Object.fromEntries(modules.map((path) => [path.replace("*", "internal/*"), ["closed"]]))
  return { ...options, noUnusedLocals: false, allowImportingTsExtensions: true, paths: { ...options.paths, ...closed } }
}

/** Type-checks code blocks as modules in the folder of the examples. Returns the problems of each. */
const check = (blocks: ReadonlyArray<CodeBlock>): ReadonlyArray<string> => {
  const inExamples = (name: string) => join(root, "examples", "src", name).replaceAll("\\", "/")
  const modules = new Map(blocks.map((block, index) => [inExamples(`block-${index}.ts`), block]))
  // The files of the tutorial import each other. The last version of each is used.
  const saved = new Map(
    blocks.flatMap((block) => {
      const [, name] = /^\/\/ (\w+\.ts)$/m.exec(block.code) ?? []
      return name === undefined ? [] : [[inExamples(name), block] as const]
    })
  )
  const options = compilerOptions()
  const host = ts.createCompilerHost(options)
  host.jsDocParsingMode = ts.JSDocParsingMode.ParseNone
  const ofDisk = { fileExists: host.fileExists.bind(host), readFile: host.readFile.bind(host) }
  const virtual = (path: string) => modules.get(path) ?? saved.get(path)
  host.fileExists = (path) => virtual(path) !== undefined || ofDisk.fileExists(path)
  host.readFile = (path) => virtual(path)?.code ?? ofDisk.readFile(path)
  const program = ts.createProgram([...modules.keys()], options, host)
  return [...modules].flatMap(([path, block]) => {
    const file = program.getSourceFile(path)
    return [...program.getSyntacticDiagnostics(file), ...program.getSemanticDiagnostics(file)].map((problem) => {
      const line = file?.getLineAndCharacterOfPosition(problem.start ?? 0).line ?? 0
      return `${block.file}:${block.line + line}: ${ts.flattenDiagnosticMessageText(problem.messageText, " ")}`
    })
  })
}

describe("the code in the documentation", { timeout: 120_000 }, () => {
  const inPages = blocksInPages()
  const inSources = blocksInSources()

  it("is found, and each block names its language", () => {
    assert.isAbove(inPages.filter(isTypeScript).length, 8)
    assert.isAbove(inSources.filter(isTypeScript).length, 80)
    const languages = new Set([...inPages, ...inSources].map(({ language }) => language))
    assert.includeMembers(["ts", "json", "sh", "console", "dockerfile", "mermaid", "text"], [...languages])
  })

  it("compiles, and does not compile with a mistake", () => {
    const broken = [
      `import { StoreAuth } from "@store-api/core"\nStoreAuth.layer({ authUrl: "https://auth.store.example" })`,
      `import { NodeStoreAuth } from "@store-api/platform-node"\nNodeStoreAuth.layers()`,
      `import * as internal from "@store-api/core/internal/provider/tokenState"`,
      `const text = (`
    ].map((code, index): CodeBlock => ({ file: `broken-${index}`, line: 1, language: "ts", code }))
    const problems = check([...[...inPages, ...inSources].filter(isTypeScript), ...broken])
    const isMistake = (problem: string) => problem.startsWith("broken-")
    assert.deepStrictEqual(problems.filter((problem) => !isMistake(problem)), [])
    const found = problems.filter(isMistake).map((problem) => problem.replace(/:.*/s, ""))
    assert.deepStrictEqual([...new Set(found)], broken.map(({ file }) => file))
  })
})

describe("the install commands of the README", () => {
  it("name the versions that the tests use, for both majors of Effect", () => {
    const commands = read("README.md").match(/^npm install @store-api\/core.*$/gm) ?? []
    const pins = commands.map((line) => [...line.matchAll(/(\S+)@\^(\S+)/g)].map(([, ...pin]) => pin))
    assert.deepStrictEqual(pins.map((pins) => pins.map(([name]) => name)), [
      ["effect", "@effect/platform", "@effect/platform-node"],
      ["effect", "@effect/platform-node"]
    ])
    for (const [index, file] of ["pnpm-workspace.yaml", "tools/effect4/line/package.json"].entries()) {
      for (const [name = "", version = ""] of pins[index] ?? []) {
        assert.match(read(file), new RegExp(`^ +"?${name}"?: "?\\^?${version}"?,?$`, "m"))
      }
    }
  })
})

describe("docs/guides/migrating.md", () => {
  it("shows the caches that the tests run, unchanged", () => {
    const exportsOf = (code: string) =>
      code.split("\n").filter((line) => !line.startsWith("import ")).join("\n").trim().split(/\n\n(?=export )/)
    const shown = fenced("docs/guides/migrating.md", sectionOf("docs/guides/migrating.md", "Before"))
      .flatMap(({ code }) => exportsOf(code))
    const run = exportsOf(read("examples/test/handRolled.ts")).slice(1)
    // The test itself creates the client around them.
    assert.sameMembers([...new Set(shown)].filter((code) => !code.startsWith("export const withToken")), run)
    assert.lengthOf(run, 4)
  })
})
