/** The manifests of the Effect 4 line: the same names, an even major, and peers of Effect 4. */
import { readFileSync } from "node:fs"
import { join } from "node:path"
import { catalog, effect4Version, releaseFields } from "../release/rules.mjs"
import { root } from "../workspace/workspace.mjs"

const json = (path) => JSON.parse(readFileSync(join(root, path), "utf8"))

const { devDependencies: installed } = json("tools/effect4/line/package.json")

/** The Node and the ranges that the manifests of this line must have. */
export const effect4 = {
  node: ">=22.19",
  ranges: {
    ...catalog,
    ...Object.fromEntries(
      ["effect", "@effect/platform-node"].map((name) => [name, `^${installed[name].replace("^", "")}`])
    )
  }
}

/**
 * @param {string} folder
 * @param {string} [repository] `owner/name`, in a release
 */
export const manifestOf = (folder, repository) => {
  const { devDependencies: _, ...manifest } = json(`packages/${folder}/package.json`)
  const version = effect4Version(manifest.version)
  const ranges = (dependencies) =>
    Object.fromEntries(
      Object.keys(dependencies).filter((name) => name !== "@effect/platform").map((name) => [
        name,
        name.startsWith("@store-api/") ? `^${version}` : effect4.ranges[name]
      ])
    )
  const { dependencies, peerDependencies } = manifest
  const fields = {
    ...manifest,
    version,
    engines: { node: effect4.node },
    ...dependencies === undefined ? {} : { dependencies: ranges(dependencies) },
    peerDependencies: ranges(peerDependencies),
    ...repository === undefined ? {} : releaseFields(manifest.name, repository)
  }
  return `${JSON.stringify(fields, null, 2)}\n`
}
