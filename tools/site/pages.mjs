/**
 * The pages of the site: files of the repository, read where they are. A new page of docs has to be given its place here.
 * Its name in the navigation is its first heading, but for a few that would say too little there.
 */
import { existsSync, readdirSync, readFileSync, statSync } from "node:fs"
import { posix } from "node:path"
import { fileURLToPath } from "node:url"

export const root = fileURLToPath(new URL("../..", import.meta.url))

export const groups = [
  {
    name: "Start",
    pages: ["README.md", "examples/README.md", "docs/recipes.md", "docs/configuration.md", "docs/faq.md"]
  },
  { name: "How it works", pages: ["docs/architecture.md", "docs/behaviour.md", "docs/provider.md"] },
  { name: "In operation", pages: ["docs/runbook.md", "docs/telemetry.md", "docs/redis.md", "docs/fleets.md"] },
  { name: "Choosing it", pages: ["docs/comparison.md", "docs/migrating.md"] },
  {
    name: "What was shown",
    pages: [
      "docs/standards.md",
      "docs/interop.md",
      "docs/runtimes.md",
      "docs/mutation.md",
      "docs/benchmarks.md",
      "tools/benchmarks/README.md"
    ]
  },
  {
    name: "The packages",
    pages: ["core", "platform-node", "redis", "cli", "emulator"].map((name) => `packages/${name}/README.md`)
  },
  { name: "The project", pages: ["SECURITY.md", "CONTRIBUTING.md", "docs/releasing.md"] }
]

const names = { "README.md": "Overview", "tools/benchmarks/README.md": "How it is measured" }

const referenceFolder = "docs/reference"

const exists = (path) => existsSync(posix.join(root, path))

export const text = (page) => readFileSync(posix.join(root, page), "utf8")

/** Markdown without its code blocks, in which `#` and brackets mean something else. */
export const prose = (markdown) => markdown.replace(/^\s*(```+)[^]*?^\s*\1\s*$/gm, "")

export const title = (page) => {
  const [, heading] = /^# (.+)$/m.exec(prose(text(page))) ?? []
  if (heading === undefined) throw new Error(`${page} has no heading of the first order.`)
  return heading.replaceAll("`", "")
}

export const nameOf = (page) => names[page] ?? title(page)

const markdownIn = (folder) =>
  readdirSync(posix.join(root, folder)).filter((name) => name.endsWith(".md")).map((name) => `${folder}/${name}`)

/** The reference, a folder for each package: whatever `npm run reference` wrote. */
const referencePackages = () =>
  readdirSync(posix.join(root, referenceFolder), { withFileTypes: true })
    .filter((entry) => entry.isDirectory())
    .map(({ name }) => {
      const index = `${referenceFolder}/${name}/README.md`
      return { index, modules: markdownIn(posix.dirname(index)).filter((page) => page !== index) }
    })

export const pages = () => [
  ...groups.flatMap(({ pages }) => pages),
  ...markdownIn(referenceFolder),
  ...referencePackages().flatMap(({ index, modules }) => [index, ...modules])
]

/** What is wrong with the list: pages that nobody would find, and entries that lead nowhere. */
export const problemsOf = (listed, there) => [
  ...there.filter((page) => !listed.includes(page)).map((page) => `${page} is in no group of tools/site/pages.mjs`),
  ...listed.filter((page) => !there.includes(page)).map((page) => `${page} is in tools/site/pages.mjs, and is not there`),
  ...listed.filter((page, index) => listed.indexOf(page) !== index).map((page) =>
    `${page} is in tools/site/pages.mjs more than once`
  )
]

export const problems = () => {
  const listed = groups.flatMap(({ pages }) => pages)
  const elsewhere = listed.filter((page) => posix.dirname(page) !== "docs" && exists(page))
  return [
    ...problemsOf(listed, [...markdownIn("docs"), ...elsewhere]),
    ...pages().filter(exists).flatMap((page) => linkProblems(page, text(page)))
  ]
}

const generated = /^(node_modules|dist|coverage|\..*)$/

const allMarkdown = (folder) =>
  readdirSync(posix.join(root, folder), { withFileTypes: true }).flatMap((entry) => {
    const path = posix.join(folder, entry.name)
    if (generated.test(entry.name)) return []
    return entry.isDirectory() ? allMarkdown(path) : path.endsWith(".md") ? [path] : []
  })

/** The Markdown of the repository that is no page. */
export const otherMarkdown = () => {
  const own = pages()
  return allMarkdown("").filter((path) => !own.includes(path) && !path.startsWith("tools/site/"))
}

/** Where a page is on the site: as in the repository, but that a folder's page is its index. */
export const placeOf = (page) => page.replace(/(^|\/)README\.md$/, "$1index.md")

/** The same as an address, below the base. */
export const address = (page) => `/${placeOf(page).replace(/\.md$/, ".html").replace(/(^|\/)index\.html$/, "$1")}`

export const sidebar = () => [
  ...groups
    .filter(({ pages }) => pages.length > 0)
    .map(({ name, pages }) => ({
      text: name,
      items: pages.map((page) => ({ text: nameOf(page), link: address(page) }))
    })),
  {
    text: title(`${referenceFolder}/README.md`),
    link: address(`${referenceFolder}/README.md`),
    items: referencePackages().map(({ index, modules }) => ({
      text: title(index),
      link: address(index),
      collapsed: true,
      items: modules.map((page) => ({ text: posix.basename(page, ".md"), link: address(page) }))
    }))
  }
]

const filesFolder = "files"

/** Where a file that is no page can be read on the site. */
export const placeOfFile = (path) => `${filesFolder}/${path}.md`

/** The path in the repository that a link of a page leads to, and the heading; nothing for a link to elsewhere. */
export const target = (page, link) => {
  if (/^[a-z][a-z+.-]*:|^\/\//i.test(link)) return undefined
  const [path, anchor] = decodeURI(link).split("#")
  const linked = path === "" ? page : posix.join(posix.dirname(page), path).replace(/\/$/, "")
  return { path: linked, anchor }
}

const targets = (page, markdown) =>
  [...prose(markdown).matchAll(/\]\(([^)\s]+)\)/g)].flatMap(([, link]) => target(page, link)?.path ?? [])

/** Links of a page to what is not there, or to a page that the site does not have. */
export const linkProblems = (page, markdown) =>
  targets(page, markdown).flatMap((path) =>
    !exists(path)
      ? [`${page}: ${path} is linked, and is not there`]
      : path.endsWith(".md") && !pages().includes(path)
      ? [`${page}: ${path} is linked, and is not in tools/site/pages.mjs`]
      : []
  )

const isFolder = (path) => statSync(posix.join(root, path)).isDirectory()

const entries = (folder) => readdirSync(posix.join(root, folder)).map((name) => `${folder}/${name}`)

/** The files and folders that pages link to and that are no pages, and what is in those folders. */
export const linkedFiles = () => {
  const own = new Set(pages())
  const found = new Set()
  const add = (path) => {
    if (own.has(path) || found.has(path) || !exists(path) || /\.(md|svg|png)$/.test(path)) return
    found.add(path)
    if (isFolder(path)) entries(path).forEach(add)
  }
  for (const page of own) targets(page, text(page)).forEach(add)
  return [...found]
}

/** A file or folder as a page. */
export const fileAsPage = (path) => {
  const heading = `# ${path}\n\n`
  if (isFolder(path)) {
    const names = entries(path).map((entry) => posix.relative(path, entry))
    return heading + names.map((name) => `- [${name}](${posix.basename(path)}/${name}.md)`).join("\n")
  }
  const content = text(path)
  const longest = Math.max(2, ...[...content.matchAll(/`+/g)].map(([run]) => run.length))
  const fence = "`".repeat(longest + 1)
  return `${heading}${fence}${posix.extname(path).slice(1) || "text"}\n${content}${fence}\n`
}
