/** The size of our code in an application: bundled, minified and gzipped, without the peers. */
import { readFileSync } from "node:fs"
import { fileURLToPath } from "node:url"
import { gzipSync } from "node:zlib"
import { build } from "esbuild"

/** Measures, in bytes, a module with this code, whose imports are those of an application in a folder. */
export const measureSize = async (
  code: string,
  folder = fileURLToPath(new URL("..", import.meta.url))
) => {
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
  return {
    minified: bundled.length,
    gzipped: bundled.length === 0 ? 0 : gzipSync(bundled, { level: 9 }).length
  }
}

/** Of the core that is installed for a folder. */
export const measureSizes = async (folder?: string) => ({
  core: await measureSize(`export * from "@store-api/core"`, folder),
  layer: await measureSize(`export { layer } from "@store-api/core/StoreAuth"`, folder),
  provider: await measureSize(`export * from "@store-api/core/AccessTokenProvider"`, folder)
})

const core = "@store-api/core"

/** The limits, in bytes after minification and gzip, are a little above the size when they were set. */
const limits = [
  ["nothing of it", 0, `import "${core}"`],
  [
    "AccessTokenProvider and TokenSource",
    7490,
    `export * from "${core}/AccessTokenProvider"\nexport * as TokenSource from "${core}/TokenSource"`
  ],
  ["StoreAuth.layer", 17_090, `export { layer } from "${core}/StoreAuth"`],
  [
    "SharedTokenSource and TokenStore",
    6180,
    `export * from "${core}/SharedTokenSource"\nexport * as TokenStore from "${core}/TokenStore"`
  ],
  ["whole core", 23_440, `export * from "${core}"`]
] as const

/** The bundles of the commands, with all that they need. */
const commands = [
  ["cli/dist/store-api.mjs", 413_200],
  ["emulator/dist/store-api-emulator.mjs", 197_000]
] as const

/** `npm run size`: compares the sizes of typical imports and of the commands with their limits. */
export const checkSizes = async (): Promise<void> => {
  const imports = await Promise.all(
    limits.map(async ([what, limit, code]) =>
      [what, limit, (await measureSize(code)).gzipped] as const
    )
  )
  const bundles = commands.map(([path, limit]) => {
    const file = readFileSync(new URL(`../../../packages/${path}`, import.meta.url))
    return [path, limit, gzipSync(file, { level: 9 }).length] as const
  })
  for (const [what, limit, gzipped] of [...imports, ...bundles]) {
    process.stdout.write(
      `${what}: ${gzipped} bytes of at most ${limit}${gzipped <= limit ? "" : ": TOO LARGE"}\n`
    )
    if (!(gzipped <= limit)) process.exitCode = 1
  }
}
