/** VitePress finds links to missing pages. This finds links to missing headings and files. */
import { existsSync, readdirSync, readFileSync } from "node:fs"
import { join } from "node:path"

const values = (html, attribute) =>
  [...html.matchAll(new RegExp(`<[a-z][^<>]*?\\s(?:${attribute})="([^"]*)"`, "g"))]
    .map(([, value]) => value.replaceAll("&amp;", "&"))

export const linkProblems = (dist, base) => {
  const paths = readdirSync(dist, { recursive: true }).filter((path) => path.endsWith(".html"))
  const pages = new Map(paths.map((path) => [path, readFileSync(join(dist, path), "utf8")]))
  const ids = new Map([...pages].map(([path, html]) => [path, new Set(["", ...values(html, "id")])]))
  const root = new URL(base, "https://site.invalid")
  const isDead = ({ hash, origin, pathname, protocol }) => {
    if (origin !== root.origin) return protocol !== "https:" && protocol !== "data:"
    const path = decodeURIComponent(pathname).slice(base.length).replace(/(^|\/)$/, "$1index.html")
    return !pathname.startsWith(base) || !existsSync(join(dist, path)) ||
      ids.get(path)?.has(decodeURIComponent(hash.slice(1))) === false
  }
  return [...pages].flatMap(([path, html]) =>
    values(html, "href|src").filter((link) => isDead(new URL(link, new URL(path, root))))
      .map((link) => `${path}: dead link: ${link}`)
  )
}
