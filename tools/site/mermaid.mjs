/**
 * Bundles Mermaid in chunks, so that a page loads only the parts for its diagram. esbuild takes a second; in VitePress'
 * own bundle, Mermaid takes longer than the rest of the site.
 */
import { createRequire } from "node:module"
import { join } from "node:path"
import { fileURLToPath } from "node:url"
import { build } from "esbuild"

const folder = `assets/mermaid-${createRequire(import.meta.url)("mermaid/package.json").version}`

/** The address of the module, below the base. */
export const mermaidAddress = `/${folder}/mermaid.js`

export const bundleMermaid = (out) =>
  build({
    absWorkingDir: fileURLToPath(new URL(".", import.meta.url)),
    entryPoints: { mermaid: "mermaid" },
    outdir: join(out, folder),
    bundle: true,
    splitting: true,
    format: "esm",
    target: "es2022",
    minify: true,
    logLevel: "error"
  })
