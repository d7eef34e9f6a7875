/** ESLint rules for prose: the phrases of patterns.mjs in any text, and the format of Markdown. */
import { readFileSync } from "node:fs"
import { createFromBuffer } from "@dprint/formatter"
import { getPath } from "@dprint/markdown"
import { phrases } from "./patterns.mjs"

const spaces = (text) => " ".repeat(text.length)
const noun = (text) => "\u0001".repeat(text.length)

/** Masks comment marks, code, addresses and quotations: they are not ours to rewrite. Keeps every position. */
const prose = (text) =>
  text
    .replace(/^[ \t]*(?:\/\/+|\/?\*+\/?|[>|#])/gm, spaces)
    .replace(/(?:\\?`){3}[^]*?(?:(?:\\?`){3}|$)/g, (code) => "\0".repeat(code.length))
    .replace(/\\?`[^`]*`|https?:\/\/\S+|"[^"]{1,200}"|“[^”]*”|\]\([^)]*\)|\{@\w+ [^}]*\}|\$\{[^}]*\}/g, noun)
    .replace(/\\[nrt]/g, " \n")
    .replace(/[*[\]]/g, " ")

/** The banned phrases of a text, with their positions in it. */
export const problems = (text) => {
  const readable = `\0${prose(text)}`
  return phrases.flatMap(({ instead, regex }) =>
    [...readable.matchAll(regex)].map(({ 0: found, index }) => ({
      from: index - 1,
      to: index - 1 + found.length,
      message: `“${found.replace(/\s+/g, " ").trim()}”: ${instead}`
    }))
  )
}

const english = {
  meta: { type: "suggestion", schema: [] },
  create: (context) => {
    const { sourceCode } = context
    const check = ([start, end], hidden = []) => {
      const text = hidden.reduce(
        (text, [from, to]) => text.slice(0, from) + noun(text.slice(from, to)) + text.slice(to),
        sourceCode.text.slice(0, end)
      )
      for (const { from, message, to } of problems(text.slice(start))) {
        const [first, last] = [from, to].map((index) => sourceCode.getLocFromIndex(start + index))
        context.report({ loc: { start: first, end: last }, message })
      }
    }
    return {
      Program: () => {
        const blocks = []
        for (const { range: [from, to], type } of sourceCode.getAllComments()) {
          const last = blocks.at(-1)
          const continues = last?.type === "Line" && type === "Line" &&
            sourceCode.text.slice(last.to, from).trim() === ""
          if (continues) last.to = to
          else blocks.push({ from, to, type })
        }
        for (const { from, to } of blocks) check([from, to])
      },
      "Literal[value=/\\s/]": ({ range: [from, to] }) => check([from + 1, to - 1]),
      TemplateLiteral: ({ expressions, range: [from, to] }) => {
        check([from + 1, to - 1], expressions.map(({ range }) => range))
      },
      "paragraph, heading, tableCell": (node) => check(sourceCode.getRange(node))
    }
  }
}

const formatter = createFromBuffer(readFileSync(getPath()))
formatter.setConfig({ lineWidth: 120 }, {
  textWrap: "always",
  wrapCodeSpans: false,
  emphasisKind: "asterisks",
  "codeBlock.skipFormat": true,
  "html.skipFormat": true,
  "table.skipFormat": true
})

const markdownFormat = {
  meta: { type: "layout", fixable: "whitespace", schema: [] },
  create: (context) => ({
    root: () => {
      const { text } = context.sourceCode
      const formatted = formatter.formatText({ filePath: context.filename, fileText: text })
      if (formatted === text) return
      const lines = formatted.split("\n")
      const line = text.split("\n").findIndex((written, index) => written !== lines[index]) + 1
      context.report({
        loc: { line, column: 1 },
        message: "The format differs. Run “npm run lint:fix”.",
        fix: (fixer) => fixer.replaceTextRange([0, text.length], formatted)
      })
    }
  })
}

export default { rules: { english, "markdown-format": markdownFormat } }
