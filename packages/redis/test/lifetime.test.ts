import { spawn } from "node:child_process"
import { fileURLToPath } from "node:url"
import { assert, describe, it } from "@effect/vitest"
import { deepStrictEqual } from "@effect/vitest/utils"
import { TokenStore } from "@store-api/core"
import { RedisTokenStore } from "@store-api/redis"
import { Effect, Redacted } from "effect"
import { type Settings, shop, until } from "./support/fleet.js"
import { isLeftOut, redisServer } from "./support/redisServer.js"

const limit = 90_000

/** How long a process is waited for once it is done, in milliseconds. A client that connects anew pauses for two seconds. */
const patience = { mustEnd: 20_000, goesOn: 4000 }

/** Runs `once.mjs`: what it wrote, and whether it ended by itself. */
const run = (settings: Settings, waits: number, ...end: ReadonlyArray<string>) =>
  Effect.async<{ readonly output: string; readonly code: number | null }>((resume) => {
    const child = spawn(
      process.execPath,
      [fileURLToPath(new URL("./support/once.mjs", import.meta.url)), JSON.stringify(settings), ...end],
      { env: { ...process.env, NODE_OPTIONS: "" }, stdio: ["ignore", "pipe", "inherit"] }
    )
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
  it.scopedLive("closes the connection", () =>
    Effect.gen(function*() {
      const redis = yield* redisServer()
      yield* Effect.gen(function*() {
        yield* (yield* TokenStore.TokenStore).put("key", "entry", "1 minute")
        assert.strictEqual(yield* redis.connected, 1)
      }).pipe(Effect.provide(RedisTokenStore.layer({ url: Redacted.make(redis.url) })))
      yield* until("it is closed", Effect.map(redis.connected, (count) => count === 0))
    }), limit)

  it.scopedLive("lets the process end by itself; a scope that is never closed keeps it", () =>
    Effect.gen(function*() {
      const [redis, { asked, settings }] = yield* Effect.all([redisServer(), shop()])
      const at = { ...settings, redisUrl: redis.url }
      deepStrictEqual(yield* run(at, patience.mustEnd), ended)
      deepStrictEqual(yield* run(at, patience.goesOn, "leaked"), { output: "done\n", code: null })
      assert.strictEqual(yield* asked, 1)
    }), limit)

  it.scopedLive("lets it end while Redis is away, and while it holds still", () =>
    Effect.gen(function*() {
      const [redis, { asked, settings }] = yield* Effect.all([redisServer(), shop()])
      const at = { ...settings, redisUrl: redis.url }
      yield* redis.pause
      deepStrictEqual(yield* run(at, patience.mustEnd), ended)
      yield* redis.stop
      deepStrictEqual(yield* run(at, patience.mustEnd), ended)
      assert.strictEqual(yield* asked, 2)
    }), limit)
})
