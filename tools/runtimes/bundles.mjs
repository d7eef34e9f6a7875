/**
 * Builds the contract as an application with installed packages. Node, Bun and Deno import the built packages from its
 * folder; workerd gets one module that contains everything.
 */
import { copyFileSync, mkdirSync, mkdtempSync, realpathSync, rmSync, symlinkSync } from "node:fs"
import { builtinModules } from "node:module"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { build } from "esbuild"
import { root } from "../workspace/workspace.mjs"

const source = (path) => join(root, "tools", "runtimes", "src", path)

const options = {
  bundle: true,
  format: "esm",
  platform: "neutral",
  target: "es2022",
  logLevel: "silent",
  // Without the paths of tsconfig.json, which lead to the packages' sources.
  tsconfigRaw: {}
}

/** Options for bundles that include the packages. */
const whole = (folder) => ({
  ...options,
  nodePaths: [join(folder, "node_modules")],
  conditions: ["workerd", "worker", "import"],
  mainFields: ["module", "main"]
})

const link = (folder, name, target) => {
  const path = join(folder, "node_modules", name)
  mkdirSync(join(path, ".."), { recursive: true })
  symlinkSync(realpathSync(join(root, target)), path)
}

const nodeImports = async (folder, contents) => {
  const external = builtinModules.flatMap((name) => [name, `node:${name}`])
  const { metafile } = await build({
    ...whole(folder),
    stdin: { contents, resolveDir: folder },
    external,
    metafile: true,
    write: false
  })
  const inputs = Object.values(metafile.inputs)
  const found = inputs.flatMap(({ imports }) => imports).filter(({ external }) => external).map(({ path }) => path)
  return { modules: inputs.length, found }
}

/** The Node modules that core and its dependencies import, with a positive control. */
const nodeInCore = async (folder) => {
  const core = `export * from "@store-api/core"\nexport * from "@effect/platform/FetchHttpClient"`
  const control = await nodeImports(folder, `${core}\nimport "node:fs"\nimport "crypto"`)
  const { found, modules } = await nodeImports(folder, core)
  const blind = control.found.length !== found.length + 2 || modules < 50
  return blind ? ["nothing would be found"] : found
}

/** Runs `use` with the folder, and removes it afterwards, even if this process gets a signal. */
export const withBundles = async (use) => {
  const folder = mkdtempSync(join(tmpdir(), "runtimes-"))
  process.once("exit", () => rmSync(folder, { recursive: true, force: true }))
  for (const name of ["effect", "@effect/platform"]) link(folder, name, join("packages/core/node_modules", name))
  for (const name of ["core", "emulator"]) link(folder, `@store-api/${name}`, join("packages", name))
  const found = await nodeInCore(folder)
  if (found.length > 0) throw new Error(`core imports Node modules: ${found.join(", ")}`)
  process.stdout.write("core and all that it imports take nothing from Node.\n")
  await build({
    ...options,
    entryPoints: [source("main.ts"), source("laboratoryServer.ts")],
    packages: "external",
    outdir: folder,
    outExtension: { ".js": ".mjs" }
  })
  await build({ ...whole(folder), entryPoints: [source("workerd/worker.ts")], outfile: join(folder, "worker.mjs") })
  copyFileSync(join(root, "tools", "runtimes", "workerd.capnp"), join(folder, "workerd.capnp"))
  return use(folder)
}
