/** Pages with one thing wrong each: what a check must find, and one page on which there is nothing to find. */

const page = ({ after = "", body, head = "" }) =>
  `<!doctype html><html lang="en"><head><meta name="viewport" content="width=device-width">` +
  `<link rel="icon" href="data:,">${head}</head><body><main><h1>Control</h1>${body}</main>${after}</body></html>`

const row = `<tr>${"<td>a-cell-that-cannot-be-broken</td>".repeat(9)}</tr>`
const svg = (content, width = 100) => `<svg id="drawn" width="${width}" height="100">${content}</svg>`

/** `finds` are the kinds of problems that are found; `expects` is what `inspect` is told to expect there. */
export const controls = {
  "nothing": {
    body:
      `<a href="control-nothing.html#here">a</a><p id="here">b</p><div style="overflow-x: auto"><table>${row}</table></div>` +
      `<div class="diagram">${
        svg("")
      }</div><img alt="" src="data:image/svg+xml,%3Csvg xmlns='http://www.w3.org/2000/svg'/%3E">`,
    expects: { diagrams: 1, images: 1, title: "Control" },
    finds: []
  },
  "a link to nothing": { body: `<a href="control-nowhere.html">a</a>`, finds: ["link"] },
  "a link out of the base": { body: `<a href="/elsewhere.html">a</a>`, finds: ["link"] },
  "a link without https": { body: `<a href="http://store.example/">a</a>`, finds: ["link"] },
  "an anchor that is not there": { body: `<a href="control-nothing.html#there">a</a>`, finds: ["anchor"] },
  "an anchor of its own that is not there": { body: `<a href="#there">a</a>`, finds: ["anchor"] },
  "an error in the console": { body: `<script>console.error("broken")</script>`, finds: ["console"] },
  "an exception": { body: `<script>setTimeout(() => { throw new Error("broken") })</script>`, finds: ["exception"] },
  "a script that is not there": { body: `<script src="control.js"></script>`, finds: ["console", "failed"] },
  "a request to another host": {
    body: `<script src="https://cdn.store.example/a.js"></script>`,
    finds: ["console", "failed", "foreign"]
  },
  "a font of another host": {
    body: `<p style="font-family: other">a</p>`,
    head: `<style>@font-face { font-family: other; src: url("https://fonts.store.example/a.woff2") }</style>`,
    finds: ["console", "failed", "foreign"]
  },
  "a table that is too wide": { body: `<table>${row}</table>`, finds: ["overflow"] },
  "a table that is cut off": { body: `<div style="overflow: hidden"><table>${row}</table></div>`, finds: ["overflow"] },
  "a page that is too wide": { body: "", after: `<div style="width: 500px">a</div>`, finds: ["overflow"] },
  "an image that cannot be read": {
    body: `<img alt="a plot" width="100" height="50" src="data:image/svg+xml,a">`,
    finds: ["image"]
  },
  "an image without a width": {
    body: `<img alt="" width="0" src="data:image/svg+xml,%3Csvg xmlns='http://www.w3.org/2000/svg'/%3E">`,
    finds: ["image"]
  },
  "an image that is left out": { body: "", expects: { images: 1 }, finds: ["image"] },
  "a diagram that was not drawn": {
    body: `<pre class="diagram">stateDiagram-v2</pre>`,
    expects: { diagrams: 1 },
    finds: ["diagram"]
  },
  "a diagram of an error": {
    body: `<div class="diagram">${svg(`<path class="error-icon"/>`)}</div>`,
    expects: { diagrams: 1 },
    finds: ["diagram"]
  },
  "an empty diagram": {
    body: `<div class="diagram">${svg("", 4)}</div>`,
    expects: { diagrams: 1 },
    finds: ["diagram"]
  },
  "another page": { body: "", expects: { title: "A control" }, finds: ["title"] },
  "a page without life": { body: `<div id="app"></div>`, expects: { alive: true, patience: 200 }, finds: ["script"] }
}

const nameOf = (control) => `control-${control.replaceAll(" ", "-")}.html`

/** The controls as files beside the site's. */
export const controlPages = Object.fromEntries(
  Object.entries(controls).map(([control, parts]) => [nameOf(control), page(parts)])
)

export const addressOf = (control, base) => base + nameOf(control)
