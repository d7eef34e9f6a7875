/** The rules for prose find what they forbid, and let plain English pass. */
import markdown from "@eslint/markdown"
import { Linter } from "eslint"
import { assert, describe, it } from "vitest"
import { filesOf, read } from "../repository/support/pages.js"
import * as patterns from "./patterns.mjs"
import prose, { problems } from "./plugin.mjs"

const lint = (file: string, text: string, rule = "english", fix = false) => {
  const linter = new Linter()
  const config = [
    { files: ["**/*"], plugins: { prose }, rules: { [`prose/${rule}`]: "error" } },
    { files: ["**/*.md"], plugins: { markdown }, language: "markdown/gfm" }
  ] as Array<Linter.Config>
  return fix
    ? [linter.verifyAndFix(text, config, file).output]
    : linter.verify(text, config, file).map(({ column, line, message }) => `${line}:${column} ${message}`)
}

const phrases: ReadonlyArray<{ readonly examples: ReadonlyArray<string>; readonly instead: string }> = patterns.phrases

const examples = phrases.flatMap(({ examples, instead }) => examples.map((example) => [example, instead] as const))

describe("prose/english", () => {
  it.each(examples)("finds “%s”", (example, instead) => {
    assert.include(problems(example).map(({ message }) => message.split("”: ")[1]), instead)
  })

  it.each([
    "To read the token itself, use the provider when no other token is available.",
    "layout, layer, in-flight request, two requests in flight, remaining lifetime, expire, depend on, pass, report",
    "also fails with; automatically; anyway; without effect; without",
    "The process exits with code 1, and the line ends with a newline.",
    "What is a token source?",
    "What to do when a call fails",
    "What the specification leaves open",
    "Without a connection a command fails at once.",
    "one namespace per module, hourly, one call a second, one at a time",
    "a token that is expired; that is, it has no lifetime left",
    "there is no token yet; it is no longer valid",
    "An API answered 401 to this token. The endpoint answered with an error."
  ])("accepts “%s”", (sentence) => {
    assert.deepStrictEqual(problems(sentence), [])
  })

  it("looks at comments, strings, templates and titles of a source, across lines", () => {
    const found = lint(
      "a.js",
      [
        "/**",
        " * When no token can be",
        " * had.",
        " */",
        "f(\"somebody else\", `of ${nobody(`}${1}`)} who is told`)",
        "it(\"fails besides with\", () => {})"
      ].join("\n")
    )
    assert.deepStrictEqual(found.map((line) => line.split("”")[0]), [
      "2:22 “be had",
      "5:4 “somebody else",
      "5:50 “told",
      "6:11 “besides"
    ])
  })

  it("looks at paragraphs, headings, lists and tables of Markdown, across lines", () => {
    const found = lint(
      "a.md",
      "# What was shown\n\nRenewed by\nitself.\n\n- nobody\n\n| a |\n|---|\n| **who** asks |\n"
    )
    assert.deepStrictEqual(found.map((line) => line.split("”")[0]), [
      "1:3 “What",
      "3:9 “by itself",
      "6:3 “nobody",
      "10:5 “who"
    ])
  })

  it("leaves code, addresses and quotations alone", () => {
    const page = "`nobody` <https://nobody.test/besides> “nobody” \"he is told\" [a](besides.md)\n\n```\nnobody\n```\n"
    assert.deepStrictEqual(lint("a.md", page), [])
    const source = "/**\n * `nobody` {@link nobody x}\n * ```ts\n * // nobody\n * ```\n */\nf(\"besides\", nobody)\n"
    assert.deepStrictEqual(lint("a.js", source), [])
  })

  it("finds nothing in YAML, the dashboard, and the comments of scripts, which ESLint does not read", () => {
    const prose = (file: string, text: string) => {
      if (file.endsWith("json")) return text.replaceAll("\"", "\n\n")
      return file.endsWith("ml") ? text : text.replaceAll(/^(?!\s*#).*$/gm, "")
    }
    const found = (file: string, text: string) =>
      problems(prose(file, text)).map(({ message }) => `${file}: ${message}`)
    const files = filesOf("*.yml", "*.yaml", "*.py", ".ci/run", "examples/prometheus/*.json", ":!pnpm-lock.yaml")
    assert.isAbove(files.length, 10)
    assert.deepStrictEqual(files.flatMap((file) => found(file, read(file))), [])
    assert.lengthOf(found("a.py", "# Nobody\nfile.tell()\n"), 1)
  })
})

describe("prose/markdown-format", () => {
  const page = `# Title\n\n- ${"word ".repeat(30).trim()}\n\n| a | b |\n|---|---|\n| ${"c ".repeat(80)}| d |\n\n` +
    `\`\`\`text\n${"x ".repeat(80).trim()}\n\`\`\`\n`

  it("wraps text at 120 columns, and neither tables nor code", () => {
    const [formatted = ""] = lint("a.md", page, "markdown-format", true)
    const long = formatted.split("\n").filter((line) => line.length > 120)
    assert.deepStrictEqual(long.map((line) => line.slice(0, 3)), ["| c", "x x"])
    assert.deepStrictEqual(lint("a.md", formatted, "markdown-format"), [])
  })

  it("reports the first line that differs", () => {
    assert.deepStrictEqual(lint("a.md", page, "markdown-format"), ["3:1 The format differs. Run “npm run lint:fix”."])
  })
})
