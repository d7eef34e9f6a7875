/** The packages that are published, and their tarballs. */
import { spawnSync } from "node:child_process"
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync } from "node:fs"
import { basename, join } from "node:path"
import { root } from "../workspace/workspace.mjs"

export const readJson = (path) => JSON.parse(readFileSync(path, "utf8"))

/** Runs a program to its end; what it wrote is part of the error if it fails. */
export const succeed = (command, args, options) => {
  const { error, status, stderr, stdout } = spawnSync(command, args, { cwd: root, encoding: "utf8", ...options })
  if (status === 0) return stdout
  throw new Error([`${command} ${args.join(" ")} failed`, error?.message, stdout, stderr].filter(Boolean).join("\n"))
}

/** The folders of all packages that are not private; one on which others stand comes before them. */
export const publishedFolders = (tree = root) => {
  const all = readdirSync(join(tree, "packages"))
    .map((name) => join(tree, "packages", name))
    .filter((folder) => existsSync(join(folder, "package.json")))
    .map((folder) => ({ folder, manifest: readJson(join(folder, "package.json")) }))
    .filter(({ manifest }) => manifest.private !== true)
  const sorted = []
  const add = ({ folder, manifest }) => {
    for (const name of Object.keys({ ...manifest.dependencies, ...manifest.peerDependencies })) {
      const below = all.find((other) => other.manifest.name === name)
      if (below !== undefined) add(below)
    }
    if (!sorted.includes(folder)) sorted.push(folder)
  }
  all.forEach(add)
  return sorted
}

/** Packs a package as it would be published; answers the path of the tarball. */
export const pack = (folder, destination) => {
  const args = [join(root, "tools", "workspace", "run.mjs"), "pnpm", "--dir", folder, "pack", "--json", "--pack-destination", destination]
  const output = succeed(process.execPath, args)
  return JSON.parse(output.slice(output.indexOf("{"))).filename
}

/** Unpacks a tarball below a folder; answers the package that was in it. */
export const unpack = (tarball, below) => {
  const folder = join(below, basename(tarball, ".tgz"))
  rmSync(folder, { recursive: true, force: true })
  mkdirSync(folder, { recursive: true })
  succeed("tar", ["-xzf", tarball, "-C", folder])
  return join(folder, "package")
}
