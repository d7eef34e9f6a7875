/** The duration of `store-api token`, compared with loading Effect in the same run. */
import { spawn, spawnSync } from "node:child_process"
import { once } from "node:events"
import { mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { fileURLToPath } from "node:url"
import { shuffled, spread, sum } from "./harness.js"

export const baseline = "`node -e 'import(\"effect\")'`"

const cli = fileURLToPath(new URL("../../../packages/cli", import.meta.url))
const bin = join(cli, "bin", "store-api.js")

/**
 * The mean of the faster half. Other load only adds time. On a busy machine this mean varied less between runs than the
 * minimum, a quantile, or the median of the ratios of single rounds.
 */
const fasterHalf = (times: ReadonlyArray<number>): number => {
  const half = [...times].sort((a, b) => a - b).slice(0, Math.ceil(times.length / 2))
  return sum(half) / half.length
}

export type ColdStart = Awaited<ReturnType<typeof measureColdStart>>

/**
 * Runs `store-api token` and the baseline once per round, in a different order each time, so that other load affects
 * both alike.
 */
export const measureColdStart = async (rounds: number) => {
  const folder = mkdtempSync(join(tmpdir(), "store-api-cold-start-"))
  // Without the settings and the token folder of the user who measures.
  const env: NodeJS.ProcessEnv = {
    PATH: process.env["PATH"],
    HOME: folder,
    STORE_API_TOKEN_FOLDER: join(folder, "tokens")
  }
  const emulator = spawn(process.execPath, [bin, "emulator"], {
    env,
    stdio: ["ignore", "pipe", "inherit"]
  })
  const own: Array<number> = []
  const plain: Array<number> = []
  const run = (millis: Array<number>, ...args: ReadonlyArray<string>) => {
    const startedAt = performance.now()
    const { error, status, stderr, stdout } = spawnSync(process.execPath, args, {
      cwd: cli,
      env,
      encoding: "utf8"
    })
    if (error !== undefined || status !== 0) throw error ?? new Error(stderr)
    millis.push(performance.now() - startedAt)
    return stdout
  }
  try {
    // The variables that `store-api emulator` prints.
    for (let printed = ""; env["STORE_API_CLIENT_SECRET"] === undefined;) {
      const [chunk] = await once(emulator.stdout, "data") as [Buffer]
      printed += chunk.toString()
      for (const [, name = "", value] of printed.matchAll(/^export (\w+)='(.*)'$/gm)) {
        env[name] = value
      }
    }
    const token = run([], bin, "token")
    const runToken = () => {
      if (run(own, bin, "token") !== token) {
        throw new Error("The command did not print the stored token.")
      }
    }
    const runBaseline = () => run(plain, "-e", `import("effect")`)
    for (let round = 0; round < rounds; round++) {
      for (const run of shuffled([runToken, runBaseline])) run()
    }
  } finally {
    emulator.kill()
    rmSync(folder, { recursive: true })
  }
  return {
    millis: spread(own).median,
    /** The ratio to `node -e 'import("effect")'`, by the means of the faster half of the rounds. */
    ratio: fasterHalf(own) / fasterHalf(plain)
  }
}
