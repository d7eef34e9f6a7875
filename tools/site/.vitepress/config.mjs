import { fileURLToPath } from "node:url"
import { defineConfig } from "vitepress"
import { markdown } from "../markdown.mjs"
import { bundleMermaid, mermaidAddress } from "../mermaid.mjs"
import { pages, sidebar, title } from "../pages.mjs"

const site = fileURLToPath(new URL("..", import.meta.url))

const icon =
  `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 32 32"><g fill="none" stroke="#3f7cac" stroke-width="4">` +
  `<circle cx="10" cy="16" r="6"/><path d="M16 16h13v6m-6-6v5"/></g></svg>`

const filesFolder = "tools/site/files/"

/** Where a page is on the site: as in the repository, except that a README is the index of its folder. */
const placeOf = (page) => {
  if (!page.startsWith(filesFolder) && !pages.includes(page)) {
    throw new Error(`${page} is in no group of tools/site/pages.mjs.`)
  }
  return page.replace(filesFolder, "").replace(/(^|\/)README\.md$/, "$1index.md")
}

export default defineConfig({
  title: "store-api",
  description: title("README.md"),
  lang: "en-GB",
  srcDir: "../..",
  srcExclude: ["**/.*/**"],
  outDir: "dist",
  cacheDir: "node_modules/.vitepress",
  rewrites: placeOf,
  markdown,
  head: [["link", { rel: "icon", href: `data:image/svg+xml,${encodeURIComponent(icon)}` }]],
  buildEnd: ({ outDir }) => bundleMermaid(outDir),
  themeConfig: {
    mermaid: mermaidAddress,
    search: { provider: "local" },
    outline: [2, 3],
    sidebar,
    nav: [
      { text: "Overview", link: "/" },
      { text: "Recipes", link: "/docs/guides/recipes.html" },
      { text: "Reference", link: "/docs/reference/api/" }
    ]
  },
  vite: {
    // Variables of the service may be in a .env at the root; none is for the site.
    envDir: site
  }
})
