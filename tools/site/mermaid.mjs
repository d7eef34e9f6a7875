/**
 * Mermaid as files of the site, in pieces, so that a page loads what its diagram needs. By esbuild, in a second: the same as
 * a part of VitePress' own bundle takes longer than all the rest of the site.
 */
import { readFileSync } from "node:fs"
import { createRequire } from "node:module"
import { dirname, join } from "node:path"
import { fileURLToPath } from "node:url"
import { build } from "esbuild"

const main = createRequire(import.meta.url).resolve("mermaid")
const { version } = JSON.parse(readFileSync(join(dirname(main), "..", "package.json"), "utf8"))

const folder = `assets/mermaid-${version}`

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
