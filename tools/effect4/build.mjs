/** Generates, compiles and packs the packages of the Effect 4 line. */
import { spawnSync } from "node:child_process"
import { mkdirSync } from "node:fs"
import { join } from "node:path"
import { checked as checkedPackages, unpacked } from "../release/packages.mjs"
import { binaryOf } from "../runtimes/binaries.mjs"
import { install, pnpm, tool } from "../workspace/workspace.mjs"
import { generate, line, packages } from "./generate.mjs"
import { effect4 } from "./manifest.mjs"

const folder = "tools/effect4/line"

/** The path of a Node on which Effect 4's tests run: this one, or else one from npm. */
export const nodeOf = () => {
  const [major, minor] = process.versions.node.split(".").map(Number)
  return major > 22 || (major === 22 && minor >= 19) ? process.execPath : binaryOf("node24")
}

/**
 * Exits with code 1 if a source cannot be generated or compiled. `checked` also checks the types of tests and examples.
 *
 * @param {{ checked?: boolean, repository?: string }} options
 */
export const buildLine = async ({ checked = false, repository }) => {
  install(folder)
  const problems = await generate(repository)
  for (const problem of problems) process.stderr.write(`${problem}\n`)
  if (problems.length > 0) process.exit(1)
  const sources = packages.map((name) => `${folder}/packages/${name}/tsconfig.src.json`)
  tool("tsc", ["-b", ...sources, ...checked ? [`${folder}/packages`] : []])
}

/** Packs all packages into a folder, and checks the tarballs as those of the Effect 3 line are checked. */
export const packLine = (out, repository) => {
  mkdirSync(out, { recursive: true })
  const tarballs = packages.map((name) => {
    const { status, stderr, stdout } = spawnSync("npm", ["pack", "--json", "--pack-destination", out], {
      cwd: join(line, "packages", name),
      encoding: "utf8",
      shell: process.platform === "win32"
    })
    if (status !== 0) throw new Error(`npm pack failed\n${stdout}${stderr}`)
    return unpacked(join(out, JSON.parse(stdout)[0].filename))
  })
  return checkedPackages(tarballs, repository, effect4)
}
