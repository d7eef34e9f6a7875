import { createRequire } from "node:module"
import { join } from "node:path"
import { fileURLToPath } from "node:url"
import { build } from "esbuild"
import { defineConfig } from "vitepress"
import { markdown } from "../markdown.mjs"
import { pages, sidebar, text, title } from "../pages.mjs"

const site = fileURLToPath(new URL("..", import.meta.url))

const icon =
  `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 32 32"><g fill="none" stroke="#3f7cac" stroke-width="4">` +
  `<circle cx="10" cy="16" r="6"/><path d="M16 16h13v6m-6-6v5"/></g></svg>`

const filesFolder = "tools/site/files/"

/** The path of a page on the site: as in the repository, except that a README is the index of its folder. */
const placeOf = (page) => {
  if (!page.startsWith(filesFolder) && !pages.includes(page)) {
    throw new Error(`${page} is in no group of tools/site/pages.mjs.`)
  }
  return page.replace(filesFolder, "").replace(/(^|\/)README\.md$/, "$1index.md")
}

const { version } = JSON.parse(text("packages/core/package.json"))

/** The sources do not name the repository. In a GitHub workflow, the environment does. */
const repository = process.env.GITHUB_REPOSITORY

const mermaid = `assets/mermaid-${
  createRequire(import.meta.url)("mermaid/package.json").version
}`

/**
 * Bundles Mermaid in chunks, so that a page loads only the parts for its diagram. esbuild takes a second; in VitePress'
 * own bundle, Mermaid takes longer than the rest of the site.
 */
const bundleMermaid = (out) =>
  build({
    absWorkingDir: site,
    entryPoints: { mermaid: "mermaid" },
    outdir: join(out, mermaid),
    bundle: true,
    splitting: true,
    format: "esm",
    target: "es2022",
    minify: true,
    logLevel: "error"
  })

/** The browser runs these functions, so they use no other value. Pages for users come before those for maintainers. */
const searchOptions = {
  fuzzy: (term) => (/\d/.test(term) ? false : 0.3),
  boostDocument: (id) =>
    /docs\/(guides|tutorial)\//.test(id)
      ? 2
      : /docs\/evidence\/|tools\/|CHANGELOG|CONTRIBUTING/.test(id)
      ? 0.3
      : 1
}

export default defineConfig({
  title: "store-api",
  description: title("README.md"),
  lang: "en-GB",
  srcDir: "../..",
  srcExclude: ["**/.*/**", "tools/effect4/workspace/**"],
  outDir: "dist",
  cacheDir: "node_modules/.vitepress",
  rewrites: placeOf,
  markdown,
  head: [
    ["link", { rel: "icon", href: `data:image/svg+xml,${encodeURIComponent(icon)}` }],
    // The chosen major, before anything is shown: see theme/index.mjs.
    [
      "script",
      {},
      `document.documentElement.dataset.effect = localStorage.getItem("effect") ?? "4"`
    ]
  ],
  buildEnd: ({ outDir }) => bundleMermaid(outDir),
  themeConfig: {
    mermaid: `/${mermaid}/mermaid.js`,
    search: { provider: "local", options: { miniSearch: { searchOptions } } },
    outline: [2, 3],
    sidebar,
    nav: [
      { text: "Tutorial", link: "/docs/tutorial/" },
      { text: "Recipes", link: "/docs/guides/recipes.html" },
      { text: "Runbook", link: "/docs/guides/runbook.html" },
      { text: "API", link: "/docs/reference/api/" },
      { text: version === "0.0.0" ? "unreleased" : version, link: "/CHANGELOG.html" }
    ],
    ...(repository !== undefined &&
      { socialLinks: [{ icon: "github", link: `https://github.com/${repository}` }] })
  },
  vite: {
    // Ignores a .env at the root, which may hold variables of the service.
    envDir: site
  }
})
