import { readFileSync } from "node:fs"
import { join } from "node:path"
import ts from "typescript"
import { assert, describe, it } from "vitest"
import { type CodeBlock, fenced, fencesInSources, ofMarkdown, ofSources } from "./support/codeBlocks.js"
import { root } from "./support/command.js"
import * as links from "./support/links.js"

const isTypeScript = ({ language }: CodeBlock) => language === "ts"

const place = ({ file, line }: CodeBlock) => `${file}:${line}`

/**
 * Type-checks blocks against the built packages, as modules that stand beside the examples; answers what is wrong with
 * each. Nothing is written.
 */
const check = (blocks: ReadonlyArray<CodeBlock>): ReadonlyArray<string> => {
  const { config } = ts.readConfigFile(join(root, "tsconfig.base.json"), (path) => readFileSync(path, "utf8")) as {
    readonly config: { readonly compilerOptions: object }
  }
  const { options } = ts.convertCompilerOptionsFromJson(
    {
      ...config.compilerOptions,
      ...{ noEmit: true, composite: false, incremental: false, declaration: false, declarationMap: false },
      ...{ plugins: [], types: ["node"], noUnusedLocals: false }
    },
    root
  )
  const modules = new Map(
    blocks.map((block, index) => [join(root, "examples", "src", `block-${index}.ts`).replaceAll("\\", "/"), block])
  )
  const host = ts.createCompilerHost(options)
  const ofDisk = { fileExists: host.fileExists.bind(host), readFile: host.readFile.bind(host) }
  host.fileExists = (path) => modules.has(path) || ofDisk.fileExists(path)
  host.readFile = (path) => modules.get(path)?.code ?? ofDisk.readFile(path)
  host.getSourceFile = (path, version) => {
    const text = host.readFile(path)
    return text === undefined ? undefined : ts.createSourceFile(path, text, version)
  }
  const program = ts.createProgram([...modules.keys()], options, host)
  return ts.getPreEmitDiagnostics(program).map(({ file, messageText, start = 0 }) => {
    const block = file === undefined ? undefined : modules.get(file.fileName)
    const line = file === undefined ? 0 : file.getLineAndCharacterOfPosition(start).line
    const where = block === undefined ? file?.fileName ?? "options" : place({ ...block, line: block.line + line })
    return `${where}: ${ts.flattenDiagnosticMessageText(messageText, " ")}`
  })
}

describe("the code in the documentation", { timeout: 120_000 }, () => {
  const markdown = ofMarkdown()
  const sources = ofSources()

  it("is found", () => {
    const files = new Set(markdown.filter(isTypeScript).map(({ file }) => file))
    assert.include([...files], "README.md")
    assert.isAbove(markdown.filter(isTypeScript).length, 8)
    // Every example of a doc comment is a block, and every block says what it is.
    assert.isAbove(fencesInSources(), 80)
    assert.strictEqual(sources.filter(isTypeScript).length, fencesInSources())
    const examples = new Set(sources.map(({ file }) => file))
    for (const file of ["packages/core/src/StoreAuth.ts", "packages/platform-node/src/NodeStoreAuth.ts"]) {
      assert.include([...examples], join(file))
    }
    const languages = new Set([...markdown, ...sources].map(({ language }) => language))
    assert.deepStrictEqual(
      [...languages].filter((language) => !["ts", "sh", "console", "mermaid", "text"].includes(language)),
      []
    )
  })

  it("compiles", () => {
    assert.deepStrictEqual(check([...markdown, ...sources].filter(isTypeScript)), [])
  })

  it("would not compile with a mistake in it", () => {
    const broken = [
      `import { StoreAuth } from "@store-api/core"\nStoreAuth.layer({ authUrl: "https://auth.store.example" })`,
      `import { NodeStoreAuth } from "@store-api/platform-node"\nNodeStoreAuth.layers()`,
      `import { Emulator } from "@store-api/emulator"\nconst life: number = Emulator.demoClient.clientId`,
      `import * as internal from "@store-api/core/internal/tokenState"`,
      `const text: string = 1`
    ].map((code, index): CodeBlock => ({ file: `broken-${index}`, line: 1, language: "ts", code }))
    const fine: CodeBlock = { file: "fine", line: 1, language: "ts", code: `import "@store-api/core/AccessToken"` }
    const found = check([...broken, fine]).map((problem) => problem.replace(/:.*/s, ""))
    assert.deepStrictEqual([...new Set(found)].sort(), broken.map(({ file }) => file))
  })

  it("has an end, or is not overlooked", () => {
    assert.throws(() => fenced("some.md", ["```ts", "const a = 1"]), "some.md:2")
    assert.deepStrictEqual(fenced("some.md", ["text", "```ts", "a", "b", "```"]), [
      { file: "some.md", line: 3, language: "ts", code: "a\nb" }
    ])
  })
})

describe("the text of the documentation", () => {
  const files = [...new Set([...ofMarkdown().map(({ file }) => file), "CONTRIBUTING.md"])]

  it("links to files and headings that are there", () => {
    const { broken, checked } = links.check(files)
    assert.deepStrictEqual(broken, [])
    assert.isAbove(checked, 10)
  })

  it("would be found with a link that leads nowhere", () => {
    const pages = new Map([
      [
        "a.md",
        "# One\n## Two words\n## One\n[a](#one-1) [b](#two-words) [c](#three) [d](b.md#x) [e](b.md) [f](README.md)"
      ],
      ["b.md", "```sh\n# x\n[g](nowhere.md)\n```\n[h](c.md)"]
    ])
    assert.deepStrictEqual(links.check(pages.keys(), (page) => pages.get(page)), {
      checked: 7,
      broken: ["a.md: #three", "a.md: b.md#x", "b.md: c.md"]
    })
  })

  it("names the pins of the catalog", () => {
    const catalog = readFileSync(join(root, "pnpm-workspace.yaml"), "utf8")
    const readme = readFileSync(join(root, "README.md"), "utf8")
    const install = /^npm install .*$/m.exec(readme)?.[0] ?? ""
    const pins = [...install.matchAll(/(\S+)@(\^\S+)/g)]
    assert.deepStrictEqual(pins.map(([, name]) => name), ["effect", "@effect/platform", "@effect/platform-node"])
    for (const [, name, range] of pins) assert.match(catalog, new RegExp(`^ +"?${name}"?: \\${range}$`, "m"))
  })
})
