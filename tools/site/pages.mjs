/** The pages of the site are the Markdown files of the repository. */
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs"
import { posix } from "node:path"
import { root } from "../workspace/workspace.mjs"

/**
 * The navigation: groups of pages and folders, or one folder as a group. A folder stands for all Markdown files in it,
 * and its README comes first.
 */
const groups = {
  "Start": ["README.md", "examples/README.md"],
  "Tutorial": "docs/tutorial",
  "Guides": [
    ...["recipes", "other-oauth-servers", "without-effect", "serverless", "redis", "telemetry"],
    ...["runbook", "migrating", "effect4"]
  ].map((name) => `docs/guides/${name}.md`),
  "Reference": [
    ...["configuration", "command-line", "errors", "layers", "specification", "glossary"]
      .map((name) => `docs/reference/${name}.md`),
    "docs/reference/api"
  ],
  "Explanation": ["how-it-works", "security-model", "comparison"].map((name) => `docs/explanation/${name}.md`),
  "Evidence": ["behaviour", "reported-problems", "standards", "interop", "runtimes", "benchmarks"]
    .map((name) => `docs/evidence/${name}.md`),
  "Packages": ["core", "platform-node", "redis", "cli", "emulator"].map((name) => `packages/${name}`),
  "Project": ["SECURITY.md", "CONTRIBUTING.md", "CHANGELOG.md", "tools"]
}

/** Folders without pages, which are not searched. */
const skipped = /^(\..*|node_modules|dist|src|test|files|line)$/

export const text = (page) => readFileSync(posix.join(root, page), "utf8")

/** The first heading of a page. The navigation shows "Overview" for the top README. */
export const title = (page) => {
  const [, heading] = /^# (.+)$/m.exec(text(page)) ?? []
  if (heading === undefined) throw new Error(`${page} has no heading of the first level.`)
  return heading.replaceAll("`", "")
}

const readme = (folder) => posix.join(folder, "README.md")

/** A navigation entry for a page or a folder, or nothing for a folder without pages. */
const entries = (path) => {
  if (path.endsWith(".md")) {
    return [{ text: path === "README.md" ? "Overview" : title(path), link: `/${path.replace(/README\.md$/, "")}` }]
  }
  const inside = readdirSync(posix.join(root, path), { withFileTypes: true })
    .filter((entry) => entry.isDirectory() ? !skipped.test(entry.name) : /(?<!\.template)\.md$/.test(entry.name))
    .map(({ name }) => posix.join(path, name))
  const [own] = inside.includes(readme(path)) ? entries(readme(path)) : [{ text: posix.basename(path) }]
  const items = inside.filter((page) => page !== readme(path)).flatMap(entries)
  if (items.length > 0) return [{ ...own, items, collapsed: true }]
  return own.link === undefined ? [] : [own]
}

export const sidebar = Object.entries(groups).map(([text, paths]) =>
  typeof paths === "string"
    ? { ...entries(paths)[0], text, collapsed: undefined }
    : { text, items: paths.flatMap(entries) }
)

const pagesOf = ({ items = [], link }) => [
  ...(link === undefined ? [] : [link.slice(1).replace(/(^|\/)$/, "$1README.md")]),
  ...items.flatMap(pagesOf)
]

/** The pages of each group of the navigation. */
export const sections = sidebar.map((group) => ({ text: group.text, pages: pagesOf(group) }))

/** The pages that the navigation lists. */
export const pages = sections.flatMap(({ pages }) => pages)

/** The pages of the optional section. */
const isOptional = (section) => ["Evidence", "Project"].includes(section.text)

/** The first paragraph of a page, on one line and without links. */
const about = (page) => {
  const [, paragraph = ""] = /^# .+\n\n(?![#|<-]|```)([^]+?)\n\n/m.exec(text(page)) ?? []
  return paragraph.replace(/\[([^\]]+)\]\([^)]*\)/g, "$1").replace(/\s+/g, " ")
}

const list = ({ pages }) => pages.map((page) => `- [${title(page)}](${page}): ${about(page)}`.replace(/: $/, ""))

/**
 * Writes the pages for readers without a browser: llms.txt (llmstxt.org), llms-full.txt, and each page as Markdown.
 */
export const writeLlms = (out) => {
  const main = sections.filter((section) => !isOptional(section))
  const optional = { text: "Optional", pages: sections.filter(isOptional).flatMap(({ pages }) => pages) }
  const index = [...main, optional].map((section) => [`## ${section.text}`, "", ...list(section)].join("\n"))
  writeFileSync(
    posix.join(out, "llms.txt"),
    `# ${title("README.md")}\n\n> ${about("README.md")}\n\n${index.join("\n\n")}\n`
  )
  const all = main.flatMap(({ pages }) => pages)
  writeFileSync(
    posix.join(out, "llms-full.txt"),
    all.map((page) => `<!-- ${page} -->\n\n${text(page)}`).join("\n")
  )
  for (const page of pages) {
    mkdirSync(posix.join(out, posix.dirname(page)), { recursive: true })
    writeFileSync(posix.join(out, page), text(page))
  }
}
