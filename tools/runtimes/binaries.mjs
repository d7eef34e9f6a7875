/**
 * Downloads the exact versions of the runtimes with the user's npm, and verifies the pinned integrity. The workspace
 * does not depend on them, because each is as large as all its dependencies together.
 */
import { execFileSync } from "node:child_process"
import { existsSync, mkdirSync, mkdtempSync, readFileSync, renameSync, rmSync } from "node:fs"
import { join } from "node:path"
import { root } from "../workspace/workspace.mjs"

export const pins = JSON.parse(readFileSync(new URL("./pins.json", import.meta.url), "utf8"))

const cache = join(root, "node_modules", ".cache", "store-api-runtimes")

const flags = ["--ignore-scripts", "--no-audit", "--no-fund", "--no-save", "--no-package-lock"]

const download = (name, folder) => {
  const { integrity, package: id, version } = pins[name]
  const what = `${id}@${version}`
  mkdirSync(cache, { recursive: true })
  const work = mkdtempSync(join(cache, "new-"))
  try {
    execFileSync("npm", ["install", what, "--prefix", work, ...flags], {
      cwd: work,
      timeout: 300_000,
      stdio: "pipe"
    })
    // npm refuses a tarball whose integrity differs from the one that it writes here.
    const { packages } = JSON.parse(
      readFileSync(join(work, "node_modules", ".package-lock.json"), "utf8")
    )
    const found = packages[`node_modules/${id}`]?.integrity
    if (found !== integrity) {
      throw new Error(`${what} has the integrity ${found}, but ${integrity} is pinned`)
    }
    // If another run was faster, its binary is used.
    if (!existsSync(folder)) renameSync(work, folder)
  } finally {
    rmSync(work, { recursive: true, force: true })
  }
}

/** Downloads the binary if needed, and returns its path. */
export const binaryOf = (name) => {
  const { arch, platform } = process
  if (
    platform !== "linux" || arch !== "x64" ||
    !process.report.getReport().header.glibcVersionRuntime
  ) {
    throw new Error(
      `The binaries that are pinned are for Linux on x64 with glibc, and this is ${platform} on ${arch}.`
    )
  }
  const { binary, package: id, version } = pins[name]
  const folder = join(cache, `${name}-${version}`)
  const path = join(folder, "node_modules", id, binary)
  if (!existsSync(path)) {
    rmSync(folder, { recursive: true, force: true })
    download(name, folder)
  }
  return path
}
