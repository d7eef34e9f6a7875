import { type ChildProcess, spawn, spawnSync } from "node:child_process"
import { createRequire } from "node:module"
import * as Net from "node:net"
import { fileURLToPath } from "node:url"
import { assert, beforeAll, describe, it } from "@effect/vitest"
import { deepStrictEqual } from "@effect/vitest/utils"
import { Deferred, Effect, Schedule, type Scope } from "effect"
import { askToken, callApi, demoBody, demoSecret, json, send } from "./utils.js"

const root = fileURLToPath(new URL("..", import.meta.url))

// The command is what is installed: the file in bin/, on the build of these sources.
beforeAll(() => {
  const tsc = createRequire(import.meta.url).resolve("typescript/bin/tsc")
  const built = spawnSync(process.execPath, [tsc, "-b", "tsconfig.src.json"], { cwd: root, encoding: "utf8" })
  assert.strictEqual(built.status, 0, built.stdout)
}, 120_000)

interface Running {
  readonly child: ChildProcess
  readonly output: () => string
  readonly errors: () => string
  readonly exit: Effect.Effect<number | null>
}

const start = (
  args: ReadonlyArray<string>,
  env: Record<string, string> = {}
): Effect.Effect<Running, never, Scope.Scope> =>
  Effect.gen(function*() {
    const exit = yield* Deferred.make<number | null>()
    const inherited = Object.entries(process.env).filter(([name]) => !name.startsWith("STORE_API_"))
    const child = yield* Effect.acquireRelease(
      Effect.sync(() =>
        spawn(process.execPath, ["bin/store-api-emulator.js", ...args], {
          cwd: root,
          env: { ...Object.fromEntries(inherited), ...env },
          stdio: ["ignore", "pipe", "pipe"]
        })
      ),
      (child) => Effect.sync(() => child.kill("SIGKILL"))
    )
    let output = ""
    let errors = ""
    child.stdout.on("data", (chunk: Buffer) => {
      output += chunk.toString()
    })
    child.stderr.on("data", (chunk: Buffer) => {
      errors += chunk.toString()
    })
    child.on("close", (code) => Deferred.unsafeDone(exit, Effect.succeed(code)))
    return { child, output: () => output, errors: () => errors, exit: Deferred.await(exit) }
  })

/** Waits, for ten seconds at most, until the output holds something. */
const printed = (running: Running, pattern: RegExp) =>
  Effect.suspend(() => Effect.fromNullable(pattern.exec(running.output()))).pipe(
    Effect.retry(Schedule.intersect(Schedule.spaced("20 millis"), Schedule.recurs(500))),
    Effect.map(([, group = ""]) => group),
    Effect.mapError(() => new Error(`nothing like ${pattern.source} in: ${running.output()}${running.errors()}`))
  )

const url = (running: Running) => printed(running, /export STORE_API_URL='(.*)'/)

const userSecret = "canary-of-a-user+/="
const userBody = `grant_type=client_credentials&client_id=my-id&client_secret=${userSecret}`

describe.concurrent("store-api-emulator", () => {
  it.scopedLive("prints its URL and the variables of the demo client, which work as they are printed", () =>
    Effect.gen(function*() {
      const running = yield* start([])
      const base = yield* url(running)
      assert.match(base, /^http:\/\/127\.0\.0\.1:\d+$/)
      const lines = running.output().split("\n")
      assert.include(lines, `export STORE_API_AUTH_URL='${base}'`)
      assert.include(lines, `export STORE_API_URL='${base}'`)
      assert.include(lines, "export STORE_API_CLIENT_ID='demo-client'")
      assert.include(lines, `export STORE_API_CLIENT_SECRET='${demoSecret}'`)
      const answer = yield* askToken(base)
      assert.strictEqual(answer.status, 200)
      assert.strictEqual(json(answer)["expires_in"], 3600)
    }))

  it.scopedLive("listens on the port and issues tokens of the life that it is told", () =>
    Effect.gen(function*() {
      const port = yield* freePort
      const running = yield* start(["--port", String(port), "--token-life=2s"])
      assert.strictEqual(yield* url(running), `http://127.0.0.1:${port}`)
      assert.strictEqual(json(yield* askToken(`http://127.0.0.1:${port}`))["expires_in"], 2)
    }))

  for (const [life, expiresIn] of [["1500ms", 1], ["5m", 300], ["2 seconds", 2]] as const) {
    it.scopedLive(`reads a token life of ${life}`, () =>
      Effect.gen(function*() {
        const running = yield* start(["--token-life", life])
        assert.strictEqual(json(yield* askToken(yield* url(running)))["expires_in"], expiresIn)
      }))
  }

  it.scopedLive("knows a client of the user's, and never prints its secret", () =>
    Effect.gen(function*() {
      const running = yield* start(["--client-id", "my-id"], { STORE_API_CLIENT_SECRET: userSecret })
      const base = yield* url(running)
      assert.strictEqual((yield* askToken(base, { body: userBody })).status, 200)
      assert.strictEqual((yield* askToken(base, { body: demoBody })).status, 401)
      yield* printed(running, /accesstoken 401/)
      assert.include(running.output(), "export STORE_API_CLIENT_ID='my-id'")
      assert.notInclude(running.output() + running.errors(), userSecret)
      assert.notInclude(running.output(), demoSecret)
    }))

  it.scopedLive("logs each request in a line, without secret, token or query", () =>
    Effect.gen(function*() {
      const running = yield* start([])
      const base = yield* url(running)
      const token = String(json(yield* askToken(base))["access_token"])
      yield* callApi(base, token, { method: "PUT", path: "/orders/7?canary=1", body: token })
      yield* send(base, { path: "/orders" })
      yield* callApi(base, token, { path: `/orders/${encodeURIComponent(token)}` })
      yield* printed(running, /GET <redacted> (200)/)
      deepStrictEqual(running.output().split("\n").filter((line) => /^[A-Z]+ /.test(line)), [
        "POST /v1/oauth/accesstoken 200",
        "PUT /orders/7?… 200",
        "GET /orders 401",
        "GET <redacted> 200"
      ])
      assert.notInclude(running.output(), token)
      assert.notInclude(running.output(), "canary")
    }))

  for (const signal of ["SIGINT", "SIGTERM"] as const) {
    it.scopedLive(`stops cleanly on ${signal}, also with a connection open`, () =>
      Effect.gen(function*() {
        const running = yield* start([])
        const base = yield* url(running)
        const socket = Net.connect(Number(new URL(base).port), "127.0.0.1")
        socket.on("error", () => undefined)
        yield* Effect.sleep("50 millis")
        running.child.kill(signal)
        assert.strictEqual(yield* Effect.timeout(running.exit, "3 seconds"), 0)
        assert.strictEqual(running.errors(), "")
        socket.destroy()
      }))
  }

  it.scopedLive("--help tells the flags and ends with 0", () =>
    Effect.gen(function*() {
      const running = yield* start(["--help"])
      assert.strictEqual(yield* running.exit, 0)
      for (const word of ["--port", "--token-life", "--client-id", "STORE_API_CLIENT_SECRET"]) {
        assert.include(running.output(), word)
      }
    }))
})

it("is started by its name only: nothing that can be imported starts it", () => {
  const codeOf = (name: string) =>
    spawnSync(
      process.execPath,
      [
        "--input-type=module",
        "-e",
        `import("${name}").then(() => console.log("imported"), (e) => console.log(e.code))`
      ],
      { cwd: root, encoding: "utf8", timeout: 10_000 }
    ).stdout.trim()
  assert.strictEqual(codeOf("@store-api/emulator/Fault"), "imported")
  assert.strictEqual(codeOf("@store-api/emulator/bin"), "ERR_PACKAGE_PATH_NOT_EXPORTED")
})

describe.concurrent("store-api-emulator ends with 1 and one sentence", () => {
  const lines: Record<string, { readonly named: string; readonly args: ReadonlyArray<string> }> = {
    "for an unknown flag": { named: "--prot", args: ["--prot", "1"] },
    "for a secret as a flag": { named: "--client-secret", args: ["--client-secret=canary"] },
    "for an argument": { named: "flags", args: ["canary"] },
    "for a flag without its value": { named: "--port", args: ["--port"] },
    "for a port that is no number": { named: "--port", args: ["--port", "canary"] },
    "for a port out of range": { named: "--port", args: ["--port", "70000"] },
    "for a life that is no time": { named: "--token-life", args: ["--token-life", "canary"] },
    "for a life of zero": { named: "--token-life", args: ["--token-life", "0s"] },
    "for a life beyond an hour": { named: "--token-life", args: ["--token-life", "2h"] },
    "for an id that cannot be sent raw": { named: "--client-id", args: ["--client-id", "a&b"] }
  }
  const fails = (args: ReadonlyArray<string>, env: Record<string, string> = {}) =>
    Effect.gen(function*() {
      const running = yield* start(args, env)
      assert.strictEqual(yield* running.exit, 1)
      assert.strictEqual(running.output(), "")
      assert.match(running.errors(), /^[A-Z`-][^\n]{20,}[.]\n$/)
      assert.notMatch(running.errors(), /[.] /)
      assert.notInclude(running.errors(), "canary")
      assert.notMatch(running.errors(), /`(clientId|clientSecret|port|tokenLife)`/)
      return running.errors()
    })
  for (const [name, { args, named }] of Object.entries(lines)) {
    it.scopedLive(`${name}, and names it`, () => Effect.map(fails(args), (sentence) => assert.include(sentence, named)))
  }

  for (const [name, secret] of [["a secret that cannot be sent raw", "canary&x"], ["an empty secret", ""]] as const) {
    it.scopedLive(`for ${name}, and names its variable`, () =>
      Effect.map(
        fails([], { STORE_API_CLIENT_SECRET: secret }),
        (sentence) => assert.include(sentence, "STORE_API_CLIENT_SECRET")
      ))
  }
  it.scopedLive("for a busy port", () =>
    Effect.gen(function*() {
      const first = yield* start([])
      const { port } = new URL(yield* url(first))
      const sentence = yield* fails(["--port", port])
      assert.include(sentence, port)
      assert.include(sentence, "--port")
    }))
})

const freePort = Effect.async<number>((resume) => {
  const server = Net.createServer().listen(0, "127.0.0.1", () => {
    const address = server.address()
    server.close(() => resume(Effect.succeed(typeof address === "object" ? address?.port ?? 0 : 0)))
  })
})
