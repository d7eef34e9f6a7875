/** Checks the built site: its links to headings and files, and three pages, the tabs and the search in Chromium. */
import { once } from "node:events"
import { existsSync, readdirSync, readFileSync } from "node:fs"
import { join } from "node:path"
import { chromium } from "playwright-core"
import { serve } from "vitepress"
import { text, title } from "./pages.mjs"

const values = (html, attribute) =>
  [...html.matchAll(new RegExp(`<[a-z][^<>]*?\\s(?:${attribute})="([^"]*)"`, "g"))]
    .map(([, value]) => value.replaceAll("&amp;", "&"))

/** Links to missing headings and files. VitePress itself finds links to missing pages. */
export const deadLinks = (dist, base) => {
  const paths = readdirSync(dist, { recursive: true }).filter((path) => path.endsWith(".html"))
  const pages = new Map(paths.map((path) => [path, readFileSync(join(dist, path), "utf8")]))
  const ids = new Map(
    [...pages].map(([path, html]) => [path, new Set(["", ...values(html, "id")])])
  )
  const root = new URL(base, "https://site.invalid")
  const isDead = ({ hash, origin, pathname, protocol }) => {
    if (origin !== root.origin) return protocol !== "https:" && protocol !== "data:"
    const path = decodeURIComponent(pathname).slice(base.length).replace(
      /(^|\/)$/,
      "$1index.html"
    )
    return !pathname.startsWith(base) || !existsSync(join(dist, path)) ||
      ids.get(path)?.has(decodeURIComponent(hash.slice(1))) === false
  }
  return [...pages].flatMap(([path, html]) =>
    values(html, "href|src").filter((link) => isDead(new URL(link, new URL(path, root))))
      .map((link) => `${path}: dead link: ${link}`)
  )
}

/** What a page shows. Runs in the browser. */
const look = async () => {
  const images = [...document.querySelectorAll(".main img")]
  await Promise.allSettled(images.map((image) => image.decode()))
  return {
    // The theme puts a zero-width space before the link to a heading.
    title: document.querySelector("h1")?.textContent.replace(/\u200B/g, "").trim(),
    diagrams: document.querySelectorAll(".diagram > svg:not(:has(.error-icon))").length,
    images: images.filter((image) => image.naturalWidth > 0 && image.clientWidth > 0).length,
    overflow: document.documentElement.scrollWidth > document.documentElement.clientWidth
  }
}

/** Whether all tabs show the code of one major, and only that. Runs in the browser. */
const isShown = (major) => {
  const groups = [...document.querySelectorAll(".majors")]
  const hasHeight = (group, other) => group.querySelector(`.effect${other}`).clientHeight > 0
  return groups.length > 1 &&
    groups.every((group) =>
      group.querySelector("input:checked").value === major && hasHeight(group, major) &&
      !hasHeight(group, 7 - major)
    )
}

/** Returns the problems of three pages of the site in `dist`, of its tabs and of its search. */
export const inBrowser = async (executablePath, dist, base) => {
  const problems = []
  // Only this machine is reachable.
  const args = ["--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1"]
  const browser = await chromium.launch({ executablePath, args })
  // VitePress passes its port to `listen` unchanged, so this is the only way to choose the loopback address.
  const { server } = await serve({
    root: `${dist}/..`,
    base,
    port: { port: 0, host: "127.0.0.1" }
  })
  if (!server.listening) await once(server, "listening")
  const page = await browser.newPage({ viewport: { width: 390, height: 844 } })
  const say = (problem) => problems.push(`${page.url()}: ${problem}`)
  page.on(
    "console",
    (message) => message.type() === "error" && say(`console: ${message.text()}`)
  )
  page.on("pageerror", ({ message }) => say(`exception: ${message}`))
  page.on(
    "request",
    (request) =>
      /^(data:|http:\/\/127)/.test(request.url()) || say(`foreign: ${request.url()}`)
  )
  try {
    for (
      const path of [
        "README.md",
        "docs/explanation/how-it-works.md",
        "docs/guides/several-instances.md"
      ]
    ) {
      const count = (pattern) => [...text(path).matchAll(pattern)].length
      const wanted = {
        title: title(path),
        diagrams: count(/^```mermaid$/gm),
        images: count(/^!\[.*?\]\(/gm)
      }
      const file = path.replace(/README\.md$/, "").replace(/md$/, "html")
      await page.goto(`http://127.0.0.1:${server.address().port}${base}${file}`)
      await page.waitForFunction(
        () =>
          document.querySelector("#app")?.__vue_app__ !== undefined &&
          document.querySelector("pre.diagram") === null,
        undefined,
        { timeout: 60_000 }
      )
      const [shown, expected] = [await page.evaluate(look), { ...wanted, overflow: false }]
        .map(JSON.stringify)
      if (shown !== expected) say(`shows ${shown}, not ${expected}`)
    }
    await page.goto(
      `http://127.0.0.1:${server.address().port}${base}docs/tutorial/1-first-call.html`
    )
    await page.waitForFunction(isShown, "4")
    await page.click(".majors label[data-title=\"Effect 3\"]")
    await page.waitForFunction(isShown, "3")
    await page.setViewportSize({ width: 1280, height: 844 })
    await page.click(".main a[href$=\"/2-testing.html\"]")
    await page.waitForURL("**/2-testing.html")
    await page.waitForFunction(isShown, "3")
    await page.reload()
    await page.waitForFunction(isShown, "3")
    await page.click(".VPNavBarSearch button")
    await page.locator(".VPLocalSearchBox input").fill("429")
    await page.locator(".results > li:first-child > .result[href*=\"runbook.html#\"]").waitFor(
      { timeout: 60_000 }
    )
  } catch ({ message }) {
    say(message)
  }
  await browser.close()
  server.close()
  return problems
}
