/**
 * What the commands of package.json share: a fresh machine needs Node and npm, and nothing else.
 */
import { spawnSync } from "node:child_process"
import { createHash } from "node:crypto"
import { existsSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { fileURLToPath } from "node:url"

export const root = fileURLToPath(new URL("..", import.meta.url))

const windows = process.platform === "win32"

const read = (path) => readFileSync(join(root, path), "utf8")

const foldersIn = (folder) =>
  readdirSync(join(root, folder))
    .map((name) => `${folder}/${name}`)
    .filter((path) => existsSync(join(root, path, "package.json")))

/** The folders that pnpm-workspace.yaml names. */
const members = () => {
  const [, list = ""] = /^packages:\n((?: +- .*\n)+)/m.exec(read("pnpm-workspace.yaml")) ?? []
  return [...list.matchAll(/- (\S+)/g)].flatMap(([, path]) =>
    path.endsWith("/*") ? foldersIn(path.slice(0, -2)) : [path]
  )
}

/** Runs a command at the root, its output shown; ends this process with its exit code if it fails. */
const run = (command, args, options) => {
  const { error, signal, status } = spawnSync(command, args, {
    cwd: root,
    stdio: "inherit",
    shell: windows,
    ...options
  })
  if (error !== undefined) process.stderr.write(`${command}: ${error.message}\n`)
  if (error !== undefined || signal !== null || status !== 0) process.exit(status || 1)
}

/** The pnpm that package.json pins, through npm. */
const pnpmCommand = (args) => {
  const { packageManager } = JSON.parse(read("package.json"))
  return ["npm", ["exec", "--yes", `--package=${packageManager}`, "--", "pnpm", ...args]]
}

export const pnpm = (args) => run(...pnpmCommand(args))

/** Ends the process with a sentence when a command is given what it does not know. */
export const takesOnly = (...known) => {
  const unknown = process.argv.slice(2).filter((argument) => !known.includes(argument))
  if (unknown.length === 0) return
  process.stderr.write(
    `There is no ${unknown.join(", ")}: ${known.length > 0 ? `choose from ${known.join(", ")}` : "nothing is taken"}.\n`
  )
  process.exit(1)
}

/** A tool of the workspace: `tsc`, `vitest`, … */
export const tool = (name, args) => run(join(root, "node_modules", ".bin", windows ? `${name}.cmd` : name), args)

/** All that decides what an installation holds. */
const installationKey = () => {
  const files = ["pnpm-lock.yaml", "pnpm-workspace.yaml", ".npmrc", "package.json"]
  const hash = createHash("sha256").update(`${process.platform} ${process.arch}`)
  for (const path of [...files, ...members().map((member) => `${member}/package.json`)]) hash.update(read(path))
  return hash.digest("hex")
}

/** Installs what the lockfile names, unless that is there already. Quiet, unless it fails. */
export const install = () => {
  const stamp = join(root, "node_modules", ".installed")
  const key = installationKey()
  const there = members().every((member) => existsSync(join(root, member, "node_modules")))
  if (there && existsSync(stamp) && readFileSync(stamp, "utf8") === key) return

  process.stderr.write("Installing…\n")
  const [command, args] = pnpmCommand(["install", "--frozen-lockfile", "--config.confirmModulesPurge=false"])
  const { error, status, stderr, stdout } = spawnSync(command, args, {
    cwd: root,
    encoding: "utf8",
    maxBuffer: 2 ** 26,
    shell: windows,
    stdio: ["ignore", "pipe", "pipe"]
  })
  if (status !== 0) {
    process.stderr.write([stdout, stderr, error?.message].filter(Boolean).join("\n"))
    process.stderr.write("The packages could not be installed: see above.\n")
    process.exit(1)
  }
  writeFileSync(stamp, key)
}

/** The compiler leaves the output of a source that is gone; nobody shall import or publish it. */
const removeLeftovers = (folder) => {
  const dist = join(root, folder, "dist")
  // Without sources, what is in it was not compiled: the site's is built by other means.
  if (!existsSync(dist) || !existsSync(join(root, folder, "src"))) return
  for (const path of readdirSync(dist, { recursive: true })) {
    const source = join(root, folder, "src", path.replace(/(\.d\.ts|\.js)(\.map)?$/, ".ts"))
    if (/\.(ts|js|map)$/.test(path) && !existsSync(source)) rmSync(join(dist, path))
  }
}

/** Compiles what changed. Everything, when something built is gone that the compiler believes to be there. */
export const build = (project, options = []) => {
  const folders = members()
  folders.forEach(removeLeftovers)
  const gone = folders.some((folder) =>
    existsSync(join(root, folder, ".tsbuild")) && !existsSync(join(root, folder, "dist"))
  )
  tool("tsc", ["-b", project, ...(gone ? ["--force"] : options)])
}
