import { spawn } from "node:child_process"
import { assert, describe, it } from "@effect/vitest"
import { deepStrictEqual } from "@effect/vitest/utils"
import { Effect } from "effect"
import { bundle } from "../../platform-node/test/support/bundle.js"
import { shop } from "./support/fleet.js"
import type { Settings } from "./support/member.js"
import { isLeftOut, redisServer } from "./support/redisServer.js"

const limit = 90_000

/** How long a process may take to exit once it is done, in milliseconds. A client that reconnects pauses for two seconds. */
const patience = { mustEnd: 20_000, goesOn: 4000 }

/** Runs `once.ts`: what it wrote, and its exit code, if it exited. */
const run = (file: string, settings: Settings, waits: number, ...end: ReadonlyArray<string>) =>
  Effect.async<{ readonly output: string; readonly code: number | null }>((resume) => {
    const child = spawn(process.execPath, [file, JSON.stringify(settings), ...end], {
      env: { ...process.env, NODE_OPTIONS: "" },
      stdio: ["ignore", "pipe", "inherit"]
    })
    let output = ""
    let waiting: NodeJS.Timeout | undefined
    child.stdout.on("data", (chunk: Buffer) => {
      output += chunk.toString()
      waiting ??= setTimeout(() => child.kill("SIGKILL"), waits)
    })
    child.on("close", (code) => {
      clearTimeout(waiting)
      resume(Effect.succeed({ output, code }))
    })
    return Effect.sync(() => child.kill("SIGKILL"))
  })

const ended = { output: "done\n", code: 0 }

describe.skipIf(isLeftOut)("the end of the scope", () => {
  it.scopedLive(
    "lets the process exit, also when Redis does not respond or is away; an open scope keeps it running",
    () =>
      Effect.gen(function*() {
        const [redis, { asked, settings }] = yield* Effect.all([redisServer(), shop()])
        const file = yield* bundle(new URL("./child/once.ts", import.meta.url))
        const at = { ...settings, redisUrl: redis.url }
        deepStrictEqual(yield* run(file, at, patience.mustEnd), ended)
        deepStrictEqual(yield* run(file, at, patience.goesOn, "leaked"), { output: "done\n", code: null })
        assert.strictEqual(yield* asked, 1)
        yield* redis.pause
        deepStrictEqual(yield* run(file, at, patience.mustEnd), ended)
        yield* redis.stop
        deepStrictEqual(yield* run(file, at, patience.mustEnd), ended)
        assert.strictEqual(yield* asked, 3)
      }),
    limit
  )
})
