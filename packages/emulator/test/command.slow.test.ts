/** Tests the installed command: its output, signals and exit codes. */
import { spawn, spawnSync } from "node:child_process"
import { once } from "node:events"
import { createRequire } from "node:module"
import { fileURLToPath } from "node:url"
import { assert, beforeAll, describe, it } from "@effect/vitest"
import { deepStrictEqual } from "@effect/vitest/utils"
import { test } from "@store-api/testing/test"
import { Effect } from "effect"
import { askToken, bodyOf, connect, demoBody, demoSecret } from "./utils.js"

const cwd = fileURLToPath(new URL("..", import.meta.url))
const { resolve } = createRequire(import.meta.url)
const bin = "bin/store-api-emulator.js"

// The command is the file in bin/, which runs the bundle of these sources.
beforeAll(() => {
  const compile = [resolve("typescript/bin/tsc"), "-b", "tsconfig.src.json"]
  for (const args of [compile, ["../../tools/release/bundle.mjs", "."]]) {
    const built = spawnSync(process.execPath, args, { cwd, encoding: "utf8" })
    assert.strictEqual(built.status, 0, built.stdout + built.stderr)
  }
}, 120_000)

const userSecret = "canary-of-a-user+/="

/** Starts the command. `says` waits for text in its output, and returns the first group. */
const start = (args: ReadonlyArray<string>, nodeArgs: ReadonlyArray<string> = []) =>
  Effect.gen(function*() {
    const child = yield* Effect.acquireRelease(
      Effect.sync(() =>
        spawn(process.execPath, [...nodeArgs, bin, ...args], { cwd, env: { STORE_API_CLIENT_SECRET: userSecret } })
      ),
      (child) => Effect.sync(() => child.kill("SIGKILL"))
    )
    const texts = { output: "", errors: "" }
    child.stdout.on("data", (chunk: Buffer) => (texts.output += chunk.toString()))
    child.stderr.on("data", (chunk: Buffer) => (texts.errors += chunk.toString()))
    const closed = once(child, "close")
    const says = (text: RegExp) =>
      Effect.promise(async () => {
        while (!text.test(texts.output)) {
          await Promise.race([once(child.stdout, "data"), closed.then(() => assert.fail(texts.errors))])
        }
        return text.exec(texts.output)?.[1] ?? ""
      })
    const url = yield* says(/export STORE_API_URL='(.*)'\n/)
    return { child, closed, says, texts, url }
  })

describe("store-api-emulator", () => {
  test.live.each(
    [["demo-client", "SIGINT", [], demoSecret], ["my-id", "SIGTERM", ["--client-id", "my-id"], userSecret]] as const
  )("serves %s, and exits with code 0 on %s while a connection is open", function*([id, signal, args, secret]) {
    const { child, closed, says, texts, url } = yield* start(args)
    assert.strictEqual((yield* askToken(url, { body: bodyOf(id, secret) })).status, 200)
    yield* connect(url)
    yield* says(/ POST \/v1\/oauth\/accesstoken 200 in /)
    child.kill(signal)
    deepStrictEqual(yield* Effect.timeout(Effect.promise(() => closed), "30 seconds"), [0, null])
    assert.include(texts.output, `export STORE_API_CLIENT_ID='${id}'`)
    assert.notInclude(texts.output, userSecret)
    assert.strictEqual(texts.errors, "")
  })

  test.live("keeps no bodies: with a heap of 64 MB, it answers 2 000 of 60 kB", function*() {
    const { url } = yield* start([], ["--max-old-space-size=64"])
    const ask = askToken(url, { body: demoBody.padEnd(60_000, "x") })
    const statuses = yield* Effect.all(Effect.replicate(Effect.map(ask, ({ status }) => status), 2000), {
      concurrency: 8
    })
    deepStrictEqual([...new Set(statuses)], [401])
  }, 120_000)

  it("exits with code 1 and prints one sentence to stderr when it cannot start", () => {
    const { status, stderr, stdout } = spawnSync(process.execPath, [bin, "--port", "canary"], { cwd, encoding: "utf8" })
    deepStrictEqual([status, stdout], [1, ""])
    assert.match(stderr, /^--port must be [^\n]+[.]\n$/)
  })

  it("is not started by any import", () => {
    assert.match(resolve("@store-api/emulator/Fault"), /Fault\.js$/)
    assert.throws(() => resolve("@store-api/emulator/bin"), /is not defined by "exports"/)
  })
})
