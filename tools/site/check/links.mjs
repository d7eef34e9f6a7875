/** Checks that each link of the built site leads to a file of the site, and to an element in it. */
import { readdirSync, readFileSync } from "node:fs"
import { join } from "node:path"

const ids = /<[a-z][^<>]*?\sid="([^"]*)"/g
const links = /<[a-z][^<>]*?\s(?:href|src)="([^"]*)"/g

const values = (html, attribute) => [...html.matchAll(attribute)].map(([, value]) => value.replaceAll("&amp;", "&"))

/** `files` has the text of each page by path, and an empty text for each other file. */
const deadLinks = (files, base) => {
  const root = new URL(base, "https://site.invalid")
  const targets = new Map(files.map(([path, html]) => [path, ["", ...values(html, ids)]]))
  const isDead = ({ hash, origin, pathname, protocol }) => {
    if (origin !== root.origin) return protocol !== "https:" && protocol !== "data:"
    const path = decodeURIComponent(pathname).slice(base.length).replace(/(^|\/)$/, "$1index.html")
    return !pathname.startsWith(base) || !targets.get(path)?.includes(decodeURIComponent(hash.slice(1)))
  }
  return files.flatMap(([path, html]) =>
    values(html, links).filter((link) => isDead(new URL(link, new URL(path, root))))
      .map((link) => `${path}: dead link: ${link}`)
  )
}

/** A site whose last page has only dead links. */
const control = [
  ["index.html", `<p id="here"><a href="a/b.html#%C3%BC">`],
  [
    "a/b.html",
    `<p id="ü"><a class="x" href="../#here"><a href="/base/"><a href="https://x.example/"><img src="c.svg">`
  ],
  ["a/c.svg", ""],
  [
    "d.html",
    `<a href="#a"><a href="index.html#a"><a href="b.html"><a href="/"><a href="http://x.example/"><img src="e">`
  ]
]

export const linkProblems = (dist, base) => {
  const [page, html] = control.at(-1)
  const found = deadLinks(control, "/base/").join()
  if (found !== values(html, links).map((link) => `${page}: dead link: ${link}`).join()) {
    return [`The check of links finds in its control only: ${found}`]
  }
  const read = (path) => (path.endsWith(".html") ? readFileSync(join(dist, path), "utf8") : "")
  return deadLinks(readdirSync(dist, { recursive: true }).map((path) => [path, read(path)]), base)
}
