/** What GitHub makes of the Markdown files and VitePress would not, so that each reads the same here and there. */
import { posix } from "node:path"
import { pages, placeOf, placeOfFile, target } from "./pages.mjs"

/** The anchor that GitHub gives to a heading. */
export const slug = (heading) => heading.trim().toLowerCase().replace(/[^\p{L}\p{N}_\- ]/gu, "").replaceAll(" ", "-")

const pageAt = (place, all) => all.find((page) => placeOf(page) === place)

/** Links are made for the repository: each is led to where that file is on the site. */
const links = (md) => {
  const all = pages()
  const led = (place, link) => {
    const page = pageAt(place, all)
    const { anchor, path } = (page !== undefined && target(page, link)) || {}
    if (path === undefined || path === page) return link
    const there = all.includes(path) ? placeOf(path) : placeOfFile(path)
    return posix.relative(posix.dirname(place), there) + (anchor === undefined ? "" : `#${anchor}`)
  }
  md.core.ruler.push("links_of_the_repository", ({ env, tokens }) => {
    for (const token of tokens.flatMap(({ children }) => children ?? [])) {
      if (token.type === "link_open") token.attrSet("href", led(env.relativePath, token.attrGet("href")))
    }
  })
}

/** Diagrams are drawn in the browser: see theme/Diagram.mjs. */
const diagrams = (md) => {
  const fence = md.renderer.rules.fence
  md.renderer.rules.fence = (tokens, index, ...others) =>
    tokens[index].info.trim() === "mermaid"
      ? `<Diagram code="${encodeURIComponent(tokens[index].content)}" />\n`
      : fence(tokens, index, ...others)
}

/** Vue would take two braces in a text for an expression. */
const braces = (md) => {
  for (const name of ["text", "code_inline"]) {
    const render = md.renderer.rules[name]
    md.renderer.rules[name] = (...given) => render(...given).replaceAll("{{", "&#123;&#123;")
  }
}

export const markdown = {
  anchor: { slugify: slug },
  attrs: { disable: true },
  theme: { light: "github-light", dark: "github-dark" },
  config: (md) => {
    md.linkify.set({ fuzzyLink: false, fuzzyEmail: false })
    for (const plugin of [links, diagrams, braces]) plugin(md)
  }
}
