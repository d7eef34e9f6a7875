/**
 * `npm run size`: compares the bundle sizes of typical imports with `size-budget.json`. With `-- --update` it writes
 * that file: the measured sizes and 5 % more.
 */
import "../workspace/require-node.mjs"
import { cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { build, install, root, takesOnly } from "../workspace/workspace.mjs"

takesOnly("--update")
install()
build("tools/benchmarks")
const { measureSize } = await import("./dist/size.js")

const core = "@store-api/core"
const imports = {
  "nothing of it": `import "${core}"`,
  "AccessTokenProvider and TokenSource":
    `export * from "${core}/AccessTokenProvider"\nexport * as TokenSource from "${core}/TokenSource"`,
  "StoreAuth.layer": `export { layer } from "${core}/StoreAuth"`,
  "SharedTokenSource and TokenStore":
    `export * from "${core}/SharedTokenSource"\nexport * as TokenStore from "${core}/TokenStore"`,
  "whole core": `export * from "${core}"`
}

/** The limit of docs/evidence/benchmarks.md. No update of the budget exceeds it. */
const mostOfWholeCore = 14_000

const budgetFile = join(root, "tools", "benchmarks", "size-budget.json")

const fail = (message) => {
  process.stdout.write(`${message}\n`)
  process.exitCode = 1
}

const measured = {}
for (const [what, code] of Object.entries(imports)) measured[what] = (await measureSize(code)).gzipped

const budgetFor = ([what, bytes]) => {
  const roomy = Math.ceil(bytes * 1.05)
  const kept = what === "whole core" && bytes <= mostOfWholeCore
  return [what, kept ? Math.min(roomy, mostOfWholeCore) : roomy]
}
if (process.argv.includes("--update")) {
  const budget = Object.fromEntries(Object.entries(measured).map(budgetFor))
  writeFileSync(budgetFile, `${JSON.stringify(budget, null, 2)}\n`)
}

const budget = JSON.parse(readFileSync(budgetFile, "utf8"))
const names = Object.keys(imports)
if (JSON.stringify(Object.keys(budget)) !== JSON.stringify(names)) {
  fail(`size-budget.json must have these names: ${names.join("; ")}`)
}
for (const [what, bytes] of Object.entries(measured)) {
  const limit = budget[what]
  process.stdout.write(`${what}: ${bytes} bytes of at most ${limit}\n`)
  if (!(bytes <= limit)) fail(`${what}: too large`)
}
if (budget["whole core"] > mostOfWholeCore) {
  process.stdout.write(`whole core: above the limit of docs/evidence/benchmarks.md, ${mostOfWholeCore} bytes\n`)
}

/**
 * Controls. The bundler drops unused modules because the package declares no side effects. A copy without that
 * declaration, or with a module that has a side effect, must not be empty.
 */
const work = mkdtempSync(join(root, "node_modules", ".size-"))
process.on("exit", () => rmSync(work, { recursive: true }))

const copyOfCore = (name, change) => {
  const folder = join(work, "node_modules", name)
  mkdirSync(folder, { recursive: true })
  cpSync(join(root, "packages", "core", "dist"), join(folder, "dist"), { recursive: true })
  const manifest = JSON.parse(readFileSync(join(root, "packages", "core", "package.json"), "utf8"))
  writeFileSync(join(folder, "package.json"), JSON.stringify(change(folder, { ...manifest, name })))
  return measureSize(`import "${name}"`, work)
}

const silent = await copyOfCore("silent-copy", (_, manifest) => manifest)
const undeclared = await copyOfCore("undeclared-copy", (_, { sideEffects: _dropped, ...manifest }) => manifest)
const effectful = await copyOfCore("effectful-copy", (folder, manifest) => {
  const index = join(folder, "dist", "index.js")
  writeFileSync(index, `${readFileSync(index, "utf8")}\nglobalThis.storeApi = "here"\n`)
  return { ...manifest, sideEffects: ["./dist/index.js"] }
})

if (silent.gzipped !== 0) fail("The bundler keeps an unused copy of core, so the controls prove nothing.")
if (undeclared.gzipped === 0) fail("The bundler drops core even without sideEffects in its manifest.")
if (effectful.gzipped === 0) fail("The bundler drops a module with a side effect.")
process.stdout.write(
  `controls: ${undeclared.gzipped} bytes without sideEffects, ${effectful.gzipped} bytes of a module with a side effect\n`
)
