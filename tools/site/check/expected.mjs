/** What the sources say that their pages must show. */
import { prose, text, title } from "../pages.mjs"

const count = (string, pattern) => [...string.matchAll(pattern)].length

export const expected = (page) => ({
  title: title(page),
  diagrams: count(text(page), /^\s*```mermaid\s*$/gm),
  images: count(prose(text(page)), /!\[[^\]]*\]\(/g)
})
