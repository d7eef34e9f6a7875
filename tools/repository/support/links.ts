/** The links of Markdown pages: to files that are there, and to headings within them. */
import { existsSync, readFileSync } from "node:fs"
import { join } from "node:path"
import { root } from "./command.js"

/** The text of a page without its code blocks, in which `#` and brackets mean something else. */
const prose = (text: string) => text.replace(/^\s*```[^]*?^\s*```\s*$/gm, "")

/** The anchors that GitHub gives to the headings of a page; a heading that is there again gets a number. */
export const anchors = (text: string): ReadonlyArray<string> => {
  const seen = new Map<string, number>()
  return [...prose(text).matchAll(/^#+ (.*)$/gm)].map(([, heading = ""]) => {
    const shown = heading.replace(/\[([^\]]*)\]\([^)]*\)/g, "$1")
    const slug = shown.toLowerCase().replace(/[^\p{L}\p{N}_\- ]/gu, "").replaceAll(" ", "-")
    const before = seen.get(slug) ?? 0
    seen.set(slug, before + 1)
    return before === 0 ? slug : `${slug}-${before}`
  })
}

export interface Links {
  /** How many links were looked at. */
  readonly checked: number
  /** Those that lead nowhere, with the page that they are on. */
  readonly broken: ReadonlyArray<string>
}

const targets = (text: string) =>
  [...prose(text).matchAll(/\]\(([^)\s]+)\)/g)].map(([, target = ""]) => target)
    .filter((target) => !target.startsWith("https:"))

/** `pages` are relative to the root. `read` gives the text of a page, from the disk unless told otherwise. */
export const check = (
  pages: Iterable<string>,
  read: (page: string) => string | undefined = (page) =>
    existsSync(join(root, page)) ? readFileSync(join(root, page), "utf8") : undefined
): Links => {
  let checked = 0
  const broken: Array<string> = []
  for (const page of pages) {
    for (const target of targets(read(page) ?? "")) {
      checked++
      const [path = "", anchor] = target.split("#")
      const linked = path === "" ? page : join(page, "..", path)
      const there = anchor === undefined
        ? existsSync(join(root, linked)) || read(linked) !== undefined
        : anchors(read(linked) ?? "").includes(anchor)
      if (!there) broken.push(`${page}: ${target}`)
    }
  }
  return { checked, broken }
}
