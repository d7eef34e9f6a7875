/** Packs the packages of the Effect 4 line, and checks the tarballs as those of the other line are checked. */
import { spawnSync } from "node:child_process"
import { mkdirSync, readFileSync } from "node:fs"
import { join } from "node:path"
import { createPackageFromTarballData } from "@arethetypeswrong/core"
import { attwProblems, publintProblems } from "../release/packages.mjs"
import { line, packages } from "./generate.mjs"

const packed = (name, out) => {
  const { status, stderr, stdout } = spawnSync("npm", ["pack", "--json", "--pack-destination", out], {
    cwd: join(line, "packages", name),
    encoding: "utf8",
    shell: process.platform === "win32"
  })
  if (status !== 0) throw new Error(`npm pack failed\n${stdout}${stderr}`)
  return JSON.parse(stdout)[0].filename
}

/** Packs all packages into a folder. Returns the paths of the tarballs and what is wrong with them. */
export const pack = async (out) => {
  mkdirSync(out, { recursive: true })
  const problems = []
  const tarballs = []
  for (const name of packages) {
    const filename = packed(name, out)
    const tarball = createPackageFromTarballData(readFileSync(join(out, filename)))
    const prefix = `/node_modules/${tarball.packageName}/`
    const files = new Map(tarball.listFiles().map((path) => [path.slice(prefix.length), tarball.readFile(path)]))
    problems.push(...await publintProblems(files), ...await attwProblems(files))
    tarballs.push(join(out, filename))
    process.stdout.write(`${join(out, filename)}: ${files.size} files\n`)
  }
  return { problems, tarballs }
}
