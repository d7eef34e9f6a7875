import { fileURLToPath } from "node:url"
import { defineConfig } from "vitepress"
import { markdown } from "../markdown.mjs"
import { bundleMermaid, mermaidAddress } from "../mermaid.mjs"
import { address, linkedFiles, nameOf, otherMarkdown, pages, placeOf, placeOfFile, sidebar, title } from "../pages.mjs"

const site = fileURLToPath(new URL("..", import.meta.url))

const places = Object.fromEntries([
  ...pages().map((page) => [page, placeOf(page)]),
  ...linkedFiles().map((path) => [`tools/site/${placeOfFile(path)}`, placeOfFile(path)])
])

const icon =
  `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 32 32"><g fill="none" stroke="#3f7cac" stroke-width="4">` +
  `<circle cx="10" cy="16" r="6"/><path d="M16 16h13v6m-6-6v5"/></g></svg>`

export default defineConfig({
  title: "store-api",
  description: title("README.md"),
  lang: "en-GB",
  srcDir: "../..",
  srcExclude: [...otherMarkdown(), "**/.*/**"],
  outDir: "dist",
  cacheDir: "node_modules/.vitepress",
  rewrites: places,
  markdown,
  head: [["link", { rel: "icon", href: `data:image/svg+xml,${encodeURIComponent(icon)}` }]],
  buildEnd: ({ outDir }) => bundleMermaid(outDir),
  themeConfig: {
    mermaid: mermaidAddress,
    search: { provider: "local" },
    outline: [2, 3],
    sidebar: sidebar(),
    nav: ["README.md", "docs/recipes.md", "docs/reference/README.md"].map((page) => ({
      text: nameOf(page),
      link: address(page)
    }))
  },
  vite: {
    // Variables of the service may be in a .env at the root; none is for the site.
    envDir: site
  }
})
