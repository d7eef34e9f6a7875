/** Tests the installed command: its output, signals and exit codes. */
import { spawn, spawnSync } from "node:child_process"
import { once } from "node:events"
import { createRequire } from "node:module"
import { fileURLToPath } from "node:url"
import { assert, beforeAll, describe, it } from "@effect/vitest"
import { deepStrictEqual } from "@effect/vitest/utils"
import { Effect } from "effect"
import { test } from "../../core/test/support/test.js"
import { askToken, bodyOf, connect, demoSecret } from "./utils.js"

const cwd = fileURLToPath(new URL("..", import.meta.url))
const { resolve } = createRequire(import.meta.url)
const bin = "bin/store-api-emulator.js"

// The command is the file in bin/, which runs the build of these sources.
beforeAll(() => {
  const build = [resolve("typescript/bin/tsc"), "-b", "tsconfig.src.json"]
  const built = spawnSync(process.execPath, build, { cwd, encoding: "utf8" })
  assert.strictEqual(built.status, 0, built.stdout)
}, 120_000)

const userSecret = "canary-of-a-user+/="

describe("store-api-emulator", () => {
  test.live.each(
    [
      ["demo-client", "SIGINT", [], demoSecret],
      ["my-id", "SIGTERM", ["--client-id", "my-id"], userSecret]
    ] as const
  )("serves %s, and exits with code 0 on %s while a connection is open", function*([id, signal, args, secret]) {
    const child = yield* Effect.acquireRelease(
      Effect.sync(() => spawn(process.execPath, [bin, ...args], { cwd, env: { STORE_API_CLIENT_SECRET: userSecret } })),
      (child) => Effect.sync(() => child.kill("SIGKILL"))
    )
    let [output, errors] = ["", ""]
    child.stdout.on("data", (chunk: Buffer) => (output += chunk.toString()))
    child.stderr.on("data", (chunk: Buffer) => (errors += chunk.toString()))
    const closed = once(child, "close")
    const says = (text: RegExp) =>
      Effect.promise(async () => {
        while (!text.test(output)) {
          await Promise.race([
            once(child.stdout, "data"),
            closed.then(() => assert.fail(errors))
          ])
        }
        return text.exec(output)?.[1] ?? ""
      })
    const url = yield* says(/export STORE_API_URL='(.*)'\n/)
    assert.strictEqual((yield* askToken(url, { body: bodyOf(id, secret) })).status, 200)
    yield* connect(url)
    yield* says(/ POST \/v1\/oauth\/accesstoken 200\n/)
    child.kill(signal)
    deepStrictEqual(yield* Effect.timeout(Effect.promise(() => closed), "10 seconds"), [0, null])
    assert.include(output, `export STORE_API_CLIENT_ID='${id}'`)
    assert.notInclude(output, userSecret)
    assert.strictEqual(errors, "")
  })

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
