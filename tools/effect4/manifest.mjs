/** The manifests of the Effect 4 line: the same names, versions 2.x, and Effect 4 as the only peer. */
import { readFileSync } from "node:fs"
import { join } from "node:path"
import { parse } from "yaml"
import { root } from "../workspace/workspace.mjs"

const read = (path) => readFileSync(join(root, path), "utf8")

const { devDependencies: installed } = JSON.parse(read("tools/effect4/line/package.json"))
const { catalog } = parse(read("pnpm-workspace.yaml"))

/** Both lines have the same minor and patch, from one commit. */
export const versionOf = (version) => version.replace(/^\d+/, "2")

/** What a package of Effect 3 depends on is in Effect 4 itself, or has the version that is installed. */
const peersOf = (peers) =>
  Object.fromEntries(
    Object.keys(peers).filter((name) => name !== "@effect/platform").map((name) => [name, `^${installed[name]}`])
  )

export const manifestOf = (name) => {
  const { dependencies = {}, devDependencies: _, peerDependencies, ...manifest } = JSON.parse(
    read(`packages/${name}/package.json`)
  )
  const version = versionOf(manifest.version)
  const own = Object.entries(dependencies).map(([name, range]) => [
    name,
    range === "catalog:" ? catalog[name] : `^${version}`
  ])
  return `${
    JSON.stringify(
      {
        ...manifest,
        version,
        engines: { node: ">=22.19" },
        ...own.length > 0 ? { dependencies: Object.fromEntries(own) } : {},
        peerDependencies: peersOf(peerDependencies)
      },
      null,
      2
    )
  }\n`
}
