/** The duration of `store-api token`, compared with loading Effect in the same run. */
import { type ChildProcessByStdio, spawn, spawnSync } from "node:child_process"
import { mkdtempSync, readFileSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { createInterface } from "node:readline"
import type { Readable } from "node:stream"
import { fileURLToPath } from "node:url"
import { shuffled, spread } from "./harness.js"
import { number, table } from "./page.js"

export const baseline = "`node -e 'import(\"effect\")'`"
export const stored = "`store-api token`, the token stored"
const unstored = "`store-api token --no-cache`"

const cli = fileURLToPath(new URL("../../../packages/cli", import.meta.url))
const bin = join(cli, "bin", "store-api.js")

const programs: ReadonlyArray<readonly [string, ReadonlyArray<string>]> = [
  ["`node -e 0`", ["-e", "0"]],
  [baseline, ["-e", `import("effect")`]],
  [stored, [bin, "token"]],
  [unstored, [bin, "token", "--no-cache"]],
  ["`store-api token --help`", [bin, "token", "--help"]]
]

/** The two programs that the goal compares. */
export const compared = programs.slice(1, 3)

/**
 * The mean of the faster half. Other load only adds time. On a busy machine this mean varied less between runs than the
 * minimum, a quantile, or the median of the ratios of single rounds.
 */
const fasterHalf = (times: ReadonlyArray<number> = []): number => {
  const half = [...times].sort((a, b) => a - b).slice(0, Math.ceil(times.length / 2))
  return half.reduce((sum, time) => sum + time, 0) / half.length
}

/** The processor time of all child processes that have exited. Linux counts it in hundredths of a second. */
const processorMillis = (): number => {
  if (process.platform !== "linux") return Number.NaN
  const [user, system] = readFileSync("/proc/self/stat", "utf8").split(" ").slice(15, 17)
  return (Number(user) + Number(system)) * 10
}

/** The variables that `store-api emulator` prints. */
const settingsOf = async (emulator: ChildProcessByStdio<null, Readable, null>) => {
  const settings: Record<string, string> = {}
  for await (const line of createInterface({ input: emulator.stdout })) {
    const [, name = "", value = ""] = /^export (\w+)='(.*)'$/.exec(line) ?? []
    if (name !== "") settings[name] = value
    if (name === "STORE_API_CLIENT_SECRET") return settings
  }
  throw new Error("store-api emulator exited")
}

/** Runs each program once per round, in a different order each time, so that other load affects all alike. */
const inRounds = (
  rounds: number,
  selected: typeof programs,
  env: Readonly<Record<string, string | undefined>>
) => {
  const run = (args: ReadonlyArray<string>) => {
    const [startedAt, processorsAt] = [performance.now(), processorMillis()]
    const { error, status, stderr, stdout } = spawnSync(process.execPath, args, { cwd: cli, env, encoding: "utf8" })
    if (error !== undefined || status !== 0) throw error ?? new Error(stderr)
    return { millis: performance.now() - startedAt, processor: processorMillis() - processorsAt, stdout }
  }
  const { stdout: token } = run([bin, "token"])
  const times: Record<string, Array<number>> = Object.fromEntries(selected.map(([name]) => [name, []]))
  const processors: Record<string, number> = {}
  for (let round = 0; round < rounds; round++) {
    for (const [name, args] of shuffled(selected)) {
      const { millis, processor, stdout } = run(args)
      times[name]?.push(millis)
      processors[name] = (processors[name] ?? 0) + processor
      if (name === stored && stdout !== token) throw new Error("The command did not print the stored token.")
      if (name === unstored && stdout === token) {
        throw new Error("The command printed the stored token instead of a new one.")
      }
    }
  }
  const base = fasterHalf(times[baseline])
  return selected.map(([name]) => ({
    name,
    millis: spread(times[name] ?? []),
    /** The ratio to `node -e 'import("effect")'`, by the means of the faster half of the rounds. */
    ratio: fasterHalf(times[name]) / base,
    /** The ratio of processor times, which other load affects less. `NaN` on systems other than Linux. */
    processorRatio: (processors[name] ?? 0) / (processors[baseline] ?? 0)
  }))
}

export type Program = Awaited<ReturnType<typeof measureColdStart>>[number]

export const measureColdStart = async (rounds: number, selected = programs) => {
  const folder = mkdtempSync(join(tmpdir(), "store-api-cold-start-"))
  // Without the settings and the token folder of the user who measures.
  const env = { PATH: process.env["PATH"], HOME: folder, STORE_API_TOKEN_FOLDER: join(folder, "tokens") }
  const emulator = spawn(process.execPath, [bin, "emulator"], { env, stdio: ["ignore", "pipe", "inherit"] })
  try {
    return inRounds(rounds, selected, { ...env, ...await settingsOf(emulator) })
  } finally {
    emulator.kill()
    rmSync(folder, { recursive: true })
  }
}

export const coldStartTable = (measured: ReadonlyArray<Program>): string =>
  table(measured, [
    ["program", ({ name }) => name],
    ["from start to end", ({ millis }) =>
      `${number(millis.median)} ms (${number(millis.low)} to ${number(millis.high)})`],
    [`multiple of ${baseline}`, ({ ratio }) =>
      `${number(ratio, 2)} ×`]
  ])
