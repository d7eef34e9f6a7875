/** Opens every page of the built site in Chromium, and uses its navigation and search. */
import { once } from "node:events"
import { chromium } from "playwright-core"
import { serve } from "vitepress"
import { pages, text, title } from "../pages.mjs"

const phone = { width: 390, height: 844 }
const desktop = { width: 1280, height: 900 }

/** The layout also changes at these widths, in the same way on every page. */
const widths = [768, 1024, 1440, 1920]

/** Searches, two of them with a typo, and the page that must be the first result. */
const firstResults = {
  "429 retryAt": "docs/guides/runbook.html#ratelimited",
  "rotation": "docs/guides/recipes.html",
  "401": "docs/guides/runbook.html",
  "serverles": "docs/guides/serverless.html",
  "cachedWithTTL": "#why-not-effectcachedwithttl",
  "retreAt": "docs/reference/api/core/AccessTokenError.html#retryat"
}

/** A time limit for a busy machine. */
const patience = 60_000

/** Returns the problems of the site in `dist`. */
export const check = async (executablePath, dist, base) => {
  const count = (page, pattern) => [...text(page).matchAll(pattern)].length
  const listed = pages.map((page) => ({
    path: base + page.replace(/README\.md$/, "").replace(/md$/, "html"),
    source: { title: title(page), diagrams: count(page, /^```mermaid$/gm), images: count(page, /^!\[.*?\]\(/gm) }
  }))
  // One of the files that are shown as pages represents all of them.
  const all = [...listed, { path: `${base}404.html` }, { path: `${base}LICENSE.html` }]

  // Only this machine is reachable.
  const args = ["--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1"]
  const browser = await chromium.launch({ executablePath, args })
  // VitePress passes its port to `listen` unchanged, so this is the only way to choose the loopback address.
  const { server } = await serve({ root: `${dist}/..`, base, port: { port: 0, host: "127.0.0.1" } })
  if (!server.listening) await once(server, "listening")
  const origin = `http://127.0.0.1:${server.address().port}`

  /** Opens the site in a new tab, uses it, and returns the problems. */
  const inTab = async (viewport, use) => {
    const problems = []
    // Compression would take longer than the rest of the check.
    const page = await browser.newPage({ viewport, extraHTTPHeaders: { "accept-encoding": "identity" } })
    const say = (problem) => problems.push(`${page.url()}: ${problem}`.replaceAll(origin, ""))
    page.setDefaultTimeout(patience)
    report(page, say, origin)
    try {
      // Turns off prefetching, as for readers who save data.
      await page.addInitScript(() => Object.defineProperty(navigator, "connection", { value: { saveData: true } }))
      await page.goto(origin + base)
      await use({ page, say })
    } catch ({ message }) {
      say(message)
    }
    await page.close()
    return problems
  }
  const onPhone = async (tab) => {
    await openMenu(tab, listed)
    for (const { path, source } of all) {
      await tab.page.goto(origin + path)
      await inspect(tab, source)
    }
  }
  const onDesktop = async (tab) => {
    await searchFirst(tab, Object.entries(firstResults).map(([words, path]) => [words, base + path]))
    await search(tab, listed)
    for (const next of listed.filter(({ source }) => source.diagrams > 0)) {
      await follow(tab, next)
      await switchColours(tab, next)
    }
    for (const width of widths) {
      await tab.page.setViewportSize({ ...desktop, width })
      await inspect(tab)
    }
  }
  const onFaultyPage = async (tab) => {
    await tab.page.route("**/faults.html", (route) => route.fulfill({ contentType: "text/html", body: faultyPage }))
    await tab.page.goto(`${origin}${base}faults.html`)
    await inspect(tab, { title: "Title", images: 3, diagrams: 3 }, 500)
  }
  const [problems, ...others] = await Promise.all([
    inTab(phone, onFaultyPage).then(missedFaults),
    inTab(phone, onPhone),
    inTab(desktop, onDesktop)
  ]).finally(() => browser.close())
  server.close()
  process.stdout.write(`${all.length} pages are checked in Chromium\n`)
  return [...problems, ...others.flat()]
}

/** Reports what the browser finds: errors of scripts, failed requests, and requests to other servers. */
const report = (page, say, origin) => {
  const isOwn = (url) => url.startsWith(origin) || url.startsWith("data:")
  page.on("console", (message) => message.type() === "error" && say(`console: ${message.text()}`))
  page.on("pageerror", ({ message }) => say(`exception: ${message}`))
  page.on("request", (request) => !isOwn(request.url()) && say(`foreign: ${request.url()}`))
  page.on("response", (response) => response.status() < 400 || say(`failed: ${response.status()} of ${response.url()}`))
  page.on("requestfailed", (request) => say(`failed: ${request.failure()?.errorText} of ${request.url()}`))
}

/** Waits until VitePress has hydrated the page, and compares it with its source. */
const inspect = async ({ page, say }, source = {}, timeout = patience) => {
  await page.waitForFunction(isReady, undefined, { timeout }).catch(() => {})
  const { problems, ...shown } = await page.evaluate(look)
  problems.forEach(say)
  for (const [name, value] of Object.entries(source)) {
    if (shown[name] !== value) say(`${name}: "${shown[name]}" in place of "${value}"`)
  }
}

const isReady = () =>
  document.querySelector("#app")?.__vue_app__ !== undefined && document.querySelector("pre.diagram") === null

/** Runs in a page of the site. Returns its content and its problems. */
const look = async () => {
  const all = (selector) => [...document.querySelectorAll(selector)]
  const width = (element) => element.getBoundingClientRect().width
  const images = all(".main img")
  await Promise.allSettled(images.map((image) => image.decode()))

  const edge = document.documentElement.clientWidth
  /** The outermost elements that overflow the page. An element that scrolls is fine. */
  const wideIn = (element) => {
    if (element.getBoundingClientRect().right > edge + 1) {
      return element.checkVisibility({ visibilityProperty: true, opacityProperty: true }) ? [element] : []
    }
    return /auto|scroll/.test(getComputedStyle(element).overflowX) ? [] : [...element.children].flatMap(wideIn)
  }
  const scrollWidth = document.documentElement.scrollWidth

  return {
    // The theme puts a zero-width space before the link to a heading.
    title: document.querySelector("h1")?.textContent.replace(/\u200B/g, "").trim(),
    diagrams: all(".diagram > svg").length,
    images: images.length,
    problems: [
      ...(document.querySelector("#app")?.__vue_app__ === undefined ? ["script: VitePress does not take over"] : []),
      ...all("pre.diagram, .language-mermaid").map(() => "diagram: not drawn"),
      ...all(".diagram > svg").filter((svg) => width(svg) < 50 || svg.querySelector(".error-icon") !== null)
        .map(({ id }) => `diagram: ${id} shows nothing`),
      ...images.filter((image) => image.naturalWidth === 0 || width(image) === 0)
        .map((image) => `image: ${image.getAttribute("src")} has no width`),
      ...all(".main, .VPNav").flatMap(wideIn).map(({ className, localName, textContent }) =>
        `overflow: <${localName} class="${className}"> at ${edge} pixels: ${textContent.trim().slice(0, 60)}`
      ),
      ...(scrollWidth > edge ? [`overflow: the page is ${scrollWidth} pixels wide at ${edge}`] : [])
    ]
  }
}

/** Navigates from one page to another. The heading of the first stays until then. */
const go = async (tab, { source }, click) => {
  await tab.page.locator("h1").evaluate((heading) => heading.toggleAttribute("data-old", true))
  await click()
  await tab.page.waitForSelector("h1:not([data-old])")
  await inspect(tab, source)
}

const follow = (tab, page) =>
  go(tab, page, () => tab.page.locator(`.VPSidebar a[href="${page.path}"]`).evaluate((link) => link.click()))

/** Switches between light and dark, which redraws the diagrams. */
const switchColours = async ({ page, say }, { source: { diagrams } }) => {
  const ground = () => getComputedStyle(document.body).backgroundColor
  const before = await page.evaluate(ground)
  await page.locator(".diagram > svg").evaluateAll((all) => all.forEach((svg) => svg.toggleAttribute("data-old", true)))
  await page.locator(".VPSwitchAppearance").first().click()
  await page.locator(".diagram > svg:not([data-old])").nth(diagrams - 1).waitFor()
    .catch(() => say("dark: not all diagrams are redrawn"))
  if (await page.evaluate(ground) === before) say("dark: the page keeps its colours")
}

/** Searches for each page by its title, then opens the last one. */
const search = async (tab, sought) => {
  const words = tab.page.locator(".VPLocalSearchBox input")
  const resultOf = ({ path }) => tab.page.locator(`.result[href="${path}"], .result[href^="${path}#"]`).first()
  await tab.page.click(".VPNavBarSearch button")
  for (const page of sought) {
    // A result for the previous words proves nothing.
    if (await resultOf(page).count() > 0) await words.fill("")
    await resultOf(page).waitFor({ state: "detached" })
    await words.fill(page.source.title)
    const isFound = await resultOf(page).waitFor().then(() => true, () => false)
    if (!isFound) return tab.say(`search: "${page.source.title}" does not find ${page.path}`)
  }
  await go(tab, sought.at(-1), () => resultOf(sought.at(-1)).click())
}

/** `sought` has words and paths. Adjacent paths differ, so that an old result is not taken for a new one. */
const searchFirst = async ({ page, say }, sought) => {
  await page.click(".VPNavBarSearch button")
  for (const [words, path] of sought) {
    await page.locator(".VPLocalSearchBox input").fill(words)
    await page.locator(`.results > li:first-child > .result[href^="${path}"]`).waitFor()
      .catch(() => say(`search: "${words}" does not find ${path} first`))
  }
  await page.keyboard.press("Escape")
}

/** On a phone, a button opens the list of pages. */
const openMenu = async ({ page, say }, listed) => {
  await page.click(".VPLocalNav .menu")
  await page.locator(".VPSidebar.open").waitFor()
  for (const { path } of listed) {
    const count = await page.locator(`.VPSidebar a[href="${path}"]`).count()
    if (count !== 1) say(`menu: lists ${path} ${count} times`)
  }
}

const svg = "data:image/svg+xml,<svg xmlns='http://www.w3.org/2000/svg'/>"

/** Problems that the check must find, as a positive control, each with its cause in a page. */
const faults = {
  "console: logged": `<script>console.error("logged")</script>`,
  "exception: thrown": `<script>setTimeout(() => { throw new Error("thrown") })</script>`,
  "failed: 404 of": `<script src="missing.js"></script>`,
  "failed: net::ERR_NAME_NOT_RESOLVED of https://a.example/": `<script src="https://a.example/"></script>`,
  "foreign: https://b.example/": `<link rel="stylesheet" href="https://b.example/">`,
  "script: VitePress does not take over": "",
  "title: \"Faults\" in place of \"Title\"": "<h1>Faults</h1>",
  "images: \"2\" in place of \"3\"": `<img width="9" src="data:image/svg+xml,a">`,
  "image: data:image/svg+xml,a has no width": "",
  [`image: ${svg} has no width`]: `<img width="0" src="${svg}">`,
  "diagram: not drawn": `<pre class="diagram"></pre>`,
  "diagram: small shows nothing": `<div class="diagram"><svg id="small" width="9"></svg></div>`,
  "diagram: error shows nothing": `<div class="diagram"><svg id="error"><g class="error-icon"/></svg></div>`,
  "overflow: <p class=\"cut\">": `<div style="overflow: hidden"><p class="cut" style="width: 500px">a</p></div>`,
  "overflow: the page is": `</main><p style="width: 500px">a</p>`
}

const faultyPage = `<!doctype html><meta name="viewport" content="width=device-width"><link rel="icon" href="data:,">` +
  `<main class="main">${Object.values(faults).join("")}`

/** The faults that are not among the problems of the faulty page. */
const missedFaults = (problems) =>
  Object.keys(faults).filter((fault) => !problems.some((problem) => problem.includes(`: ${fault}`)))
    .map((fault) => `Not found: "${fault}", but\n${problems.join("\n")}`)
