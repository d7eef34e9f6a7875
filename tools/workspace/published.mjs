/** The published packages: their folders, the ranges of their dependencies, and the repository that they name. */
import { existsSync, readdirSync, readFileSync } from "node:fs"
import { join } from "node:path"
import { parse } from "yaml"
import { root } from "./workspace.mjs"

const read = (path) => readFileSync(join(root, path), "utf8")

export const readJson = (path) => JSON.parse(read(path))

/**
 * The ranges of the dependencies, one per name for all packages.
 *
 * @type {Readonly<Record<string, string>>}
 */
export const catalog = parse(read("pnpm-workspace.yaml")).catalog

/**
 * The folder below `packages` of each published package, by its name.
 *
 * @type {ReadonlyMap<string, string>}
 */
export const folders = new Map(
  readdirSync(join(root, "packages"))
    .filter((folder) => existsSync(join(root, "packages", folder, "package.json")))
    .map((folder) => [folder, readJson(`packages/${folder}/package.json`)])
    .filter(([, manifest]) => manifest.private !== true)
    .map(([folder, { name }]) => [name, folder])
)

/** The fields of a package that is released from a repository on GitHub. Provenance is checked against `repository`. */
export const releaseFields = (name, repository) => {
  if (!/^[\w.-]+\/[\w.-]+$/.test(repository)) {
    throw new Error(`Expected owner/name instead of ${repository}`)
  }
  const url = `https://github.com/${repository}`
  return {
    repository: {
      type: "git",
      url: `git+${url}.git`,
      directory: `packages/${folders.get(name)}`
    },
    homepage: `${url}#readme`,
    bugs: `${url}/issues`
  }
}
