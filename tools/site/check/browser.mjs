/** Opens three pages of the built site in Chromium: text, a diagram and images, and the search. */
import { once } from "node:events"
import { chromium } from "playwright-core"
import { serve } from "vitepress"
import { text, title } from "../pages.mjs"

/** Each page with what it must show, in numbers. */
const pages = ["README.md", "docs/explanation/how-it-works.md", "docs/evidence/fleets.md"].map((page) => {
  const count = (pattern) => [...text(page).matchAll(pattern)].length
  return {
    path: page.replace(/README\.md$/, "").replace(/md$/, "html"),
    expected: { title: title(page), diagrams: count(/^```mermaid$/gm), images: count(/^!\[.*?\]\(/gm) }
  }
})

/** Runs in a page of the site. */
const look = async () => {
  const all = (selector) => [...document.querySelectorAll(selector)]
  const images = all(".main img")
  await Promise.allSettled(images.map((image) => image.decode()))
  return {
    // The theme puts a zero-width space before the link to a heading.
    title: document.querySelector("h1")?.textContent.replace(/\u200B/g, "").trim(),
    diagrams: all(".diagram > svg").filter((svg) => svg.clientWidth > 50 && !svg.querySelector(".error-icon")).length,
    images: images.filter((image) => image.naturalWidth > 0 && image.clientWidth > 0).length,
    overflow: document.documentElement.scrollWidth > document.documentElement.clientWidth
  }
}

const isReady = () =>
  document.querySelector("#app")?.__vue_app__ !== undefined && document.querySelector("pre.diagram") === null

/** Returns the problems of the site in `dist`. */
export const check = async (executablePath, dist, base) => {
  const problems = []
  // Only this machine is reachable.
  const args = ["--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1"]
  const browser = await chromium.launch({ executablePath, args })
  // VitePress passes its port to `listen` unchanged, so this is the only way to choose the loopback address.
  const { server } = await serve({ root: `${dist}/..`, base, port: { port: 0, host: "127.0.0.1" } })
  if (!server.listening) await once(server, "listening")
  const site = `http://127.0.0.1:${server.address().port}${base}`
  const page = await browser.newPage({ viewport: { width: 390, height: 844 } })
  const say = (problem) => problems.push(`${page.url()}: ${problem}`)
  page.on("console", (message) => message.type() === "error" && say(`console: ${message.text()}`))
  page.on("pageerror", ({ message }) => say(`exception: ${message}`))
  page.on("request", (request) => /^(data:|http:\/\/127)/.test(request.url()) || say(`foreign: ${request.url()}`))
  try {
    for (const { expected, path } of pages) {
      await page.goto(site + path)
      await page.waitForFunction(isReady, undefined, { timeout: 60_000 })
      const [shown, wanted] = [await page.evaluate(look), { ...expected, overflow: false }].map(JSON.stringify)
      if (shown !== wanted) say(`shows ${shown}, not ${wanted}`)
    }
    await page.click(".VPNavBarSearch button")
    await page.locator(".VPLocalSearchBox input").fill("429 retryAt")
    await page.locator(".results > li:first-child > .result[href*=\"runbook.html#\"]").waitFor({ timeout: 60_000 })
  } catch ({ message }) {
    say(message)
  }
  await browser.close()
  server.close()
  process.stdout.write(`${pages.length} pages are checked in Chromium\n`)
  return problems
}
