/**
 * Runs the pnpm that package.json pins, through npm: a fresh machine needs Node and npm only.
 *
 *   node scripts/with-pnpm.mjs install --frozen-lockfile
 */
import { spawnSync } from "node:child_process"
import { readFileSync } from "node:fs"
import { fileURLToPath } from "node:url"

export const root = fileURLToPath(new URL("..", import.meta.url))

const { packageManager } = JSON.parse(readFileSync(new URL("../package.json", import.meta.url), "utf8"))

/** Runs a command at the root, its output shown; ends this process with its exit code if it fails. */
export const run = (command, args, options = {}) => {
  const { status, signal, error } = spawnSync(command, args, {
    cwd: root,
    stdio: "inherit",
    shell: process.platform === "win32",
    ...options
  })
  if (error) {
    process.stderr.write(`${command}: ${error.message}\n`)
    process.exit(1)
  }
  if (status !== 0) process.exit(status ?? (signal ? 1 : 0))
}

export const pnpm = (args, options) =>
  run("npm", ["exec", "--yes", `--package=${packageManager}`, "--", "pnpm", ...args], options)

export const node = (args, options) => run(process.execPath, args, options)

if (process.argv[1] === fileURLToPath(import.meta.url)) pnpm(process.argv.slice(2))
