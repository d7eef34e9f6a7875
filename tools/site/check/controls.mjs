/** Positive controls: the check must find the problems of one page, and of a broken site. */
import { follow, openMenu, search, searchFirst, switchColours } from "./browser.mjs"

const svg = "data:image/svg+xml,<svg xmlns='http://www.w3.org/2000/svg'/>"
const wide = (name) => `<p class="${name}" style="width: 500px">a</p>`

/** Each problem of the page, and its cause. */
const faults = {
  "console: logged": `<script>console.error("logged")</script>`,
  "exception: thrown": `<script>setTimeout(() => { throw new Error("thrown") })</script>`,
  "failed: 404 of": `<script src="missing.js"></script>`,
  "failed: net::ERR_NAME_NOT_RESOLVED of https://a.example/": `<script src="https://a.example/"></script>`,
  "foreign: https://b.example/": `<link rel="stylesheet" href="https://b.example/">`,
  "script: VitePress does not take over": "",
  "title: \"Faults\" in place of \"Title\"": "<h1>Faults</h1>",
  "images: \"2\" in place of \"3\"": "",
  "image: data:image/svg+xml,a has no width": `<img width="9" src="data:image/svg+xml,a">`,
  [`image: ${svg} has no width`]: `<img width="0" src="${svg}">`,
  "diagrams: \"2\" in place of \"3\"": "",
  "diagram: not drawn": `<pre class="diagram"></pre>`,
  "diagram: small shows nothing": `<div class="diagram"><svg id="small" width="9"></svg></div>`,
  "diagram: error shows nothing": `<div class="diagram"><svg id="error"><g class="error-icon"/></svg></div>`,
  "overflow: <p class=\"cut\">": `<div style="overflow: hidden">${wide("cut")}</div>`,
  "overflow: the page is": `</main>${wide("outside")}`
}

const faulty = `<!doctype html><meta name="viewport" content="width=device-width"><link rel="icon" href="data:,">` +
  `<main class="main"><div style="overflow: auto">${wide("harmless")}</div>` +
  Object.values(faults).join("")

/** A fake Mermaid that draws `svg`, an expression of `id` and `dark`. */
const mermaid = (svg) =>
  `let dark; export default {
    initialize: ({ theme }) => { dark = theme === "dark" },
    render: (id) => ({ svg: ${svg} })
  }`

const fulfill = (contentType, body) => (route) => route.fulfill({ contentType, body })

/** Returns the faults that the check misses in tabs of a broken site; `inTab` returns the problems of one tab. */
export const controlProblems = async (inTab, { base, desktop, listed, phone }) => {
  const [{ path }, other] = listed
  const drawn = listed.find(({ source }) => source.diagrams > 0)
  const badDiagram = (svg) => ({
    finds: ["dark: not all diagrams are redrawn"],
    path: drawn.path,
    routes: { "**/mermaid.js": fulfill("text/javascript", mermaid(svg)) },
    use: (tab) => switchColours(tab, drawn, 500)
  })
  const controls = [
    {
      finds: Object.keys(faults),
      viewport: phone,
      path: `${base}faults.html`,
      routes: { "**/faults.html": fulfill("text/html", faulty) },
      source: { title: "Title", images: 3, diagrams: 3 },
      timeout: 500
    },
    {
      finds: [`title: "PAGE NOT FOUND" in place of "${other.source.title}"`],
      routes: {
        "**/*.md.*.js": (route) => route.request().url().includes(".lean.") ? route.continue() : route.abort()
      },
      use: (tab) => follow(tab, other)
    },
    {
      finds: [`search: "${other.source.title}" does not find /nowhere`],
      use: (tab) => search(tab, [{ ...other, path: "/nowhere" }], 500)
    },
    {
      finds: ["search: \"serverless\" does not find /nowhere first"],
      use: (tab) => searchFirst(tab, [["serverless", "/nowhere"]], 500)
    },
    {
      finds: ["menu: lists /nowhere 0 times"],
      viewport: phone,
      use: (tab) => openMenu(tab, [{ path: "/nowhere" }])
    },
    badDiagram("`<svg id=\"once\" width=\"100\"/>`"),
    badDiagram("dark ? \"\" : `<svg id=\"${id}\" width=\"100\"/>`")
  ]
  const missed = []
  for (const { finds, viewport = desktop, ...tab } of controls) {
    const problems = await inTab(viewport, { path, ...tab })
    const notFound = finds.filter((find) => !problems.some((problem) => problem.includes(`: ${find}`)))
    const harmless = problems.filter((problem) => problem.includes("harmless"))
    missed.push(...harmless, ...notFound.map((find) => `Not found: "${find}", but\n${problems.join("\n")}`))
  }
  return missed
}
