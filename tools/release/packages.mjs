/** Packs the published packages, and checks the tarballs. */
import { spawnSync } from "node:child_process"
import { mkdirSync, readFileSync, writeFileSync } from "node:fs"
import { dirname, join, resolve } from "node:path"
import { checkPackage, createPackageFromTarballData, Package } from "@arethetypeswrong/core"
import { publint } from "publint"
import { formatMessage } from "publint/utils"
import { packages as effect4Packages, workspace } from "../effect4/generate.mjs"
import { effect4 } from "../effect4/versions.mjs"
import { folders, releaseFields } from "../workspace/published.mjs"
import { pnpmArguments, root } from "../workspace/workspace.mjs"
import { effect3, problemsOf, publicModules, versionProblems } from "./rules.mjs"

/** Packs in the order of the dependencies. */
const packAll = (destination) => {
  const filters = [...folders.values()].map((folder) => `--filter=./packages/${folder}`)
  const { status, stderr, stdout } = spawnSync(
    "npm",
    pnpmArguments([...filters, "pack", "--json", "--pack-destination", destination]),
    { cwd: root, encoding: "utf8", maxBuffer: 2 ** 26, shell: process.platform === "win32" }
  )
  if (status !== 0) throw new Error(`pnpm pack failed\n${stdout}${stderr}`)
  return JSON.parse(stdout.slice(stdout.indexOf("["))).map(({ filename }) => filename)
}

/** Runs `use` while the manifests name the repository. The committed manifests do not, because of forks. */
const namingRepository = (repository, action) => {
  const manifests = [...folders].map(([name, folder]) => {
    const path = join(root, "packages", folder, "package.json")
    return { name, path, text: readFileSync(path, "utf8") }
  })
  try {
    for (const { name, path, text } of manifests) {
      writeFileSync(
        path,
        JSON.stringify({ ...JSON.parse(text), ...releaseFields(name, repository) })
      )
    }
    return action()
  } finally {
    for (const { path, text } of manifests) writeFileSync(path, text)
  }
}

/**
 * Packs all packages into a folder. In a release they name the repository, `owner/name`.
 *
 * @param {string} out
 * @param {string} [repository]
 * @returns {ReadonlyArray<{ name: string, version: string, tarball: string, files: ReadonlyMap<string, string> }>}
 */
export const pack = (out, repository) => {
  const destination = resolve(out)
  mkdirSync(destination, { recursive: true })
  const tarballs = repository === undefined
    ? packAll(destination)
    : namingRepository(repository, () => packAll(destination))
  return tarballs.map(unpacked)
}

/** Packs the generated packages for Effect 4 into a folder, and checks them. */
export const packEffect4 = (out, repository) => {
  const destination = resolve(out)
  mkdirSync(destination, { recursive: true })
  const tarballs = effect4Packages.map((name) => {
    const { status, stderr, stdout } = spawnSync(
      "npm",
      ["pack", "--json", "--pack-destination", destination],
      {
        cwd: join(workspace, "packages", name),
        encoding: "utf8",
        shell: process.platform === "win32"
      }
    )
    if (status !== 0) throw new Error(`npm pack failed\n${stdout}${stderr}`)
    return unpacked(join(destination, JSON.parse(stdout)[0].filename))
  })
  return checked(tarballs, repository, effect4)
}

/** Reads a tarball. */
const unpacked = (tarball) => {
  const packed = createPackageFromTarballData(readFileSync(tarball))
  const prefix = `/node_modules/${packed.packageName}/`
  const files = new Map(
    packed.listFiles().map((path) => [path.slice(prefix.length), packed.readFile(path)])
  )
  return { name: packed.packageName, version: packed.packageVersion, tarball, files }
}

/** Strict: warnings and suggestions are problems too. */
const publintProblems = async (files) => {
  const packed = [...files].map(([path, text]) => ({
    name: `package/${path}`,
    data: Buffer.from(text)
  }))
  const { messages, pkg } = await publint({
    pkgDir: "package",
    pack: { files: packed },
    strict: true
  })
  return messages.map((message) => `publint: ${formatMessage(message, pkg, { color: false })}`)
}

/**
 * Are the types wrong? Each module is listed, since attw does not expand the wildcard in `exports`. Ignored are
 * resolutions that an ES module does not support: `require`, and except for the package itself `node10`, which does not
 * know `exports`.
 */
const attwProblems = async (files) => {
  const { name, version } = JSON.parse(files.get("package.json"))
  const contents = [...files].map(([path, text]) => [`/node_modules/${name}/${path}`, text])
  const entrypoints = ["package.json", ...publicModules(files)].map((name) =>
    name === "index" ? "." : `./${name}`
  )
  const { problems = [] } = await checkPackage(
    new Package(Object.fromEntries(contents), name, version),
    {
      entrypoints
    }
  )
  return problems
    .filter(({ entrypoint, resolutionKind }) =>
      resolutionKind !== "node16-cjs" && (resolutionKind !== "node10" || entrypoint === ".")
    )
    .map(({ entrypoint = "", kind, resolutionKind = "" }) =>
      `attw: ${kind} ${entrypoint} ${resolutionKind}`.trim()
    )
}

/** Says how to install the tarballs in an application, with what platform-node needs. */
const installCommand = (packages) => {
  const { files, tarball } = packages.find(({ name }) => name === "@store-api/platform-node")
  const peers = Object.entries(JSON.parse(files.get("package.json")).peerDependencies)
  const words = `${join(dirname(tarball), "*.tgz")} ${
    peers.map((peer) => peer.join("@")).join(" ")
  }`
  // pnpm looks on npm for tarballs that others depend on.
  const overrides = packages.map(({ name, tarball }) => `  "${name}": file:${tarball}\n`)
  return `npm install ${words}\n\nWith pnpm, add this to pnpm-workspace.yaml first:\n\noverrides:\n${
    overrides.join("")
  }\npnpm add ${words}\n`
}

/**
 * Checks the packages for one major of Effect. Reports each package or its problems, and returns these
 * and the install command.
 */
export const checked = async (packages, repository, versions = effect3) => {
  const problems = versionProblems(packages.map(({ version }) => version))
  for (const { files, name, version } of packages) {
    const found = [
      ...problemsOf(files, repository, versions),
      ...await publintProblems(files),
      ...await attwProblems(files)
    ]
    problems.push(...found.map((problem) => `${name}: ${problem}`))
    if (found.length === 0) {
      process.stdout.write(
        `${name} ${version}: ${publicModules(files).length} public modules\n`
      )
    }
  }
  return { packages, problems, install: installCommand(packages) }
}
