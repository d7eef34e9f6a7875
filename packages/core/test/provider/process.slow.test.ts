import { spawn } from "node:child_process"
import { once } from "node:events"
import { existsSync } from "node:fs"
import { mkdtemp, rm, writeFile } from "node:fs/promises"
import { createServer } from "node:http"
import type { AddressInfo } from "node:net"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { createInterface } from "node:readline"
import { setTimeout as sleep } from "node:timers/promises"
import { fileURLToPath } from "node:url"
import { assert, describe, it } from "@effect/vitest"
import { deepStrictEqual } from "@effect/vitest/utils"
import { tokenBody } from "../support/wire.js"

const child = (name: string) => fileURLToPath(new URL(`../child/${name}.mjs`, import.meta.url))

const library = ["x86_64-linux-gnu", "aarch64-linux-gnu"]
  .map((machine) => `/usr/lib/${machine}/faketime/libfaketime.so.1`)
  .find((path) => existsSync(path))

// Debian's package `faketime`; CI installs it, and fails without it.
const canMoveTheClock = library !== undefined || process.env["CI"] === "true"

interface Report {
  readonly state: string
  readonly value: string
  readonly calls: number
  readonly wall: number
  readonly monotonic: number
}

/** Runs a provider in a process whose clock can be moved by an offset in seconds: `+3600` is one hour ahead. */
const withMovedClock = async (
  monotonicToo: boolean,
  test: (tools: {
    readonly report: () => Promise<Report>
    readonly move: (offset: string) => Promise<void>
  }) => Promise<void>
) => {
  assert.isDefined(library, "libfaketime is not installed (Debian's package faketime)")
  const folder = await mkdtemp(join(tmpdir(), "clock-"))
  const file = join(folder, "offset")
  const move = (offset: string) => writeFile(file, `${offset}\n`)
  await move("+0")
  const provider = spawn(process.execPath, [child("provider")], {
    stdio: ["pipe", "pipe", "inherit"],
    env: {
      ...process.env,
      LD_PRELOAD: library,
      FAKETIME_TIMESTAMP_FILE: file,
      FAKETIME_NO_CACHE: "1",
      ...(monotonicToo ? {} : { DONT_FAKE_MONOTONIC: "1" })
    }
  })
  const exited = once(provider, "exit")
  const lines = createInterface({ input: provider.stdout })[Symbol.asyncIterator]()
  try {
    await test({
      move,
      report: async () => {
        provider.stdin.write("report\n")
        const line: unknown = (await lines.next()).value
        return JSON.parse(String(line)) as Report
      }
    })
    provider.stdin.end()
    deepStrictEqual(await exited, [0, null], "exits when its input ends")
  } finally {
    provider.kill()
    await rm(folder, { recursive: true })
  }
}

const hour = 3_600_000

describe("AccessTokenProvider, in a separate process", () => {
  it.runIf(canMoveTheClock)(
    "when the wall clock moves by ±1 h or ±24 h, the token expires, and one acquisition replaces it",
    () =>
      withMovedClock(false, async ({ report, move }) => {
        const first = await report()
        assert.strictEqual(first.value, "token-1")
        let before = first
        for (const offset of ["+3600", "+0", "+86400", "+0", "-3600", "-86400"]) {
          await move(offset)
          const after = await report()
          assert.isAbove(Math.abs(after.wall - before.wall), 0.9 * hour, "the wall clock moved")
          assert.isBelow(after.monotonic - before.monotonic, 60_000, "the monotonic clock did not move")
          assert.isAbove(after.monotonic, before.monotonic)
          assert.strictEqual(after.state, "Expired", offset)
          assert.strictEqual(after.calls, before.calls + 1, offset)
          assert.strictEqual((await report()).calls, after.calls, "the new token is valid")
          before = after
        }
      }),
    60_000
  )

  it.runIf(canMoveTheClock)(
    "control: when both clocks move forward by an hour, the token expires",
    () =>
      withMovedClock(true, async ({ report, move }) => {
        const first = await report()
        await move("+3600")
        const after = await report()
        assert.isAbove(after.wall - first.wall, 0.9 * hour)
        assert.isAbove(after.monotonic - first.monotonic, 0.9 * hour, "the monotonic clock moved")
        assert.strictEqual(after.state, "Expired")
        assert.strictEqual(after.calls, 2)
      }),
    60_000
  )

  // A token of 20 s is renewed by a call when 4 to 5 s are left. The endpoint does not respond to that second request,
  // during which the process is stopped.
  it.concurrent.each([7, 40])(
    "stopped for %s s during a renewal: all later calls succeed, with one more token request",
    async (seconds) => {
      let requests = 0
      let renewing = () => {}
      const renewal = new Promise<void>((resolve) => {
        renewing = resolve
      })
      const server = createServer((request, response) => {
        request.resume()
        requests++
        if (requests === 2) {
          renewing()
          return
        }
        response.setHeader("content-type", "application/json")
        response.end(tokenBody({ access_token: `token-${requests}`, expires_in: 20 }))
      }).listen(0, "127.0.0.1")
      await once(server, "listening")
      const { port } = server.address() as AddressInfo
      const provider = spawn(process.execPath, [child("frozen"), `http://127.0.0.1:${port}`], {
        stdio: ["pipe", "pipe", "inherit"]
      })
      const lines = createInterface({ input: provider.stdout })[Symbol.asyncIterator]()
      const get = async () => {
        provider.stdin.write("get\n")
        return String((await lines.next()).value)
      }
      try {
        while (requests < 2) {
          assert.strictEqual(await get(), "Success")
          await Promise.race([renewal, sleep(100)])
        }
        provider.kill("SIGSTOP")
        await sleep(seconds * 1000)
        provider.kill("SIGCONT")
        deepStrictEqual(
          await Promise.all([get(), get(), get(), get(), get()]),
          Array.from({ length: 5 }, () => "Success")
        )
        assert.strictEqual(requests, 3)
        const exited = once(provider, "exit")
        provider.stdin.end()
        deepStrictEqual(await exited, [0, null])
      } finally {
        provider.kill("SIGKILL")
        server.closeAllConnections()
        server.close()
      }
    },
    90_000
  )

  const runIdle = async (...args: ReadonlyArray<string>) => {
    const idle = spawn(process.execPath, [child("idle"), ...args], { stdio: ["ignore", "pipe", "inherit"] })
    const [line] = await once(createInterface({ input: idle.stdout }), "line") as [string]
    assert.strictEqual(line, "done")
    const outcome = await Promise.race([
      once(idle, "exit").then(([code]) => `exit ${String(code)}`),
      new Promise<string>((resolve) => setTimeout(() => resolve("still running"), 3000))
    ])
    idle.kill()
    return outcome
  }

  it("an idle program that provides the layer exits", async () => {
    assert.strictEqual(await runIdle(), "exit 0")
  })

  it("control: a program with a running timer does not exit", async () => {
    assert.strictEqual(await runIdle("leak"), "still running")
  })
})
