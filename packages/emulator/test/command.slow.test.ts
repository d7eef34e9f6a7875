/** Tests the installed command: its output, signals and exit codes. */
import { type ChildProcess, spawn, spawnSync } from "node:child_process"
import { createRequire } from "node:module"
import { fileURLToPath } from "node:url"
import { assert, beforeAll, describe, it } from "@effect/vitest"
import { Deferred, Effect, type Scope } from "effect"
import { test } from "../../core/test/support/test.js"
import { askToken, connect, demoBody } from "./utils.js"

const root = fileURLToPath(new URL("..", import.meta.url))

// The command is the file in bin/, which runs the build of these sources.
beforeAll(() => {
  const tsc = createRequire(import.meta.url).resolve("typescript/bin/tsc")
  const built = spawnSync(process.execPath, [tsc, "-b", "tsconfig.src.json"], { cwd: root, encoding: "utf8" })
  assert.strictEqual(built.status, 0, built.stdout)
}, 120_000)

interface Running {
  readonly child: ChildProcess
  readonly output: () => string
  readonly errors: () => string
  /** The URL that it prints. */
  readonly url: Effect.Effect<string>
  readonly exit: Effect.Effect<number | null>
}

const start = (
  args: ReadonlyArray<string>,
  variables: Record<string, string> = {}
): Effect.Effect<Running, never, Scope.Scope> =>
  Effect.gen(function*() {
    const url = yield* Deferred.make<string>()
    const exit = yield* Deferred.make<number | null>()
    const inherited = Object.entries(process.env).filter(([name]) => !name.startsWith("STORE_API_"))
    const child = yield* Effect.acquireRelease(
      Effect.sync(() =>
        spawn(process.execPath, ["bin/store-api-emulator.js", ...args], {
          cwd: root,
          env: { ...Object.fromEntries(inherited), ...variables },
          stdio: ["ignore", "pipe", "pipe"]
        })
      ),
      (child) => Effect.sync(() => child.kill("SIGKILL"))
    )
    let output = ""
    let errors = ""
    child.stdout.on("data", (chunk: Buffer) => {
      output += chunk.toString()
      const [, printed] = /export STORE_API_URL='(.*)'\n/.exec(output) ?? []
      if (printed !== undefined) Deferred.unsafeDone(url, Effect.succeed(printed))
    })
    child.stderr.on("data", (chunk: Buffer) => {
      errors += chunk.toString()
    })
    child.on("close", (code) => {
      Deferred.unsafeDone(url, Effect.dieMessage(`ended without a URL: ${output}${errors}`))
      Deferred.unsafeDone(exit, Effect.succeed(code))
    })
    return { child, output: () => output, errors: () => errors, url: Deferred.await(url), exit: Deferred.await(exit) }
  })

const userSecret = "canary-of-a-user+/="

describe("store-api-emulator", () => {
  const runs = [
    { signal: "SIGINT", args: [], variables: {}, id: "demo-client", body: demoBody },
    {
      signal: "SIGTERM",
      args: ["--client-id", "my-id"],
      variables: { STORE_API_CLIENT_SECRET: userSecret },
      id: "my-id",
      body: `grant_type=client_credentials&client_id=my-id&client_secret=${userSecret}`
    }
  ] as const
  for (const { args, body, id, signal, variables } of runs) {
    test.live(`serves ${id}, and exits with code 0 on ${signal} while a connection is open`, function*() {
      const running = yield* start(args, variables)
      const url = yield* running.url
      assert.strictEqual((yield* askToken(url, { body })).status, 200)
      yield* connect(url)
      running.child.kill(signal)
      assert.strictEqual(yield* Effect.timeout(running.exit, "10 seconds"), 0)
      assert.include(running.output(), `export STORE_API_CLIENT_ID='${id}'`)
      assert.include(running.output(), " POST /v1/oauth/accesstoken 200\n")
      assert.notInclude(running.output(), userSecret)
      assert.strictEqual(running.errors(), "")
    })
  }

  test.live("exits with code 1 and prints one sentence to stderr when it cannot start", function*() {
    const running = yield* start(["--port", "canary"])
    assert.strictEqual(yield* running.exit, 1)
    assert.strictEqual(running.output(), "")
    assert.match(running.errors(), /^--port must be [^\n]+[.]\n$/)
  })

  it("is not started by any import", () => {
    const { resolve } = createRequire(import.meta.url)
    assert.match(resolve("@store-api/emulator/Fault"), /Fault\.js$/)
    assert.throws(() => resolve("@store-api/emulator/bin"), /is not defined by "exports"/)
  })
})
