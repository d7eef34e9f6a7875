/**
 * Builds, then imports every public module of every package by its name, as plain Node would in an application. A package
 * without a door for that is an application itself: each of its commands is run.
 */
import { spawnSync } from "node:child_process"
import { readdirSync, readFileSync } from "node:fs"
import { basename, join } from "node:path"

const build = spawnSync(process.execPath, ["tools/workspace/run.mjs", "build", "tsconfig.build.json"], { stdio: "inherit" })
if (build.status !== 0) process.exit(1)

// Importing the module behind a command would run it.
const isCommand = (file) => file === "bin.ts"

let imported = 0
let commands = 0
for (const folder of readdirSync("packages").map((name) => join("packages", name))) {
  const { bin = {}, exports, name, version } = JSON.parse(readFileSync(join(folder, "package.json"), "utf8"))
  if (exports["."] === undefined) {
    for (const path of Object.values(bin)) {
      const { status, stderr, stdout } = spawnSync(process.execPath, [join(folder, path), "--version"], {
        encoding: "utf8"
      })
      if (status === 0 && stdout.trim() === version) continue
      process.stdout.write(`${name}: ${path} --version ended with ${status}\n${stdout}${stderr}`)
      process.exitCode = 1
    }
    commands += Object.keys(bin).length
    continue
  }
  const modules = readdirSync(join(folder, "src"))
    .filter((file) => file.endsWith(".ts") && !isCommand(file))
    .map((file) => basename(file, ".ts"))
  for (const module of modules) {
    const specifier = module === "index" ? name : `${name}/${module}`
    // A package may import itself by its name; so this stands in the package.
    const code = `import * as all from ${JSON.stringify(specifier)}\nglobalThis.names = Object.keys(all)`
    const { status, stderr } = spawnSync(process.execPath, ["--input-type=module", "--eval", code], {
      cwd: folder,
      encoding: "utf8"
    })
    if (status !== 0) {
      process.stdout.write(`${specifier}\n${stderr}`)
      process.exitCode = 1
    }
    imported++
  }
}
process.stdout.write(`${imported} modules, ${commands} commands\n`)
if (imported < 20 || commands < 1) process.exitCode = 1
