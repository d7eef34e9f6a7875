import { spawn } from "node:child_process"
import { once } from "node:events"
import { existsSync } from "node:fs"
import { mkdtemp, rm, writeFile } from "node:fs/promises"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { createInterface } from "node:readline"
import { fileURLToPath } from "node:url"
import { assert, describe, it } from "@effect/vitest"
import { deepStrictEqual } from "@effect/vitest/utils"

const library = ["x86_64-linux-gnu", "aarch64-linux-gnu"]
  .map((machine) => `/usr/lib/${machine}/faketime/libfaketime.so.1`)
  .find((path) => existsSync(path))

// Debian's package `faketime`; CI installs it, and fails without it.
const canMoveTheClock = library !== undefined || process.env["CI"] === "true"

interface Report {
  readonly state: string
  readonly outcome: string
  readonly calls: number
  readonly wall: number
  readonly monotonic: number
}

/** Runs the steps with a provider in a process, which exits by itself when its input ends. */
const withProcess = async (
  env: NodeJS.ProcessEnv,
  steps: (report: () => Promise<Report>) => Promise<void>
) => {
  const file = fileURLToPath(new URL("../child/provider.mjs", import.meta.url))
  const provider = spawn(process.execPath, [file], {
    stdio: ["pipe", "pipe", "inherit"],
    env: { ...process.env, ...env }
  })
  const exited = once(provider, "exit")
  const lines = createInterface({ input: provider.stdout })[Symbol.asyncIterator]()
  try {
    await steps(async () => {
      provider.stdin.write("report\n")
      return JSON.parse(String((await lines.next()).value)) as Report
    })
    provider.stdin.end()
    deepStrictEqual(
      await exited,
      [0, null],
      "an idle provider does not keep the process running"
    )
  } finally {
    provider.kill("SIGKILL")
  }
}

const hour = 3_600_000

describe("AccessTokenProvider, in a separate process", () => {
  it.runIf(canMoveTheClock)(
    "one acquisition replaces the token of a process whose wall clock moves by ±1 h or ±24 h",
    async () => {
      assert.isDefined(library, "libfaketime is not installed (Debian's package faketime)")
      const folder = await mkdtemp(join(tmpdir(), "clock-"))
      const file = join(folder, "offset")
      /** Moves the wall clock of the process to an offset in seconds: `+3600` is one hour ahead. */
      const move = (offset: string) => writeFile(file, `${offset}\n`)
      await move("+0")
      const env = {
        LD_PRELOAD: library,
        FAKETIME_TIMESTAMP_FILE: file,
        FAKETIME_NO_CACHE: "1",
        DONT_FAKE_MONOTONIC: "1"
      }
      await withProcess(env, async (report) => {
        let before = await report()
        for (const offset of ["+3600", "+0", "+86400", "+0", "-3600", "-86400"]) {
          await move(offset)
          const after = await report()
          assert.isAbove(
            Math.abs(after.wall - before.wall),
            0.9 * hour,
            "the wall clock moved"
          )
          assert.isBelow(
            after.monotonic - before.monotonic,
            60_000,
            "the monotonic clock did not move"
          )
          assert.isAbove(after.monotonic, before.monotonic)
          deepStrictEqual([after.state, after.outcome, after.calls], [
            "Expired",
            "Success",
            before.calls + 1
          ], offset)
          assert.strictEqual((await report()).calls, after.calls, "the new token is valid")
          before = after
        }
      })
      await rm(folder, { recursive: true })
    }
  )
})
