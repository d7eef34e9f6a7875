/** Makes VitePress render Markdown as GitHub does, so that each page reads the same on both. */

/** The anchor that GitHub gives to a heading. */
const slugify = (heading) => heading.trim().toLowerCase().replace(/[^\p{L}\p{N}_\- ]/gu, "").replaceAll(" ", "-")

/** Converts a link of the repository to one of the site: a README is the index of its folder, and a file is a page. */
const led = (link) => {
  const [, path, anchor] = /^([^#]*)(.*)$/.exec(link)
  if (path === "" || path.endsWith("/") || /^([a-z][a-z+.-]*:|\/\/)/i.test(path)) return link
  return (path.endsWith(".md") ? path.replace(/(^|\/)README\.md$/, "$1index.md") : `${path}.md`) + anchor
}

const links = (md) => {
  md.core.ruler.push("links_of_the_repository", ({ tokens }) => {
    for (const token of tokens.flatMap(({ children }) => children ?? [])) {
      if (token.type === "link_open") token.attrSet("href", led(token.attrGet("href")))
    }
  })
}

/** Diagrams are drawn in the browser: see .vitepress/theme/index.mjs. */
const diagrams = (md) => {
  const fence = md.renderer.rules.fence
  md.renderer.rules.fence = (tokens, index, ...others) =>
    tokens[index].info.trim() === "mermaid"
      ? `<Diagram code="${encodeURIComponent(tokens[index].content)}" />\n`
      : fence(tokens, index, ...others)
}

/** Escapes double braces, which Vue would evaluate. */
const braces = (md) => {
  for (const name of ["text", "code_inline"]) {
    const render = md.renderer.rules[name]
    md.renderer.rules[name] = (...given) => render(...given).replaceAll("{{", "&#123;&#123;")
  }
}

export const markdown = {
  anchor: { slugify },
  attrs: { disable: true },
  config: (md) => {
    md.linkify.set({ fuzzyLink: false, fuzzyEmail: false })
    for (const plugin of [links, diagrams, braces]) plugin(md)
  }
}
