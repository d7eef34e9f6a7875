/** The built site with one thing broken each, and what somebody who uses it must say of that. */
import { readdirSync, readFileSync } from "node:fs"
import { join } from "node:path"
import { address } from "../pages.mjs"
import { expected } from "./expected.mjs"
import { serve } from "./server.mjs"
import { darken, follow, openMenu, search } from "./use.mjs"

const pageOf = (path) => ({ path, place: address(path), ...expected(path) })

/** The page that is broken; it is in the menu, and so linked to from every other. */
const faq = pageOf("docs/faq.md")
const runbook = pageOf("docs/runbook.md")
const drawn = pageOf("docs/redis.md")

const at = ({ place }, base) => base + place.slice(1)

/** The name of the one file that is meant: there is a digest in it. */
const nameOf = (folder, pattern) => {
  const found = readdirSync(join(folder, "assets"), { recursive: true }).filter((path) => pattern.test(path))
  if (found.length !== 1) throw new Error(`${found.length} files of the site are ${pattern}`)
  return `assets/${found[0]}`
}

const contentOf = (folder, name) => readFileSync(join(folder, name), "utf8")

/** What the browser loads when it goes to a page from another. */
const chunkOf = (folder, { path }) => nameOf(folder, new RegExp(`^${path.replaceAll("/", "_")}\\.[^.]+\\.js$`))

const chunk = (content) => (folder) => ({ [chunkOf(folder, faq)]: content })

const otherChunk = (folder) => chunk(contentOf(folder, chunkOf(folder, runbook)))(folder)

/** A file with one text in place of another, which has to be there. */
const altered = (name, from, to) => (folder) => {
  const content = contentOf(folder, name(folder))
  if (!content.includes(from)) throw new Error(`${name(folder)} has no ${from}`)
  return { [name(folder)]: content.replaceAll(from, to) }
}

const home = () => "index.html"
const searchIndex = (folder) => nameOf(folder, /^chunks\/@localSearchIndexroot\.[^.]+\.js$/)
const elsewhere = [faq.place, "/elsewhere.html"]

/** Another Mermaid: `svg` is what it draws, with `id` and `dark` at hand. */
const mermaid = (svg) => (folder) => ({
  [nameOf(folder, /^mermaid-[^/]+\/mermaid\.js$/)]:
    `let dark; export default { initialize: ({ theme }) => { dark = theme === "dark" }, render: (id) => ({ svg: ${svg} }) }`
})

const drawing = (id) => "`<svg id=\"" + id + "\" width=\"100\" height=\"100\"></svg>`"

/** What never comes need not be waited for as long as what is only slow. */
const briefly = 200

const followIt = (patience) => (browser, base) =>
  follow(browser, { link: at(faq, base), patience, title: faq.title, url: base })

const searchIt = (browser, base) => {
  const address = at(faq, base)
  return search(browser, base, { address, titles: new Map([[address, faq.title]]), words: faq.title })
}

const darkenIt = (patience) => (browser, base) =>
  darken(browser, at(drawn, base), { diagrams: drawn.diagrams, patience })

const openIt = (browser, base) => openMenu(browser, base, [at(faq, base)])

/** `files` are in place of the site's own, `says` is what is said among whatever else the browser complains of. */
export const broken = {
  "a page that cannot be loaded": {
    files: chunk(undefined),
    use: followIt(),
    says: `link: ${faq.place} leads to nothing`
  },
  "a page that throws": {
    files: chunk(`throw new Error("broken")`),
    use: followIt(),
    says: `link: ${faq.place} leads to nothing`
  },
  "a page that is none": {
    files: chunk("export {}"),
    use: followIt(briefly),
    says: `link: ${faq.place} shows no page`
  },
  "a page in place of another": {
    files: otherChunk,
    use: followIt(),
    says: `link: ${faq.place} leads to "${runbook.title}", ${runbook.place}`
  },
  "a page that is not in the index": {
    files: altered(searchIndex, ...elsewhere),
    use: searchIt,
    says: `search: "${faq.title}" does not find ${faq.place}`
  },
  "words that are on a page, and should be on none": {
    files: () => ({}),
    use: (browser, base) => search(browser, base, { words: faq.title }),
    says: `search: "${faq.title}" finds`
  },
  "a result that leads to another page": {
    files: otherChunk,
    use: searchIt,
    says: `leads to "${runbook.title}", ${runbook.place}`
  },
  "a diagram that is not drawn anew": {
    files: mermaid(drawing("once")),
    use: darkenIt(briefly),
    says: "dark: not all diagrams are drawn anew"
  },
  "a diagram that the dark swallows": {
    files: mermaid(`dark ? "" : ${drawing("${id}")}`),
    use: darkenIt(),
    says: `dark: 0 of ${drawn.diagrams} diagrams are drawn`
  },
  "a menu without a page": {
    files: altered(home, ...elsewhere),
    use: openIt,
    says: `menu: ${faq.place} is not in it`
  },
  "a menu that is open": {
    files: altered(home, `class="VPSidebar"`, `class="VPSidebar open"`),
    use: openIt,
    says: "menu: the list is there before it is asked for"
  }
}

/** What one of them is not said of. */
export const brokenProblems = async (browser, folder, basePath, name) => {
  const { files, says, use } = broken[name]
  const server = await serve(folder, basePath, files(folder))
  try {
    const said = (await use(browser, server.url)).map((problem) => problem.replaceAll(server.url, "/"))
    return said.some((problem) => problem.includes(says))
      ? []
      : [`${name}: said ${said.join(", ")} in place of ${says}`]
  } finally {
    server.close()
  }
}
