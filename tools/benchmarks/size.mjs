/** `npm run size`: compares the bundle sizes of typical imports with their limits. */
import "../workspace/require-node.mjs"
import { cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { build, install, root, takesOnly } from "../workspace/workspace.mjs"

takesOnly()
install()
build("tools/benchmarks")
const { measureSize } = await import("./dist/size.js")

const core = "@store-api/core"

/** The limits, in bytes after minification and gzip, are 5 % above the size when they were set. */
const imports = [
  { what: "nothing of it", code: `import "${core}"`, limit: 0 },
  {
    what: "AccessTokenProvider and TokenSource",
    code: `export * from "${core}/AccessTokenProvider"\nexport * as TokenSource from "${core}/TokenSource"`,
    limit: 7070
  },
  { what: "StoreAuth.layer", code: `export { layer } from "${core}/StoreAuth"`, limit: 14_560 },
  {
    what: "SharedTokenSource and TokenStore",
    code: `export * from "${core}/SharedTokenSource"\nexport * as TokenStore from "${core}/TokenStore"`,
    limit: 4870
  },
  { what: "whole core", code: `export * from "${core}"`, limit: 18_500 }
]

const print = (message) => process.stdout.write(`${message}\n`)

const fail = (message) => {
  print(message)
  process.exitCode = 1
}

for (const { code, limit, what } of imports) {
  const { gzipped } = await measureSize(code)
  print(`${what}: ${gzipped} bytes of at most ${limit}`)
  if (!(gzipped <= limit)) fail(`${what}: too large`)
}

/**
 * Controls. The bundler drops unused modules because the package declares no side effects. A copy without that
 * declaration, or with a module that has a side effect, must not be empty.
 */
const work = mkdtempSync(join(root, "node_modules", ".size-"))
process.on("exit", () => rmSync(work, { recursive: true }))

const sizeOfCopy = async (name, change) => {
  const folder = join(work, "node_modules", name)
  mkdirSync(folder, { recursive: true })
  cpSync(join(root, "packages", "core", "dist"), join(folder, "dist"), { recursive: true })
  const manifest = JSON.parse(readFileSync(join(root, "packages", "core", "package.json"), "utf8"))
  writeFileSync(join(folder, "package.json"), JSON.stringify(change(folder, { ...manifest, name })))
  return (await measureSize(`import "${name}"`, work)).gzipped
}

const silent = await sizeOfCopy("silent-copy", (_, manifest) => manifest)
const undeclared = await sizeOfCopy("undeclared-copy", (_, { sideEffects: _dropped, ...manifest }) => manifest)
const effectful = await sizeOfCopy("effectful-copy", (folder, manifest) => {
  const index = join(folder, "dist", "index.js")
  writeFileSync(index, `${readFileSync(index, "utf8")}\nglobalThis.storeApi = "here"\n`)
  return { ...manifest, sideEffects: ["./dist/index.js"] }
})

if (silent !== 0) fail("The bundler keeps an unused copy of core, so the controls prove nothing.")
if (undeclared === 0) fail("The bundler drops core even without sideEffects in its manifest.")
if (effectful === 0) fail("The bundler drops a module with a side effect.")
print(`controls: ${undeclared} bytes without sideEffects, ${effectful} bytes of a module with a side effect`)
