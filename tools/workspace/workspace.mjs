/** Shared code of the commands in package.json. A fresh machine needs only Node and npm. */
import { spawnSync } from "node:child_process"
import { existsSync, readdirSync, readFileSync, rmSync } from "node:fs"
import { join } from "node:path"
import { fileURLToPath } from "node:url"
import { parseArgs } from "node:util"

export const root = fileURLToPath(new URL("../..", import.meta.url))

const windows = process.platform === "win32"

const read = (path) => readFileSync(join(root, path), "utf8")

/** Runs a command at the root and shows its output. If it fails, this process exits with its exit code. */
const run = (command, args) => {
  const { error, signal, status } = spawnSync(command, args, {
    cwd: root,
    stdio: "inherit",
    shell: windows
  })
  if (error !== undefined) process.stderr.write(`${command}: ${error.message}\n`)
  if (error !== undefined || signal !== null || status !== 0) process.exit(status || 1)
}

/** Runs the pnpm that package.json pins, through npm. */
export const pnpm = (args) => run("npm", pnpmArguments(args))

export const pnpmArguments = (args) => {
  // The hash after the version is for Corepack. npm compares the package with its own registry's hash.
  const [pinned] = JSON.parse(read("package.json")).packageManager.split("+")
  return ["exec", "--yes", `--package=${pinned}`, "--", "pnpm", ...args]
}

/** Exits with one sentence if a command gets an unknown argument. */
export const takesOnly = (...known) => {
  const unknown = process.argv.slice(2).filter((argument) => !known.includes(argument))
  if (unknown.length === 0) return
  const choice = known.length > 0
    ? `Available: ${known.join(", ")}`
    : "This command takes no arguments"
  process.stderr.write(`Unknown argument: ${unknown.join(", ")}. ${choice}.\n`)
  process.exit(1)
}

/** Parses the arguments of a command. Exits with its usage if one of them is `--help` or unknown. */
export const parsed = (usage, config) => {
  let code = 0
  try {
    const parsed = parseArgs({
      ...config,
      options: { ...config.options, help: { type: "boolean" } }
    })
    if (!parsed.values.help) return parsed
  } catch ({ message }) {
    process.stderr.write(`${message}\n`)
    code = 1
  }
  process[code === 0 ? "stdout" : "stderr"].write(`Usage: ${usage}\n`)
  process.exit(code)
}

/** Runs a tool of the workspace, such as `tsc` or `vitest`. */
export const tool = (name, args) =>
  run(join(root, "node_modules", ".bin", windows ? `${name}.cmd` : name), args)

/** The copy that pnpm keeps of the installed lockfile. */
const isInstalled = (folder) => {
  const installed = join(folder, "node_modules/.pnpm/lock.yaml")
  return existsSync(join(root, installed)) &&
    read(installed) === read(join(folder, "pnpm-lock.yaml"))
}

/** Installs the lockfile of a workspace, unless it is installed already. Prints the output only on failure. */
export const install = (folder = "") => {
  if (isInstalled(folder)) return
  process.stderr.write("Installing…\n")
  const { error, status, stderr, stdout } = spawnSync(
    "npm",
    pnpmArguments(["install", "--frozen-lockfile", "--config.confirmModulesPurge=false"]),
    {
      cwd: join(root, folder),
      encoding: "utf8",
      maxBuffer: 2 ** 26,
      shell: windows,
      stdio: ["ignore", "pipe", "pipe"]
    }
  )
  if (status === 0) return
  process.stderr.write([stdout, stderr, error?.message].filter(Boolean).join("\n"))
  process.stderr.write("The installation failed. The output above says why.\n")
  process.exit(1)
}

const packagesIn = (folder) =>
  readdirSync(join(root, folder))
    .map((name) => `${folder}/${name}`)
    .filter((path) =>
      ["package.json", "src"].every((name) => existsSync(join(root, path, name)))
    )

/** Removes the output of deleted sources, which the compiler keeps. It must not be imported or published. */
const removeLeftovers = (folder) => {
  const dist = join(root, folder, "dist")
  if (!existsSync(dist)) return
  for (const path of readdirSync(dist, { recursive: true })) {
    const source = join(root, folder, "src", path.replace(/(\.d\.ts|\.js)(\.map)?$/, ".ts"))
    if (/\.(ts|js|map)$/.test(path) && !existsSync(source)) rmSync(join(dist, path))
  }
}

/** Compiles changed projects, by default the packages and examples. Compiles everything if `dist` was removed. */
export const build = (...projects) => {
  const shipped = [...packagesIn("packages"), "examples"]
  const folders = [...shipped, ...packagesIn("tools")]
  folders.forEach(removeLeftovers)
  // The compiler does not notice a removed `dist`.
  const removed = folders.some((folder) =>
    existsSync(join(root, folder, ".tsbuild")) && !existsSync(join(root, folder, "dist"))
  )
  const chosen = projects.length > 0
    ? projects
    : shipped.map((folder) => `${folder}/tsconfig.src.json`)
  tool("tsc", [
    "-b",
    ...chosen,
    ...(removed && !projects.includes("--force") ? ["--force"] : [])
  ])
  run(process.execPath, [join(root, "tools/workspace/bundle.mjs"), ...packagesIn("packages")])
}
