/** The pages of the site are the Markdown files of the repository. */
import { readdirSync, readFileSync } from "node:fs"
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
    "several-instances",
    "recipes",
    "other-oauth-servers",
    "without-effect",
    "serverless",
    "telemetry",
    "runbook",
    "migrating",
    "effect4"
  ].map((name) => `docs/guides/${name}.md`),
  "Reference": [
    ...[
      "configuration",
      "sharing",
      "command-line",
      "errors",
      "layers",
      "specification",
      "glossary"
    ]
      .map((name) => `docs/reference/${name}.md`),
    "docs/reference/api"
  ],
  "Explanation": ["how-it-works", "security-model", "comparison"].map((name) =>
    `docs/explanation/${name}.md`
  ),
  "Evidence": [
    "behaviour",
    "reported-problems",
    "standards",
    "interop",
    "runtimes",
    "benchmarks"
  ]
    .map((name) => `docs/evidence/${name}.md`),
  "Packages": ["core", "platform-node", "redis", "sql", "dpop", "cli", "emulator"].map((
    name
  ) => `packages/${name}`),
  "Project": ["SECURITY.md", "CONTRIBUTING.md", "CHANGELOG.md", "tools"]
}

/** Folders without pages, which are not searched. */
const skipped = /^(\..*|node_modules|dist|src|test|files|workspace)$/

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
    return [{
      text: path === "README.md" ? "Overview" : title(path),
      link: `/${path.replace(/README\.md$/, "")}`
    }]
  }
  const inside = readdirSync(posix.join(root, path), { withFileTypes: true })
    .filter((entry) =>
      entry.isDirectory() ? !skipped.test(entry.name) : /(?<!\.template)\.md$/.test(entry.name)
    )
    .map(({ name }) => posix.join(path, name))
  const [own] = inside.includes(readme(path))
    ? entries(readme(path))
    : [{ text: posix.basename(path) }]
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

/** The pages that the navigation lists. */
export const pages = sidebar.flatMap(pagesOf)
