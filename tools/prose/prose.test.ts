/** The rules for prose find what they forbid, in every text of a file that is ours to write. */
import markdown from "@eslint/markdown"
import { Linter } from "eslint"
import { assert, describe, it } from "vitest"
import { filesOf, read } from "../repository/support/pages.js"
import * as patterns from "./patterns.mjs"
import prose, { problems } from "./plugin.mjs"

const phrases: ReadonlyArray<{ readonly examples: ReadonlyArray<string>; readonly instead: string }> = patterns.phrases

const lint = (file: string, text: string) => {
  const config = [
    { files: ["**/*"], plugins: { prose }, rules: { "prose/english": "error" } },
    { files: ["**/*.md"], plugins: { markdown }, language: "markdown/gfm" }
  ] as Array<Linter.Config>
  return new Linter().verify(text, config, file)
    .map(({ column, line, message }) => `${line}:${column} ${message.split("”")[0] ?? ""}`)
}

const quoted = "`house` <https://house.test/house> “house” \"it buys\" [a](house.md)"

describe("prose/english", () => {
  it("finds each phrase in its examples", () => {
    for (const { examples, instead } of phrases) {
      for (const example of examples) {
        assert.include(problems(example).map(({ message }) => message.split("”: ")[1]), instead, example)
      }
    }
  })

  it.each([
    [
      "a.js",
      `/**\n * When no token can be\n * had. ${quoted}\n * \`\`\`ts\n * // house\n * \`\`\`\n */\n` +
      "f(\"a dead token\", `it ${house(`}${1}`)} buys`)\nit(\"fails in vain\", house)\n",
      ["2:22 “be had", "8:6 “dead token", "8:41 “buys", "9:11 “in vain"]
    ],
    [
      "a.md",
      `# What was shown\n\nFor\nwant of ${quoted}.\n\n- house\n\n| a |\n|---|\n| **who** asks |\n\n\`\`\`\nhouse\n\`\`\`\n`,
      ["1:3 “What", "3:1 “For want of", "6:3 “house", "10:5 “who"]
    ]
  ])("looks at each text of %s, across lines, and not at code, addresses and quotations", (file, text, found) => {
    assert.deepStrictEqual(lint(file, text), found)
  })

  it("finds nothing in YAML, the dashboard, and the comments of scripts, which ESLint does not read", () => {
    const prose = (file: string, text: string) => {
      if (file.endsWith("json")) return text.replaceAll("\"", "\n\n")
      return file.endsWith("ml") ? text : text.replaceAll(/^(?!\s*#).*$/gm, "")
    }
    const files = filesOf("*.yml", "*.yaml", "*.py", ".ci/run", "examples/prometheus/*.json", ":!pnpm-lock.yaml")
    assert.isAbove(files.length, 10)
    const found = files.flatMap((file) => problems(prose(file, read(file))).map(({ message }) => `${file}: ${message}`))
    assert.deepStrictEqual(found, [])
  })
})
