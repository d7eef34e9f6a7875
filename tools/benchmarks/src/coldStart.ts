/** The duration of `store-api token`, compared with loading Effect in the same run. */
import { spawn, spawnSync } from "node:child_process"
import { once } from "node:events"
import { mkdtempSync, readFileSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { fileURLToPath } from "node:url"
import { shuffled, spread, sum } from "./harness.js"

export const baseline = "`node -e 'import(\"effect\")'`"
export const stored = "`store-api token`, the token stored"

const cli = fileURLToPath(new URL("../../../packages/cli", import.meta.url))
const bin = join(cli, "bin", "store-api.js")

const programs: ReadonlyArray<readonly [string, ReadonlyArray<string>]> = [
  [baseline, ["-e", `import("effect")`]],
  [stored, [bin, "token"]]
]

/**
 * The mean of the faster half. Other load only adds time. On a busy machine this mean varied less between runs than the
 * minimum, a quantile, or the median of the ratios of single rounds.
 */
const fasterHalf = (times: ReadonlyArray<number>): number => {
  const half = [...times].sort((a, b) => a - b).slice(0, Math.ceil(times.length / 2))
  return sum(half) / half.length
}

/** The processor time of all child processes that have exited. Linux counts it in hundredths of a second. */
const processorMillis = (): number => {
  if (process.platform !== "linux") return Number.NaN
  const [user, system] = readFileSync("/proc/self/stat", "utf8").split(" ").slice(15, 17)
  return (Number(user) + Number(system)) * 10
}

export type Program = Awaited<ReturnType<typeof measureColdStart>>[number]

/** Runs each program once per round, in a different order each time, so that other load affects all alike. */
export const measureColdStart = async (rounds: number) => {
  const folder = mkdtempSync(join(tmpdir(), "store-api-cold-start-"))
  // Without the settings and the token folder of the user who measures.
  const env: NodeJS.ProcessEnv = {
    ...{ PATH: process.env["PATH"], HOME: folder, STORE_API_TOKEN_FOLDER: join(folder, "tokens") }
  }
  const emulator = spawn(process.execPath, [bin, "emulator"], { env, stdio: ["ignore", "pipe", "inherit"] })
  const runs: Array<{ readonly name: string; readonly millis: number; readonly processor: number }> = []
  const run = (name: string, args: ReadonlyArray<string>) => {
    const [startedAt, processorsAt] = [performance.now(), processorMillis()]
    const { error, status, stderr, stdout } = spawnSync(process.execPath, args, { cwd: cli, env, encoding: "utf8" })
    if (error !== undefined || status !== 0) throw error ?? new Error(stderr)
    runs.push({ name, millis: performance.now() - startedAt, processor: processorMillis() - processorsAt })
    return stdout
  }
  try {
    // The variables that `store-api emulator` prints.
    for (let printed = ""; env["STORE_API_CLIENT_SECRET"] === undefined;) {
      const [chunk] = await once(emulator.stdout, "data") as [Buffer]
      printed += chunk.toString()
      for (const [, name = "", value] of printed.matchAll(/^export (\w+)='(.*)'$/gm)) env[name] = value
    }
    const token = run("the first", [bin, "token"])
    for (let round = 0; round < rounds; round++) {
      for (const [name, args] of shuffled(programs)) {
        const stdout = run(name, args)
        if (name === stored && stdout !== token) throw new Error("The command did not print the stored token.")
      }
    }
  } finally {
    emulator.kill()
    rmSync(folder, { recursive: true })
  }
  const of = (name: string) => runs.filter((run) => run.name === name)
  const millisOf = (name: string) => of(name).map(({ millis }) => millis)
  const processorOf = (name: string) => sum(of(name).map(({ processor }) => processor))
  return programs.map(([name]) => ({
    name,
    millis: spread(millisOf(name)),
    /** The ratio to `node -e 'import("effect")'`, by the means of the faster half of the rounds. */
    ratio: fasterHalf(millisOf(name)) / fasterHalf(millisOf(baseline)),
    /** The ratio of processor times, which other load affects less. `NaN` on systems other than Linux. */
    processorRatio: processorOf(name) / processorOf(baseline)
  }))
}
