/** The size of our code in an application: bundled, minified and gzipped, without the peers. */
import { fileURLToPath } from "node:url"
import { gzipSync } from "node:zlib"
import { build } from "esbuild"

/** In bytes. */
export interface Size {
  readonly minified: number
  readonly gzipped: number
}

/** Measures a module with this code, whose imports are those of an application. */
export const measureSize = async (
  code: string,
  folder = fileURLToPath(new URL("..", import.meta.url))
): Promise<Size> => {
  const { outputFiles } = await build({
    stdin: { contents: code, resolveDir: folder },
    bundle: true,
    minify: true,
    format: "esm",
    platform: "neutral",
    target: "es2022",
    external: ["effect", "effect/*", "@effect/*"],
    write: false,
    logLevel: "error"
  })
  const bundled = outputFiles[0]?.contents ?? new Uint8Array()
  return { minified: bundled.length, gzipped: bundled.length === 0 ? 0 : gzipSync(bundled, { level: 9 }).length }
}

/** Of the core that is installed for a folder. */
export const measureSizes = async (folder?: string) => ({
  core: await measureSize(`export * from "@store-api/core"`, folder),
  layer: await measureSize(`export { layer } from "@store-api/core/StoreAuth"`, folder),
  provider: await measureSize(`export * from "@store-api/core/AccessTokenProvider"`, folder)
})
