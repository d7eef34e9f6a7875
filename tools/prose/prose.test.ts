/** The rules for prose find what they forbid, and let plain English pass. */
import { readFileSync } from "node:fs"
import { join } from "node:path"
import markdown from "@eslint/markdown"
import { Linter } from "eslint"
import { assert, describe, it } from "vitest"
import { root, trackedFiles } from "../repository/support/command.js"
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

interface Phrase {
  readonly examples: ReadonlyArray<string>
  readonly instead: string
}
const phrases: ReadonlyArray<Phrase> = patterns.phrases

const examples = phrases.flatMap(({ examples, instead }) => examples.map((example) => [example, instead] as const))

describe("prose/english", () => {
  it.each(examples)("finds “%s”", (example, instead) => {
    assert.include(problems(example).map(({ message }) => message.split("”: ")[1]), instead)
  })

  it("says in each message what to write, in words that pass", () => {
    for (const { examples, instead } of phrases) {
      assert.isAbove(examples.length, 0, instead)
      assert.deepStrictEqual(problems(instead.replaceAll(/[“”]/g, " ")), [], instead)
    }
  })

  it.each([
    "To read the token itself, use the provider.",
    "when no other token is available",
    "does not affect the caller; is private to the package",
    "callers never see this error",
    "layout, layer, in-flight request, two requests in flight, fix, remaining lifetime, expire, depend on, pass, report, check",
    "also fails with; automatically; anyway; without effect; without",
    "The process exits with code 1, and the line ends with a newline.",
    "Bugs this fixes",
    "Methodology",
    "Evidence",
    "How it works",
    "What is a token source?",
    "What to do when a call fails",
    "What the specification leaves open",
    "Without a connection a command fails at once.",
    "one namespace per module, hourly, one call a second, one at a time",
    "the response, rejected, reported",
    "the client secret, the cipher key",
    "a token that is expired; that is, it has no lifetime left",
    "callers, who wait",
    "there is no token yet; it is no longer valid",
    "Caches one access token, renews it before it expires, and shares one acquisition among all callers.",
    "Returns the cached token without sending a request. Fails with `TokenExpiredError` if it has expired; returns `None` " +
    "if there is none yet.",
    "Hot path. Reads the state once, compares both clocks, and returns an `Exit` that was created when the token arrived. " +
    "No allocation.",
    "OAuth 2.0 access tokens for the store API, as an Effect layer. Provide one layer, use an `HttpClient`, and stop " +
    "thinking about tokens: they are acquired once, renewed in the background, and attached only to requests for your API.",
    "Your code never sees this error. It appears in logs and metrics only.",
    "The token endpoint is rate limiting this client (429). Retry after 2026-11-22T06:30:00Z.",
    "dashboard: distinguish stores and test the panels against Prometheus",
    "Cannot reach the token endpoint (ECONNREFUSED). Check authUrl, DNS and the proxy.",
    "An API answered 401 to this token. The endpoint answered with an error.",
    "renews in the background when less than refreshAhead is left"
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
        "// Renewed by",
        "// itself.",
        "f(\"somebody else\", `of ${nobody(`}${1}`)} who is told`)",
        "it(\"fails besides with\", () => {})"
      ].join("\n")
    )
    assert.deepStrictEqual(found.map((line) => line.split("”")[0]), [
      "2:22 “be had",
      "5:12 “by itself",
      "7:4 “somebody else",
      "7:50 “told",
      "8:11 “besides"
    ])
  })

  it("looks at paragraphs, headings, lists and tables of Markdown, across lines", () => {
    const found = lint(
      "a.md",
      "# What was shown\n\nRenewed by\nitself.\n\n- nobody\n\n| a |\n|---|\n| **who** asks, asks |\n\n> be\n> had\n"
    )
    assert.deepStrictEqual(found.map((line) => line.split("”")[0]), [
      "1:3 “What",
      "3:9 “by itself",
      "6:3 “nobody",
      "10:5 “who",
      "12:3 “be had"
    ])
  })

  it("leaves code, addresses and quotations alone", () => {
    assert.deepStrictEqual(
      lint(
        "a.md",
        "`nobody` <https://nobody.test/besides> “nobody” \"he is told\" [a](besides.md)\n\n```\nnobody\n```\n"
      ),
      []
    )
    assert.deepStrictEqual(
      lint("a.js", "/**\n * `nobody` {@link nobody x}\n * ```ts\n * // nobody\n * ```\n */\nf(\"besides\", nobody)\n"),
      []
    )
    assert.lengthOf(lint("a.md", "nobody `a` nobody “a” nobody\n"), 3)
  })

  it("finds nothing in YAML, the dashboard, and the comments of scripts that ESLint does not read", () => {
    const prose = (file: string, text: string) => {
      if (file.endsWith("json")) return text.replaceAll("\"", "\n\n")
      return file.endsWith("ml") ? text : text.replaceAll(/^(?!\s*#).*$/gm, "")
    }
    const found = (file: string, text: string) =>
      problems(prose(file, text)).map(({ message }) => `${file}: ${message}`)
    const files = trackedFiles("*.yml", "*.yaml", "*.py", ".ci/run", "examples/prometheus/*.json", ":!pnpm-lock.yaml")
    assert.isAbove(files.length, 10)
    assert.deepStrictEqual(files.flatMap((file) => found(file, readFileSync(join(root, file), "utf8"))), [])
    assert.lengthOf(found("a.yml", "steps:\n  # Nobody\n  - name: besides\n"), 2)
    assert.lengthOf(found("a.py", "# Nobody\nfile.tell()\n"), 1)
    assert.lengthOf(found("a.json", "{ \"title\": \"What is left\", \"description\": \"Another is had.\" }\n"), 2)
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
