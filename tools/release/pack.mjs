/**
 * `npm run packages`: builds and packs every package that is not private, and looks at each tarball as npm would get it.
 *
 *   node tools/release/pack.mjs [--out FOLDER] [--repository OWNER/NAME] [--own-rules] [TARBALL…]
 *
 * With `--out` the tarballs stay there. With `--repository` they must say that they come from it, as in a release,
 * and those packed here do. Given
 * tarballs are looked at as they are; with `--own-rules` without publint and attw, which take a second each.
 */
import "../workspace/require-node.mjs"
import { mkdirSync, mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { basename, join, resolve } from "node:path"
import { parseArgs } from "node:util"
import { build, install } from "../workspace/workspace.mjs"

const { positionals, values } = parseArgs({
  allowPositionals: true,
  options: { out: { type: "string" }, repository: { type: "string" }, "own-rules": { type: "boolean" } }
})

install()
const { pack, publishedFolders, unpack } = await import("./packages.mjs")
const { problemsOf, publicModules, readPackage } = await import("./rules.mjs")
const { attwProblems, publintProblems } = await import("./judges.mjs")
const { namingRepository, repositoryOf } = await import("./repository.mjs")

const work = mkdtempSync(join(tmpdir(), "packages-"))
process.on("exit", () => rmSync(work, { recursive: true }))

const expected = values.repository === undefined ? undefined : repositoryOf(values.repository)

const packAll = () => {
  build("tsconfig.build.json")
  const destination = resolve(values.out ?? work)
  mkdirSync(destination, { recursive: true })
  return publishedFolders().map((folder) => {
    const packed = () => pack(folder, destination)
    return expected === undefined ? packed() : namingRepository(folder, expected, packed)
  })
}

const tarballs = positionals.length > 0 ? positionals.map((path) => resolve(path)) : packAll()

const versions = new Set()
for (const tarball of tarballs) {
  const unpacked = readPackage(unpack(tarball, work))
  const { files, manifest } = unpacked
  versions.add(manifest.version)
  const modules = publicModules(unpacked)
  const problems = problemsOf(unpacked, { expected })
  if (values["own-rules"] !== true) {
    problems.push(...await publintProblems(tarball, unpacked), ...attwProblems(tarball, modules))
  }
  for (const problem of problems) process.stdout.write(`${basename(tarball)}: ${problem}\n`)
  if (problems.length > 0) process.exitCode = 1
  else {
    const seen = `${files.length} files, ${modules.length} public modules`
    process.stdout.write(`${manifest.name} ${manifest.version}: ${seen}\n`)
  }
}

if (versions.size !== 1) {
  process.stdout.write(`The packages are of different versions, or there are none: ${[...versions].join(", ")}\n`)
  process.exitCode = 1
}
