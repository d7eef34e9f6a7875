/** Writes the pages for readers without a browser: llms.txt (llmstxt.org), llms-full.txt, and each page as Markdown. */
import { mkdirSync, writeFileSync } from "node:fs"
import { dirname, join } from "node:path"
import { sections, text, title } from "./pages.mjs"

/** The pages of the optional section. */
const isOptional = (section) => ["Evidence", "Project"].includes(section.text)

/** The first paragraph of a page, on one line and without links. */
const about = (page) => {
  const [, paragraph = ""] = /^# .+\n\n(?![#|<-]|```)([^]+?)\n\n/m.exec(text(page)) ?? []
  return paragraph.replace(/\[([^\]]+)\]\([^)]*\)/g, "$1").replace(/\s+/g, " ")
}

const list = ({ pages }) => pages.map((page) => `- [${title(page)}](${page}): ${about(page)}`.replace(/: $/, ""))

export const writeLlms = (out) => {
  const main = sections.filter((section) => !isOptional(section))
  const optional = { text: "Optional", pages: sections.filter(isOptional).flatMap(({ pages }) => pages) }
  const index = [...main, optional].map((section) => [`## ${section.text}`, "", ...list(section)].join("\n"))
  writeFileSync(join(out, "llms.txt"), `# ${title("README.md")}\n\n> ${about("README.md")}\n\n${index.join("\n\n")}\n`)
  const all = main.flatMap(({ pages }) => pages)
  writeFileSync(join(out, "llms-full.txt"), all.map((page) => `<!-- ${page} -->\n\n${text(page)}`).join("\n"))
  for (const page of sections.flatMap(({ pages }) => pages)) {
    mkdirSync(join(out, dirname(page)), { recursive: true })
    writeFileSync(join(out, page), text(page))
  }
}
