/** Compares docs/reference/configuration.md and command-line.md with the sources: names, types, defaults, flags. */
import { existsSync, readdirSync } from "node:fs"
import { join } from "node:path"
import ts from "typescript"
import { assert, describe, it } from "vitest"
import { commands } from "../../packages/cli/src/commands.js"
import { exitCodes } from "../../packages/cli/src/Fault.js"
import { root } from "./support/command.js"
import { codes, packageSources, read, rows, sections } from "./support/pages.js"

interface Option {
  readonly path: string
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
      found.set(path, { path, type, required: node.questionToken === undefined, text: textOfDoc(node) })
    }
    if (isObject) ts.forEachChild(node, visit(`${path}.`))
  }
  ts.forEachChild(ts.createSourceFile("options.ts", source, ts.ScriptTarget.Latest, true), (node) => {
    if (ts.isInterfaceDeclaration(node) && node.name.text.endsWith("Options")) visit("")(node)
  })
  return found
}

const plain = (text: string) => text.replaceAll("`", "").replace(/\s+/g, " ")

/**
 * Whether the page's default is that of the doc comment: `required` for a required option, nothing if the comment has
 * no default.
 */
const isDefault = (value: string, { required, text }: Pick<Option, "required" | "text">): boolean =>
  required || value.startsWith("required")
    ? required && value.startsWith("required")
    : value === ""
    ? !/default(?!\.)/i.test(text)
    : /default/i.test(text) && plain(text).includes(plain(value))

/** The public modules of a package; the command line has none. */
const index = (name: string) => {
  const path = `packages/${name}/src/index.ts`
  return existsSync(join(root, path)) ? read(path) : ""
}

const page = read("docs/reference/configuration.md")
const all = sections(page)
const textOf = (heading: string) => all.find((section) => section.heading === heading)?.text ?? ""

const modules = readdirSync(join(root, "packages")).flatMap((name) =>
  [...index(name).matchAll(/^export \* as (\w+) /gm)].map(([, module = ""]) => ({
    name: module,
    options: optionsOf(read(`packages/${name}/src/${module}.ts`))
  }))
).filter(({ options }) => options.size > 0)

describe("docs/reference/configuration.md", { timeout: 60_000 }, () => {
  it("has a section for each module that takes options, and no other", () => {
    assert.isAbove(modules.length, 8)
    assert.sameMembers(
      all.map(({ heading }) => heading).filter((heading) => /^`[A-Z]\w+`$/.test(heading)),
      modules.map(({ name }) => `\`${name}\``)
    )
  })

  it.each(modules.map(({ name, options }) => [name, options] as const))(
    "%s: each option with its type and default, and no other",
    (name, taken) => {
      const listed = rows(textOf(`\`${name}\``))
      assert.deepStrictEqual(listed.map(([path = ""]) => codes(path)[0] ?? "").sort(), [...taken.keys()].sort())
      for (const [path = "", type = "", value = ""] of listed) {
        const option = taken.get(codes(path)[0] ?? "")
        assert.strictEqual(codes(type)[0], option?.type, `the type of ${name}, ${path}`)
        assert.isTrue(option !== undefined && isDefault(value, option), `the default of ${name}, ${path}`)
      }
    }
  )

  it("has the defaults that the README shows", () => {
    const shown = rows(sections(read("README.md")).find(({ heading }) => heading === "Options")?.text ?? "")
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
      const row = rows(textOf(`\`${heading ?? ""}\``)).find(([name = ""]) => codes(name)[0] === (second ?? first))
      assert.strictEqual(value, row?.[2], cell)
    }
  })

  it("a different type or default is reported", () => {
    const options = optionsOf("interface Options {\n/** A. */ a?: { readonly b: string | undefined } | undefined }")
    assert.deepStrictEqual([...options.values()], [
      { path: "a", type: "{…}", required: false, text: "A." },
      { path: "a.b", type: "string", required: true, text: "" }
    ])
    const text = "How long. Default 10 seconds."
    assert.isTrue(isDefault("10 seconds", { text, required: false }))
    assert.isFalse(isDefault("20 seconds", { text, required: false }))
    assert.isFalse(isDefault("", { text, required: false }))
    assert.isFalse(isDefault("required", { text, required: false }))
    assert.isFalse(isDefault("10 seconds", { text: "How long, at least 10 seconds.", required: false }))
    assert.isFalse(isDefault("10 seconds", { text, required: true }))
  })

  it("lists each variable that a source reads by its name, and no other", () => {
    const found = new Set(
      [...packageSources().values()].flatMap((source) =>
        [...source.matchAll(variable)].map(([, name = ""]) => name.replace("${prefix}", "STORE_API"))
      )
    )
    // undici and Node read these, as `NodeHttp.Options` documents.
    const byOthers = ["NO_PROXY"]
    assert.sameMembers(
      rows(textOf("Variables")).flatMap(([names = ""]) => codes(names)),
      [...found, ...byOthers]
    )
  })
})

const commandLine = sections(read("docs/reference/command-line.md"))
const inCommandLine = (heading: string) =>
  commandLine.find((section) => section.heading === heading)?.text ?? assert.fail(heading)

describe("docs/reference/command-line.md", () => {
  const flagsOf = (heading: string) => rows(inCommandLine(heading)).map(([flag = ""]) => codes(flag)[0] ?? "")
  const [taking = ""] = inCommandLine("Common flags").split("|")
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
        ...rows(inCommandLine("Flags of a command")).flatMap(([flag = "", of = ""]) =>
          codes(of).map((command) => `${command} ${codes(flag)[0] ?? ""}`)
        )
      ],
      taken
    )
  })

  it("lists the flags of both programs of the emulator as their help does", () => {
    const help = /const help = `([^`]+)/.exec(read("packages/emulator/src/internal/command.ts"))?.[1] ?? ""
    const flags = [...help.matchAll(/^ {2}(--[\w-]+)/gm)].map(([, flag]) => flag).filter((flag) => flag !== "--help")
    assert.lengthOf(flags, 9)
    assert.deepStrictEqual(emulatorFlags, flags)
    assert.sameMembers(emulatorFlags, Object.keys(commands["emulator"]?.flags ?? {}).map((name) => `--${name}`))
  })

  it("lists each command", () => {
    assert.deepStrictEqual(
      rows(inCommandLine("Commands")).map(([command = ""]) => codes(command)[0]?.split(" ")[1]),
      Object.keys(commands).filter((name) => !name.startsWith("profile "))
    )
  })

  it("lists the exit codes as the help does", () => {
    const plainText = (text: string) => text.replaceAll("`", "").toLowerCase()
    assert.deepStrictEqual(
      rows(inCommandLine("Exit codes")).map(([code = "", text = ""]) => `${code} ${plainText(text)}`),
      Object.values(exitCodes).map(({ code, text }) => `${code} ${plainText(text)}`)
    )
  })
})

/** Matches a variable where a source reads it. */
const variable =
  /(?:\bConfig\.\w+\(|process\.env\[|\babsolute\(|\b(?:from|in)Environment\()["`]((?:\$\{prefix\}|[A-Z]+)[A-Z_]*)["`]/g
