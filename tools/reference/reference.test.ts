import { readdirSync, readFileSync } from "node:fs"
import { join } from "node:path"
import { pathToFileURL } from "node:url"
import { assert, describe, it } from "vitest"
import { outdated } from "../reference/files.mjs"
import { type Doc, type Entry, type Module, type Package, read } from "../reference/model.mjs"
import { render } from "../reference/pages.mjs"
import { ofSources } from "../repository/support/codeBlocks.js"
import { root } from "../repository/support/command.js"
import * as links from "../repository/support/links.js"

const categories = [
  "combinators",
  "config",
  "constants",
  "constructors",
  "conversions",
  "errors",
  "getters",
  "layers",
  "metrics",
  "models",
  "pattern matching",
  "references",
  "refinements",
  "schemas",
  "tags",
  "type ids"
]

/** A sentence, of more words than the name has. */
const says = (text: string) => /^[^]{12,}[.:]/.test(text) && text.split(/\s+/).length >= 3

const saysWhatItIs = (doc: Doc | undefined): ReadonlyArray<string> => [
  ...(says(doc?.text ?? "") ? [] : ["a sentence that says what it is"]),
  ...(/^\d+\.\d+\.\d+$/.test(doc?.since ?? "") ? [] : ["@since"])
]

const isExampleOf = (name: string) => (example: string) =>
  /^```ts\n[^]*from "@store-api\/[^]*\n```$/.test(example) && new RegExp(`\\b${name}\\b`).test(example)

/** What an entry's doc comment lacks. A constant or a type may point to a name whose example shows it. */
const lacking = (entry: Entry, exampleAt: (name: string) => boolean): ReadonlyArray<string> => {
  const { doc, fields, kind, name } = entry
  const { category = "", examples = [], see = [], tags = [] } = doc ?? {}
  const needsOwn = kind === "function" || kind === "class"
  return [
    ...saysWhatItIs(doc),
    ...(categories.includes(category) ? [] : [`@category ${category}`]),
    ...(examples.length > 0 || (!needsOwn && see.length > 0) ? [] : ["@example"]),
    ...examples.filter((example) => !isExampleOf(name)(example)).map(() => `an @example with ${name} in it`),
    ...see.filter((seen) => !exampleAt(seen)).map((seen) => `@see ${seen}: an example there`),
    ...tags.filter((tag) => !["category", "example", "see", "since"].includes(tag)).map((tag) => `no @${tag}`),
    ...fields.filter(({ text }) => !says(text)).map(({ path }) => `a sentence for ${path}`)
  ]
}

/** All that is missing in the doc comments, with the place of each. */
const missing = (packages: ReadonlyArray<Package>): ReadonlyArray<string> => {
  const modules = packages.flatMap(({ modules }) => modules)
  const exampleAt = (from: Module) => (name: string) => {
    const [first = "", second] = name.split(".")
    const module = second === undefined ? from : modules.find((module) => module.name === first)
    return module?.entries.some(({ doc, name }) => name === (second ?? first) && doc?.examples.length !== 0) === true
  }
  return packages.flatMap(({ doc, modules, title }) => [
    ...saysWhatItIs(doc).map((what) => `${title}: ${what}`),
    ...modules.flatMap((module) => [
      ...saysWhatItIs(module.doc).map((what) => `${module.file} lacks ${what}`),
      ...module.entries.flatMap((entry) =>
        lacking(entry, exampleAt(module)).map((what) => `${module.file}:${entry.line} ${entry.name} lacks ${what}`)
      )
    ])
  ])
}

const packages = read()
const modules = packages.flatMap(({ modules }) => modules)
const entries = modules.flatMap(({ entries }) => entries)

type Change = readonly [file: string, from: string | RegExp, to: string]

/** The packages with some changes of their sources, each of which has to change something. */
const changed = (changes: ReadonlyArray<Change>): ReadonlyArray<Package> => {
  const texts = new Map<string, string>()
  for (const [file, from, to] of changes) {
    const path = join(root, "packages", file).replaceAll("\\", "/")
    const text = texts.get(path) ?? readFileSync(path, "utf8")
    const other = text.replace(from, to)
    assert.notStrictEqual(other, text, `${file} has no ${String(from)}`)
    texts.set(path, other)
  }
  return read(texts)
}

/** What a program gets when it imports the built package: names by module. */
const imported = async (name: string): Promise<Readonly<Record<string, ReadonlyArray<string>>>> => {
  const { href } = pathToFileURL(join(root, "packages", name, "dist", "index.js"))
  const namespaces = await import(/* @vite-ignore */ href) as Readonly<Record<string, object>>
  return Object.fromEntries(Object.entries(namespaces).map(([module, names]) => [module, Object.keys(names).sort()]))
}

describe("what the packages offer", { timeout: 120_000 }, () => {
  it("is read whole: each module, and each name that a program gets when it imports one", async () => {
    const importable = readdirSync(join(root, "packages")).filter((name) => {
      const manifest: unknown = JSON.parse(readFileSync(join(root, "packages", name, "package.json"), "utf8"))
      return Object.hasOwn((manifest as { readonly exports?: object }).exports ?? {}, ".")
    })
    assert.deepStrictEqual(packages.map(({ name }) => name).sort(), importable.sort())
    for (const { modules, name } of packages) {
      const values = modules.map(({ entries, name, reexports }) => {
        const own = entries.filter(({ kind }) => kind !== "type").map(({ name }) => name)
        // Types are what else is exported again, and they begin with a capital.
        const others = reexports.map(({ name }) => name).filter((name) => /^[a-z]/.test(name))
        return [name, [...own, ...others].sort()] as const
      })
      assert.deepStrictEqual(Object.fromEntries(values), await imported(name))
    }
  })

  it("is read whole: each type that a source exports", () => {
    for (const { entries, file } of modules) {
      const written = [...readFileSync(join(root, file), "utf8").matchAll(/^export (?:interface|type) (\w+)/gm)]
      assert.deepStrictEqual(
        entries.filter(({ kind }) => kind === "type").map(({ name }) => name),
        written.map(([, name]) => name)
      )
    }
  })

  it("says of each name what it is, since when, where it belongs, and shows it", () => {
    assert.deepStrictEqual(missing(packages), [])
  })

  it("shows each example, and no other block is taken for one", () => {
    // Two names may share a comment, as `Fault.is` and `Fault.match` do.
    const shown = new Set(entries.flatMap(({ doc }) => doc?.examples ?? []))
    const files = new Set(modules.map(({ file }) => join(file)))
    const blocks = ofSources().filter(({ file, language }) => language === "ts" && files.has(file))
    assert.strictEqual(shown.size, blocks.length)
  })

  it("would not pass with something missing", () => {
    const wrong: ReadonlyArray<readonly [...Change, lacks: string]> = [
      ["core/src/AccessToken.ts", /@since.*\n \* (?=@category constants)/, "", "clockTolerance lacks @since"],
      [
        "core/src/AccessTokenError.ts",
        /\/\*\* The HTTP status of.*/,
        "",
        "TokenRefusedError lacks a sentence for status"
      ],
      ["core/src/StoreAuth.ts", "@category config", "@category settings", "config lacks @category settings"],
      [
        "core/src/TokenEndpoint.ts",
        /\/\*\* How long one request.*/,
        "",
        "Options lacks a sentence for attemptTimeout"
      ],
      ["core/src/TokenPolicy.ts", "@see make", "@see maxLife", "Options lacks @see maxLife: an example there"],
      ["core/src/AccessToken.ts", /@example(?=\n.*\n.*\n.*import { Duration)/, "", "remaining lacks @example"],
      [
        "core/src/TokenPolicy.ts",
        /\/\*\* Whether the endpoint refused.*/,
        "",
        "pauses lacks a sentence for options.refusedCredentials"
      ],
      ["core/src/TokenSource.ts", /@since 0.1.0\n \* @category tags/, "$&\n * @todo", "TokenSource lacks no @todo"],
      [
        "core/src/TokenSource.ts",
        "* A source from its one function. It can decorate another source.",
        "* Make.",
        "make lacks a sentence that says what it is"
      ],
      ["emulator/src/Scenario.ts", /\/\*\*[^]*?\*\//, "", "packages/emulator/src/Scenario.ts lacks @since"],
      ["platform-node/src/NodeHttp.ts", / \* @see layer\n/, "", "Options lacks @example"],
      [
        "platform-node/src/NodeHttp.ts",
        "NodeHttp.layerDispatcher(",
        "NodeHttp.layer(",
        "layerDispatcher lacks an @example with layerDispatcher in it"
      ]
    ]
    const problems = missing(changed(wrong.map(([file, from, to]) => [file, from, to])))
      .map((problem) => problem.replace(/^.*:\d+ (?=\w)/, ""))
    for (const [, , , lacks] of wrong) assert.include(problems, lacks)
    // Without its comment a module lacks a sentence too; nothing else is found.
    assert.lengthOf(problems, wrong.length + 1)
  })
})

describe("docs/reference", { timeout: 120_000 }, () => {
  const pages = render(packages)

  it("is what the doc comments say; if not: npm run reference", () => {
    assert.deepStrictEqual(outdated(pages), [])
  })

  it("would not be current with another doc comment; lines that move in a source are of no consequence", () => {
    const other = changed([
      ["core/src/AccessToken.ts", "An access token and what", "A token and what"],
      ["core/src/StoreAuth.ts", "import type * as HttpClient", "\n\n\nimport type * as HttpClient"]
    ])
    assert.deepStrictEqual(outdated(render(other)), ["core/AccessToken.md"])
  })

  it("would not be current with a page too many, or one too few", () => {
    const more = new Map([...pages, ["core/Another.md", ""]])
    assert.deepStrictEqual(outdated(more), ["core/Another.md"])
    more.delete("README.md")
    assert.deepStrictEqual(outdated(more), ["README.md", "core/Another.md"])
  })

  it("has a heading for each name, and its links lead somewhere", () => {
    const paths = [...pages.keys()].map((path) => join("docs", "reference", path))
    const { broken, checked } = links.check(paths)
    assert.deepStrictEqual(broken, [])
    assert.isAbove(checked, entries.length)
    for (const { modules, name } of packages) {
      for (const module of modules) {
        const page = pages.get(`${name}/${module.name}.md`) ?? ""
        for (const entry of module.entries) assert.include(page, `\n## ${entry.name}\n`)
      }
    }
  })

  it("holds no line of a source, no path of a machine and no host", () => {
    const found = (text: string) =>
      text.match(/\.ts:\d+|import\("|node_modules|(?<!\.)\/(?:home|work|tmp|Users)\/|blob\//g)
    for (const [path, text] of pages) assert.isNull(found(text), path)
    assert.deepStrictEqual(found(`import("/home/a/node_modules/b") c.ts:12`), [
      `import("`,
      "/home/",
      "node_modules",
      ".ts:12"
    ])
  })
})
