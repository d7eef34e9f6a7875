import { readFileSync } from "node:fs"
import { join } from "node:path"
import ts from "typescript"
import { assert, describe, it } from "vitest"
import { type CodeBlock, fenced, fencesInSources, ofMarkdown, ofSources, packages } from "./support/codeBlocks.js"
import { root } from "./support/command.js"
import { read, sections } from "./support/pages.js"

const isTypeScript = ({ language }: CodeBlock) => language === "ts"

const place = ({ file, line }: CodeBlock) => `${file}:${line}`

/** Resolves the packages to their sources, without a build. `internal` cannot be imported. */
const paths = Object.fromEntries(
  packages().flatMap((name) => [
    [`@store-api/${name}`, [`packages/${name}/src/index.ts`]],
    [`@store-api/${name}/internal/*`, ["closed"]],
    [`@store-api/${name}/*`, [`packages/${name}/src/*.ts`]]
  ])
)

/** Type-checks code blocks as modules in the folder of the examples. Returns the problems of each. */
const check = (blocks: ReadonlyArray<CodeBlock>): ReadonlyArray<string> => {
  const { config } = ts.readConfigFile(join(root, "tsconfig.base.json"), (path) => ts.sys.readFile(path)) as {
    readonly config: { readonly compilerOptions: object }
  }
  const { options } = ts.convertCompilerOptionsFromJson(
    {
      ...config.compilerOptions,
      ...{ noEmit: true, composite: false, incremental: false, declaration: false, declarationMap: false },
      ...{ plugins: [], types: ["node"], noUnusedLocals: false, allowImportingTsExtensions: true, baseUrl: ".", paths }
    },
    root
  )
  const inExamples = (name: string) => join(root, "examples", "src", name).replaceAll("\\", "/")
  const modules = new Map(blocks.map((block, index) => [inExamples(`block-${index}.ts`), block]))
  // The files of the tutorial import each other. The last version of each is used.
  const saved = new Map(
    blocks.flatMap((block) => {
      const [, name] = /^\/\/ (\w+\.ts)$/m.exec(block.code) ?? []
      return name === undefined ? [] : [[inExamples(name), block] as const]
    })
  )
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
      return `${place({ ...block, line: block.line + line })}: ${
        ts.flattenDiagnosticMessageText(problem.messageText, " ")
      }`
    })
  })
}

describe("the code in the documentation", { timeout: 120_000 }, () => {
  const markdown = ofMarkdown()
  const sources = ofSources()

  it("is found", () => {
    const files = new Set(markdown.filter(isTypeScript).map(({ file }) => file))
    assert.include([...files], "README.md")
    assert.isAbove(markdown.filter(isTypeScript).length, 8)
    // Every example in a doc comment is a code block, and every block names its language.
    assert.isAbove(fencesInSources(), 80)
    assert.strictEqual(sources.filter(isTypeScript).length, fencesInSources())
    const examples = new Set(sources.map(({ file }) => file))
    for (const file of ["packages/core/src/StoreAuth.ts", "packages/platform-node/src/NodeStoreAuth.ts"]) {
      assert.include([...examples], join(file))
    }
    const languages = new Set([...markdown, ...sources].map(({ language }) => language))
    assert.deepStrictEqual(
      [...languages].filter((language) =>
        !["ts", "json", "sh", "console", "dockerfile", "mermaid", "text"].includes(language)
      ),
      []
    )
  })

  it("compiles, and does not compile with a mistake", () => {
    const broken = [
      `import { StoreAuth } from "@store-api/core"\nStoreAuth.layer({ authUrl: "https://auth.store.example" })`,
      `import { NodeStoreAuth } from "@store-api/platform-node"\nNodeStoreAuth.layers()`,
      `import { Emulator } from "@store-api/emulator"\nconst id: number = Emulator.demoClient.clientId`,
      `import * as internal from "@store-api/core/internal/tokenState"`,
      `const text: string = 1`,
      `const text = (`
    ].map((code, index): CodeBlock => ({ file: `broken-${index}`, line: 1, language: "ts", code }))
    const problems = check([...[...markdown, ...sources].filter(isTypeScript), ...broken])
    const isMistake = (problem: string) => problem.startsWith("broken-")
    assert.deepStrictEqual(problems.filter((problem) => !isMistake(problem)), [])
    const found = problems.filter(isMistake).map((problem) => problem.replace(/:.*/s, ""))
    assert.deepStrictEqual([...new Set(found)], broken.map(({ file }) => file))
  })

  it("must have an end", () => {
    assert.throws(() => fenced("some.md", ["```ts", "const a = 1"]), "some.md:2")
    assert.deepStrictEqual(fenced("some.md", ["text", "```ts", "a", "b", "```"]), [
      { file: "some.md", line: 3, language: "ts", code: "a\nb" }
    ])
  })
})

describe("the install commands of the README", () => {
  it("name the versions that the tests use, for both majors of Effect", () => {
    const commands = readFileSync(join(root, "README.md"), "utf8").match(/^npm install @store-api\/core.*$/gm) ?? []
    const pins = commands.map((line) => [...line.matchAll(/(\S+)@\^(\S+)/g)].map(([, ...pin]) => pin))
    assert.deepStrictEqual(pins.map((pins) => pins.map(([name]) => name)), [
      ["effect", "@effect/platform", "@effect/platform-node"],
      ["effect", "@effect/platform-node"]
    ])
    const installed = (file: string) => readFileSync(join(root, file), "utf8")
    for (const [index, file] of ["pnpm-workspace.yaml", "tools/effect4/line/package.json"].entries()) {
      for (const [name = "", version = ""] of pins[index] ?? []) {
        assert.match(installed(file), new RegExp(`^ +"?${name}"?: "?\\^?${version}"?,?$`, "m"))
      }
    }
  })
})

const withoutImports = (code: string) =>
  code.split("\n").filter((line) => !line.startsWith("import ")).join("\n").trim()

describe("docs/guides/migrating.md", () => {
  it("shows the caches that the tests run, unchanged", () => {
    const before = sections(read("docs/guides/migrating.md")).find(({ heading }) => heading === "Before")?.text ?? ""
    const shown = fenced("docs/guides/migrating.md", before.split("\n")).map(({ code }) => withoutImports(code))
      .flatMap((code) => code.split(/\n\n(?=export )/))
    const run = withoutImports(read("examples/test/handRolled.ts")).split(/\n\n(?=export )/).slice(1)
    // The test itself creates the client around them.
    assert.sameMembers([...new Set(shown)].filter((code) => !code.startsWith("export const withToken")), run)
    assert.lengthOf(run, 4)
  })
})
