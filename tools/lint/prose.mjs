/**
 * ESLint rules for prose: `english` finds the phrases below in comments, strings and Markdown, `markdown-format` checks
 * the format of Markdown.
 */
import { readFileSync } from "node:fs"
import { createFromBuffer } from "@dprint/formatter"
import { getPath } from "@dprint/markdown"

/** Where a sentence starts: at the start of a text, after an empty line, or after a full stop or colon. */
const START = String.raw`(?<=(?:^|[.:;!?(]\s|\n\s*\n)\s*)`
/** The nouns after the second article of “one namespace a module”. */
const COUNTED =
  "(call|client|clock|command|file|key|line|module|origin|package|page|process|provider|request|test|token)"

/** The phrases that this project does not write, and what to write instead. A space matches any white space. */
const phrases = [
  [
    `${START}[Ww]ho(ever)? (?![^.?!]*\\?)`,
    "Give the clause a subject: “To read the token itself, use the provider.”"
  ],
  [
    `${START}What (?![^.?!]*\\?)(?!(an?|each|every|if|it|our|the|they|this|to|we|you|your) |\\0)`,
    "Name the subject: “Bugs this fixes”, “Evidence”."
  ],
  [`${START}How \\w+ (is|are|was|were) \\w+$`, "Use a noun: “Methodology”."],
  ["(is|are|was|were|be|been|being) had", "Write “acquire”, “is available”."],
  [
    "(?<!there )(is|are|was|were|be) no (?!longer|more|less|fewer|greater|later|earlier)\\w+",
    "Negate the verb: “does not affect the caller”, “has no …”."
  ],
  ["(is|are) (no|any|some)body's", "Write “is private to”, “does not affect”."],
  ["hous(e|es|ed)|floors?", "Write “layout”, “repository”, “process”, “layer”, “minimum”."],
  ["buys?|buying|bought|mend(s|ed|ing)?", "Write “request”, “acquire”, “fix”."],
  [
    "lives|(?<!-)lived|dies|died|dying|(dead|live|living) tokens?|tokens? ((that|which) )?live",
    "Write “expires”, “is valid”, “stops”, “is in”."
  ],
  ["(?<!-)life(?!-|cycle| cycle)", "Write “lifetime” or “remaining lifetime”."],
  ["in vain|for want of|all the same", "Write “without effect”, “without”, “anyway”."],
  [
    `(one (?!(after|by|for|from|in|of|per|to|with) )[\\w-]+(?<!s)|(two|three|four|\\d+) [\\w-]{3,}s) an? ${COUNTED}`,
    "Write “one namespace per module”."
  ],
  [
    "the (secret|key|id|password|clock)s? of (the|this|that|an?|its) \\w+",
    "Write “the client secret”, “the cipher key”."
  ],
  [
    "(an?|the|one|each|every) [\\w-]+, that (?!is,)\\w+",
    "A clause that defines takes no comma: “a token that is …”."
  ]
].map(([source, instead]) => {
  const spaced = source.replaceAll(" ", "\\s+")
  return [
    source.startsWith(START)
      ? new RegExp(spaced, "g")
      : new RegExp(`(?<![\\w-])(${spaced})(?!\\w)`, "gi"),
    instead
  ]
})

/** Hides comment marks, code, addresses and quotations, which are not ours to rewrite. */
const readable = (text) =>
  text
    .replace(/^[ \t]*(?:\/\/+|\/?\*+\/?|[>|#])/gm, "")
    .replace(/(\\?`){3}[^]*?((\\?`){3}|$)/g, "\n\n")
    .replace(
      /\\?`[^`]*`|https?:\/\/\S+|"[^"]{1,200}"|“[^”]*”|\]\([^)]*\)|\{@\w+ [^}]*\}/g,
      "\0"
    )
    .replace(/\\[nrt]/g, " \n")
    .replace(/[*[\]]/g, " ")

const english = {
  meta: { type: "suggestion", schema: [] },
  create: (context) => {
    const { sourceCode } = context
    const check = (loc, text) => {
      for (const [phrase, instead] of phrases) {
        for (const [found] of readable(text).matchAll(phrase)) {
          context.report({
            loc,
            message: `“${found.replace(/\s+/g, " ").trim()}”: ${instead}`
          })
        }
      }
    }
    return {
      Program: () => {
        // Lines of comments that follow each other are one text.
        const all = sourceCode.getAllComments?.() ?? []
        const blocks = []
        for (const { loc, value } of all) {
          const last = blocks.at(-1)
          if (last?.end === loc.start.line - 1) {
            Object.assign(last, { end: loc.end.line, text: `${last.text}\n${value}` })
          } else blocks.push({ loc, end: loc.end.line, text: value })
        }
        for (const { loc, text } of blocks) check(loc, text)
      },
      "Literal[value=/\\s/]": ({ loc, value }) => check(loc, value),
      TemplateLiteral: ({ loc, quasis }) =>
        check(loc, quasis.map(({ value }) => value.cooked).join("\0")),
      "paragraph, heading, tableCell": (node) =>
        check(sourceCode.getLoc(node), sourceCode.getText(node))
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
