/** How much code of ours an application carries: core's dist, minified and gzipped, its peers left out. */
import { fileURLToPath } from "node:url"
import { gzipSync } from "node:zlib"
import { build } from "esbuild"

/** In bytes. */
export interface Size {
  readonly minified: number
  readonly gzipped: number
}

const measureSize = async (specifier: string): Promise<Size> => {
  const { outputFiles } = await build({
    entryPoints: [fileURLToPath(import.meta.resolve(specifier))],
    bundle: true,
    minify: true,
    format: "esm",
    platform: "neutral",
    target: "es2022",
    external: ["effect", "effect/*", "@effect/*"],
    write: false,
    logLevel: "error"
  })
  const code = outputFiles[0]?.contents ?? new Uint8Array()
  return { minified: code.length, gzipped: gzipSync(code, { level: 9 }).length }
}

export const measureSizes = async (): Promise<Readonly<Record<"core" | "provider", Size>>> => ({
  core: await measureSize("@store-api/core"),
  provider: await measureSize("@store-api/core/AccessTokenProvider")
})
