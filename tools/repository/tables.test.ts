/**
 * Compares the tables of the documentation with the sources: options, variables, flags, metrics, spans, log lines and
 * the names in the glossary.
 */
import ts from "typescript"
import { assert, describe, it } from "vitest"
import { commands } from "../../packages/cli/src/commands.js"
import { exitCodes } from "../../packages/cli/src/Fault.js"
import { codes, filesOf, packageSources, read, rows, sectionOf, sections } from "./support/pages.js"

const sources = packageSources()

/** The first group of each match of a pattern in the sources of some packages. */
const inSources = (pattern: RegExp, packages = /^/) =>
  [...sources].filter(([path]) => packages.test(path))
    .flatMap(([, source]) => [...source.matchAll(pattern)].map(([, name = ""]) => name))

interface Option {
  readonly type: string
  readonly required: boolean
  /** The text of the doc comment. */
  readonly text: string
}

/** Writes a type as the page does: on one line, without module names and without `undefined`. */
const shortened = (type: string): string =>
  type.replace(/\s+/g, " ").replace(/^\| /, "").replace(/ \| undefined$/, "").replace(/^\((.*)\)$/, "$1")
    .replace(/\b(Duration|Redacted|ClientCredentials|Effect)\.(?=DurationInput|Redacted|ClientCredentials|Effect)/g, "")

const textOfDoc = (node: ts.Node): string =>
  ts.getJSDocCommentsAndTags(node).map(({ comment }) => ts.getTextOfJSDocComment(comment) ?? "").join(" ")

/** The options that a source declares, by path. `credentials?: undefined` only excludes an alternative. */
const optionsOf = (source: string): ReadonlyMap<string, Option> => {
  const found = new Map<string, Option>()
  const visit = (prefix: string) => (node: ts.Node): void => {
    if (!ts.isPropertySignature(node) || node.type === undefined) return ts.forEachChild(node, visit(prefix))
    const path = `${prefix}${node.name.getText()}`
    const isObject = (ts.isUnionTypeNode(node.type) ? node.type.types : [node.type]).some(ts.isTypeLiteralNode)
    const type = isObject ? "{…}" : shortened(node.type.getText())
    if (type !== "undefined") {
      found.set(path, { type, required: node.questionToken === undefined, text: textOfDoc(node) })
    }
    if (isObject) ts.forEachChild(node, visit(`${path}.`))
  }
  ts.forEachChild(ts.createSourceFile("options.ts", source, ts.ScriptTarget.Latest, true), (node) => {
    if (ts.isInterfaceDeclaration(node) && node.name.text.endsWith("Options")) visit("")(node)
  })
  return found
}

const plain = (text: string) => text.replaceAll("`", "").replace(/\s+/g, " ")

/** Whether the page's default is that of the doc comment. An optional option may have none. */
const isDefault = (value: string, { required, text }: Option): boolean => {
  if (required || value.startsWith("required")) return required && value.startsWith("required")
  if (value === "") return !/default(?!\.)/i.test(text)
  return /default/i.test(text) && plain(text).includes(plain(value))
}

const configuration = "docs/reference/configuration.md"

/** The public modules that take options. */
const modules = filesOf("packages/*/src/index.ts").flatMap((index) =>
  [...read(index).matchAll(/^export \* as (\w+) /gm)].map(([, name = ""]) => ({
    name,
    options: optionsOf(read(index.replace("index", name)))
  }))
).filter(({ options }) => options.size > 0)

/** Matches a variable where a source reads it. */
const variable =
  /(?:\bConfig\.\w+\(|process\.env\[|\babsolute\(|\b(?:from|in)Environment\()["`]((?:\$\{prefix\}|[A-Z]+)[A-Z_]*)["`]/g

describe("docs/reference/configuration.md", { timeout: 60_000 }, () => {
  it("has a section for each module that takes options, and no other", () => {
    assert.isAbove(modules.length, 8)
    assert.sameMembers(
      sections(read(configuration)).map(({ heading }) => heading).filter((heading) => /^`[A-Z]\w+`$/.test(heading)),
      modules.map(({ name }) => `\`${name}\``)
    )
  })

  it.each(modules)("$name: each option with its type and default, and no other", ({ name, options }) => {
    const listed = rows(sectionOf(configuration, `\`${name}\``))
    assert.sameMembers(listed.map(([path = ""]) => codes(path)[0]), [...options.keys()])
    for (const [path = "", type = "", value = ""] of listed) {
      const option = options.get(codes(path)[0] ?? "")
      assert.strictEqual(codes(type)[0], option?.type, `the type of ${name}, ${path}`)
      assert.isTrue(option !== undefined && isDefault(value, option), `the default of ${name}, ${path}`)
    }
  })

  it("has the defaults that the README shows", () => {
    const shown = rows(sectionOf("README.md", "Options"))
    assert.isAbove(shown.length, 3)
    const moduleOf = new Map([
      ["provider", "AccessTokenProvider"],
      ["endpoint", "TokenEndpoint"],
      ["client", "AuthorizedHttpClient"],
      ["http", "NodeHttp"]
    ])
    for (const [cell = "", value] of shown) {
      const [first = "", second] = (codes(cell)[0] ?? "").split(".")
      const heading = second === undefined ? "StoreAuth" : moduleOf.get(first)
      const row = rows(sectionOf(configuration, `\`${heading ?? ""}\``)).find(([name = ""]) =>
        codes(name)[0] === (second ?? first)
      )
      assert.strictEqual(value, row?.[2], cell)
    }
  })

  it("lists each variable that a source reads by its name, and no other", () => {
    const found = inSources(variable).map((name) => name.replace("${prefix}", "STORE_API"))
    // undici and Node read it, as `NodeHttp.Options` documents.
    const byOthers = "NO_PROXY"
    assert.sameMembers(
      rows(sectionOf(configuration, "Variables")).flatMap(([names = ""]) => codes(names)),
      [...new Set([...found, byOthers])]
    )
  })
})

describe("docs/reference/command-line.md", () => {
  const textOf = (heading: string) => sectionOf("docs/reference/command-line.md", heading)
  const flagsOf = (heading: string) => rows(textOf(heading)).map(([flag = ""]) => codes(flag)[0] ?? "")
  const [taking = ""] = textOf("Common flags").split("|")
  const emulatorFlags = flagsOf("Flags of the emulator").map((flag) => flag.split(" ")[0] ?? "")

  it("lists the flags of store-api with the commands that take them", () => {
    const taken = Object.entries(commands).filter(([command]) => command !== "emulator").flatMap((
      [command, { flags }]
    ) =>
      Object.entries(flags).map(([name, { value }]) => `${command} --${name}${value === undefined ? "" : ` ${value}`}`)
    )
    assert.isAbove(taken.length, 60)
    assert.sameMembers(
      [
        ...codes(taking).flatMap((command) => flagsOf("Common flags").map((flag) => `${command} ${flag}`)),
        ...rows(textOf("Flags of a command")).flatMap(([flag = "", of = ""]) =>
          codes(of).map((command) => `${command} ${codes(flag)[0] ?? ""}`)
        )
      ],
      taken
    )
  })

  it("lists the flags of both programs of the emulator as their help does", () => {
    const help = /const help = `([^`]+)/.exec(read("packages/emulator/src/internal/command.ts"))?.[1] ?? ""
    const flags = [...help.matchAll(/^ {2}(--[\w-]+)/gm)].map(([, flag]) => flag).filter((flag) => flag !== "--help")
    assert.lengthOf(flags, 11)
    assert.deepStrictEqual(emulatorFlags, flags)
    assert.sameMembers(emulatorFlags, Object.keys(commands["emulator"]?.flags ?? {}).map((name) => `--${name}`))
  })

  it("lists each command", () => {
    assert.deepStrictEqual(
      rows(textOf("Commands")).map(([command = ""]) => codes(command)[0]?.split(" ")[1]),
      Object.keys(commands).filter((name) => !name.startsWith("profile "))
    )
  })

  it("lists the exit codes as the help does", () => {
    const plainText = (text: string) => text.replaceAll("`", "").toLowerCase()
    assert.deepStrictEqual(
      rows(textOf("Exit codes")).map(([code = "", text = ""]) => `${code} ${plainText(text)}`),
      Object.values(exitCodes).map(({ code, text }) => `${code} ${plainText(text)}`)
    )
  })
})

/** The packages that an application imports. */
const libraries = /^(?!cli|emulator)/

const metrics = inSources(/Metric\.(?:counter|gauge|histogram)\(\s*"([^"]+)"/g, libraries)

describe("docs/guides/telemetry.md", () => {
  const cells = (heading: string, column: number) =>
    rows(sectionOf("docs/guides/telemetry.md", heading)).map((row) => codes(row[column] ?? ""))

  it("has the metrics, spans and log lines of the sources, and no other", () => {
    assert.isAtLeast(metrics.length, 8)
    assert.sameMembers(cells("Metrics", 0).map(([name]) => name), metrics)
    const spans = inSources(/Effect\.withSpan\(\s*"([^"]+)"/g, libraries)
    assert.isAtLeast(spans.length, 2)
    assert.sameMembers(cells("Spans", 0).map(([name]) => name), [...spans, "http.client POST"])
    const lines = inSources(/Effect\.log\w+\(\s*"([^"]+)"/g, libraries)
    assert.isAtLeast(lines.length, 4)
    assert.sameMembers(cells("Log lines", 1).map(([line]) => line), lines)
  })

  it("has the alerts of examples/prometheus, and no other", () => {
    const alerts = [...read("examples/prometheus/alerts.yml").matchAll(/- alert: (\w+)/g)].map(([, name = ""]) => name)
    assert.isAtLeast(alerts.length, 7)
    assert.sameMembers(cells("Metrics", 3).flat().filter((code) => code.startsWith("Store")), alerts)
  })
})

describe("the words of docs/reference/glossary.md", () => {
  const words = rows(read("docs/reference/glossary.md"))

  it("are the names of the metrics, each in one row", () => {
    assert.sameMembers(words.flatMap((row) => codes(row[3] ?? "")), metrics)
    for (const [word = "", , , names = ""] of words) for (const name of codes(names)) assert.include(name, word)
  })

  it("are the names of the API", () => {
    const source = [...sources].filter(([path]) => path.startsWith("core/")).map(([, text]) => text).join()
    const names = words.flatMap(([, , api = ""]) => codes(api))
    assert.isAtLeast(names.length, 10)
    for (const name of names) assert.match(source, new RegExp(`(\\breadonly |\\bclass |")${name}\\b`))
    const [, states = ""] = /readonly state: ([^\n]+)/.exec(source) ?? []
    const listed = codes(words.find(([word]) => word === "state")?.[1] ?? "")
    assert.sameMembers([...listed], [...states.matchAll(/"(\w+)"/g)].map(([, state = ""]) => state))
  })
})
