/**
 * `npm run release`: packs and checks the packages for both majors of Effect, and writes into the folder what
 * `publish.mjs` publishes from it. It needs all tools, and so has no identity. With `--dry-run` it takes any version.
 */
import "../workspace/require-node.mjs"
import { writeFileSync } from "node:fs"
import { basename, join } from "node:path"
import { build, install, parsed } from "../workspace/workspace.mjs"

const usage = "npm run release -- --out FOLDER [--dry-run]"
const { values: { "dry-run": dry, out } } = parsed(usage, {
  options: { "dry-run": { type: "boolean", default: false }, out: { type: "string" } }
})

const refuse = (reason) => {
  process.stderr.write(`Nothing was packed: ${reason}\n`)
  process.exit(1)
}

const { GITHUB_REPOSITORY } = process.env
if (!GITHUB_REPOSITORY) {
  refuse("GITHUB_REPOSITORY does not name the repository of the packages.")
}
if (out === undefined) refuse("--out names no folder for the packages.")

install()
build()
const { checked, pack, packEffect4 } = await import("./packages.mjs")
const { majorProblems, publications } = await import("./rules.mjs")
const { buildEffect4 } = await import("../effect4/generate.mjs")

buildEffect4({ repository: GITHUB_REPOSITORY })
const effect3 = await checked(pack(out, GITHUB_REPOSITORY), GITHUB_REPOSITORY)
const effect4 = await packEffect4(out, GITHUB_REPOSITORY)
const { version } = effect3.packages[0]
if (!dry && version === "0.0.0") refuse("0.0.0 is not a release: add a changeset.")

const problems = [...effect3.problems, ...effect4.problems]
if (!dry) problems.push(...majorProblems(version, effect4.packages[0].version))
if (problems.length > 0) refuse(problems.join("\n"))

const packages = publications(effect3.packages, effect4.packages)
  .map(({ name, tag, tarball, version }) => ({ name, version, tag, file: basename(tarball) }))
writeFileSync(join(out, "release.json"), JSON.stringify({ version, packages }, undefined, 2))
process.stdout.write(`${packages.length} packages are in ${out}\n`)
