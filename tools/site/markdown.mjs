/** Makes VitePress render Markdown as GitHub does, and the code for both majors of Effect. */
import { blockOf } from "../effect4/generate.mjs"
import { members, modules } from "../effect4/rules.mjs"
import { noteOn } from "../effect4/transform.mjs"

/** The anchor that GitHub gives to a heading. */
const slugify = (heading) =>
  heading.trim().toLowerCase().replace(/[^\p{L}\p{N}_\- ]/gu, "").replaceAll(" ", "-")

/** Converts a link of the repository to one of the site: a README is the index of its folder, and a file is a page. */
const led = (link) => {
  const [, path, anchor] = /^([^#]*)(.*)$/.exec(link)
  if (path === "" || path.endsWith("/") || /^([a-z][a-z+.-]*:|\/\/)/i.test(path)) return link
  return (path.endsWith(".md")
    ? path.replace(/(^|\/)README\.md$/, "$1index.md")
    : `${path}.md`) + anchor
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

/** A type in the API reference, by its name in Effect 4. */
const in4 = (name) =>
  members[name] ?? name.replace(/^(Config|Metric)\.\1\./, "$1.")
    .replace(
      /^\w+(?=\.)/,
      (module) => Object.hasOwn(modules, module) ? modules[module] : module
    )

const both = (tag, parts) =>
  parts.map((html, index) => `<${tag} class="effect${4 - index}">${html}</${tag}>`).join("")

/**
 * Two tabs, "Effect 4" and "Effect 3": for two blocks after the paragraphs "With Effect 4:" and "With Effect 3:", and
 * for a TypeScript block of the API reference that differs. The types in the API reference follow the chosen tab.
 */
const majors = (md) => {
  md.core.ruler.push("majors", ({ env: { relativePath }, tokens }) => {
    const isFor = (major, at) =>
      tokens[at + 1].content === `With Effect ${major}:` && tokens[at + 3].type === "fence"
    for (let at = tokens.length - 8; at >= 0; at--) {
      if (!isFor(4, at) || !isFor(3, at + 4)) continue
      const [{ content }] = tokens.splice(at + 4, 4).slice(3)
      const [fence] = tokens.splice(at, 4).slice(3)
      tokens.splice(at, 0, Object.assign(fence, { majors: [fence.content, content] }))
    }
    // Only the API reference and the pages of single files show a block for one major.
    for (
      const token of tokens.filter(({ info, majors, type }) =>
        majors === undefined && type === "fence" && info.trim() === "ts"
      )
    ) {
      const code = blockOf(token.content)
      if (code !== token.content) token.majors = [code, token.content]
    }
    const note = noteOn(relativePath)
    const noted = tokens.findIndex(({ content }) => content.replaceAll("\n", " ") === note)
    if (noted > 0) tokens.splice(noted - 1, 3)
  })
  const { code_inline: code, fence } = md.renderer.rules
  let groups = 0
  md.renderer.rules.fence = (tokens, index, ...others) => {
    const { majors } = tokens[index]
    if (majors === undefined) return fence(tokens, index, ...others)
    const name = `majors-${++groups}`
    const tab = (major) =>
      `<input type="radio" name="${name}" id="${name}-${major}" value="${major}"${
        major === 4 ? " checked" : ""
      }>` +
      `<label data-title="Effect ${major}" for="${name}-${major}">Effect ${major}</label>`
    const blocks = majors.map((content) =>
      fence([Object.assign(Object.create(tokens[index]), { content })], 0, ...others)
    )
    return `<div class="vp-code-group vp-adaptive-theme majors"><div class="tabs">${tab(4)}${
      tab(3)
    }</div>` +
      `<div class="blocks">${both("div", blocks)}</div></div>\n`
  }
  md.renderer.rules.code_inline = (tokens, index, options, env, ...others) => {
    const { content } = tokens[index]
    const render = (content) =>
      code(
        [Object.assign(Object.create(tokens[index]), { content })],
        0,
        options,
        env,
        ...others
      )
    const isOne = content === in4(content) ||
      !env.relativePath.startsWith("docs/reference/api/")
    return isOne ? render(content) : both("span", [in4(content), content].map(render))
  }
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
    for (const plugin of [links, braces, majors, diagrams]) plugin(md)
  }
}
