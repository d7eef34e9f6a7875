/** Prometheus' own tool and server, of Debian's package `prometheus`; without them tests are left out, but never where `CI=true`. */
import { spawnSync } from "node:child_process"
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { dirname, join } from "node:path"

const isMissing = (command: string) => {
  const missing = spawnSync(command, ["--version"]).status !== 0 && process.env["CI"] !== "true"
  if (missing) console.warn(`There is no command ${command}: tests that need it are skipped.`)
  return missing
}

export const isLeftOut: boolean = isMissing("promtool")

/** The server: not every package of the tool brings it. */
export const isServerLeftOut: boolean = isMissing("prometheus")

export interface Verdict {
  readonly passed: boolean
  /** What it said. */
  readonly said: string
}

/** Runs it in a folder of these files and no others. */
export const promtool = (files: Readonly<Record<string, string>>, ...args: ReadonlyArray<string>): Verdict => {
  const folder = mkdtempSync(join(tmpdir(), "promtool-"))
  try {
    for (const [name, text] of Object.entries(files)) {
      mkdirSync(dirname(join(folder, name)), { recursive: true })
      writeFileSync(join(folder, name), text)
    }
    const { error, status, stderr, stdout } = spawnSync("promtool", args, { cwd: folder, encoding: "utf8" })
    if (error !== undefined) throw error
    return { passed: status === 0, said: `${stdout}${stderr}` }
  } finally {
    rmSync(folder, { recursive: true })
  }
}
