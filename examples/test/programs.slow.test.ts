/**
 * Runs each example in a process of its own, and checks its output and the requests that it sends. `npm run effect4`
 * runs them with Effect 4.
 */
import {
  existsSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync
} from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { assert, describe, it } from "@effect/vitest"
import { deepStrictEqual } from "@effect/vitest/utils"
import { Emulator, Fault } from "@store-api/emulator"
import { patient } from "@store-api/testing/childProcess"
import { freePort, shared } from "@store-api/testing/loopback"
import { until } from "@store-api/testing/network"
import { isLeftOut, redisServer } from "@store-api/testing/redisServers"
import { Effect, Redacted, TestClock, TestServices } from "effect"
import * as Program from "./support/program.js"
import { eventually, fetched } from "./support/prometheus.js"

const root = join(import.meta.dirname, "..", "..")

/** The client secrets of the token requests in order, without repetitions. */
const secretsUsed = (emulator: Emulator.Service) =>
  Effect.map(emulator.requests, (all) =>
    all.filter(({ kind }) => kind === "token")
      .map(({ body }) => /&client_secret=(.*)$/.exec(Redacted.value(body))?.[1])
      .filter((secret, index, secrets) => secret !== secrets[index - 1]))

describe("examples", () => {
  const folder = shared(Program.bundled)
  const start = (name: string, variables: Readonly<Record<string, string>>) =>
    Effect.flatMap(folder, (folder) => Program.start(folder, name, variables))
  const run = (name: string, variables: Readonly<Record<string, string>>) =>
    Effect.flatMap(folder, (folder) => Program.run(folder, name, variables))

  it("quick start: the first example of the README", () => {
    const [, block = "none"] =
      /^```ts\n(.*?)^```$/ms.exec(readFileSync(join(root, "README.md"), "utf8")) ?? []
    assert.strictEqual(
      readFileSync(join(root, "examples", "src", "quickStart.ts"), "utf8"),
      block
    )
  })

  it("each program is in the list of examples/README.md, and in these tests", () => {
    const read = (path: string) => readFileSync(join(root, "examples", path), "utf8")
    const isProgram = (file: string) =>
      file.endsWith(".ts") && read(`src/${file}`).includes("NodeRuntime.runMain(")
    const programs = readdirSync(join(root, "examples", "src")).filter(isProgram)
    assert.isAbove(programs.length, 8)
    const tests = read("test/programs.slow.test.ts") + read("test/prometheus.slow.test.ts")
    for (const file of programs) {
      const has4 = existsSync(join(root, "examples", "effect4", file))
      assert.include(
        read("README.md"),
        `${has4 ? `| [${file}](effect4/${file}) ` : ""}| [${file}](src/${file}) |`
      )
      assert.match(tests, new RegExp(`"${file.replace(".ts", "")}", `))
    }
  })

  // Its other tests run it in their own process.
  it.scopedLive.skipIf(Program.effect4 !== undefined)(
    "demo: exits with code 1 and one sentence when variables are missing",
    () =>
      Effect.gen(function*() {
        const { output, status } = yield* run("demo", {
          STORE_API_URL: "https://store.example"
        })
        assert.strictEqual(status, 1)
        assert.match(output, /^STORE_API_URL is set, [^\n]+\.\n$/)
      })
  )

  it.scopedLive("quick start: a call; without its variables, the names of all of them; distinguishes a wrong secret from an unreachable endpoint", () =>
    Effect.gen(function*() {
      const emulator = yield* Emulator.make()
      const { output, status } = yield* run("quickStart", Program.variablesOf(emulator))
      assert.strictEqual(status, 0, output)
      assert.match(output, /^200 \{ method: 'GET', path: '\/orders'/)
      deepStrictEqual(yield* Program.secretsIn(emulator, output), [])
      const secret = Redacted.value(Emulator.demoClient.clientSecret)
      assert.isNotEmpty(
        yield* Program.secretsIn(emulator, `${output} ${secret}`),
        "the search finds what is there"
      )
      const without = yield* run("quickStart", {})
      assert.strictEqual(without.status, 1)
      for (const name of Object.keys(Program.variablesOf(emulator))) {
        assert.include(without.output, name)
      }
      const refused = yield* run("quickStart", {
        ...Program.variablesOf(emulator),
        STORE_API_CLIENT_SECRET: "another"
      })
      assert.strictEqual(refused.status, 1)
      assert.match(refused.output, /TokenRefusedError.*check the client id and secret/)
      const url = `http://127.0.0.1:${yield* freePort}`
      const unreachable = yield* run("quickStart", {
        ...Program.variablesOf(emulator),
        STORE_API_AUTH_URL: url
      })
      assert.strictEqual(unreachable.status, 1)
      assert.match(unreachable.output, /TokenRequestError.*ECONNREFUSED/)
    }))

  it.scopedLive("HttpApiClient: places and lists an order; reports a refusal and another API with different errors", () =>
    Effect.gen(function*() {
      const store = yield* start("declaredStore", {})
      yield* store.says("STORE_API_CLIENT_SECRET")
      const variables = Object.fromEntries(
        [...(yield* store.output).matchAll(/(STORE_API_\w+)='([^']+)'/g)].map((
          [, name = "", value = ""]
        ) => [name, value])
      )
      assert.lengthOf(Object.keys(variables), 4)
      const { output, status } = yield* run("httpApiClient", variables)
      deepStrictEqual([status, output], [0, "order 1: a chair\norders in all: 1\n"])
      const refused = yield* run("httpApiClient", {
        ...variables,
        STORE_API_CLIENT_SECRET: "another+invented+secret"
      })
      assert.strictEqual(refused.status, 1)
      assert.match(refused.output, /^The token endpoint refused .* \(status 401.*\n$/)
      const another = yield* run("httpApiClient", Program.variablesOf(yield* Emulator.make()))
      deepStrictEqual([another.status, another.output], [
        1,
        "STORE_API_URL does not lead to the declared API.\n"
      ])
      yield* store.signal("SIGTERM")
      yield* store.ended
    }))

  it.scopedLive("two stores: each has its token and its metrics, and works when the other fails", () =>
    Effect.gen(function*() {
      const [north, south] = yield* Effect.all([Emulator.make(), Emulator.make()])
      const variables = {
        ...Program.variablesOf(north, "NORTH"),
        ...Program.variablesOf(south, "SOUTH")
      }
      const both = yield* run("twoStores", variables)
      deepStrictEqual([both.status, both.output.trim().split("\n")], [0, [
        "north: 200",
        "south: 200",
        "north: 200",
        "south: 200",
        "north: tokens acquired: 1",
        "south: tokens acquired: 1"
      ]])
      deepStrictEqual([
        yield* Program.tokenRequests(north),
        yield* Program.tokenRequests(south)
      ], [1, 1])
      yield* south.fail(Fault.status(400))
      const one = yield* run("twoStores", variables)
      deepStrictEqual([one.status, one.output.trim().split("\n")], [1, [
        "north: 200",
        "south: TokenRefusedError",
        "north: 200",
        "south: TokenRefusedError",
        "north: tokens acquired: 1",
        "south: tokens acquired: 0"
      ]])
      yield* south.fail(Fault.status(503, { on: "api", times: 2 }))
      const busy = yield* run("twoStores", variables)
      assert.strictEqual(busy.status, 1, "a status other than 2xx is a failure")
      assert.include(
        busy.output,
        Program.effect4 === undefined ? "south: ResponseError" : "south: HttpClientError"
      )
    }))

  it.scopedLive("rotating secret: the program uses the new content of the file without a restart", () =>
    Effect.gen(function*() {
      const emulator = yield* Emulator.make()
      const folder = yield* Effect.acquireRelease(
        Effect.sync(() => mkdtempSync(join(tmpdir(), "secrets-"))),
        (folder) => Effect.sync(() => rmSync(folder, { recursive: true }))
      )
      /** Replaces the file in one step: a reader sees either the former secret or the new one. */
      const rotate = (secret: string) => {
        writeFileSync(join(folder, "next"), `${secret}\n`, { mode: 0o600 })
        renameSync(join(folder, "next"), join(folder, "STORE_API_CLIENT_SECRET"))
      }
      const { STORE_API_CLIENT_SECRET: secret = "", ...variables } = Program.variablesOf(
        emulator
      )
      const [yesterday, tomorrow] = [
        "an-invented-secret-of-yesterday",
        "an-invented-secret-of-tomorrow"
      ]
      rotate(yesterday)
      const program = yield* start("rotatingSecret", {
        ...variables,
        SECRETS_FOLDER: folder,
        CALL_INTERVAL: "100 millis"
      })
      yield* program.says("TokenRefusedError: ")
      rotate(secret)
      yield* program.says("GET /orders: 200")
      deepStrictEqual(yield* secretsUsed(emulator), [yesterday, secret])
      // A wrong secret fails only when another token is needed.
      rotate(tomorrow)
      yield* emulator.revoke()
      yield* until(
        "the next secret is used",
        Effect.map(secretsUsed(emulator), (secrets) => secrets.includes(tomorrow))
      )
      deepStrictEqual(yield* secretsUsed(emulator), [yesterday, secret, tomorrow])
      const output = yield* program.output
      assert.notInclude(output, "an-invented-secret")
      deepStrictEqual(yield* Program.secretsIn(emulator, output), [])
      yield* program.signal("SIGTERM")
      yield* program.ended
    }))

  it.scopedLive("server: calls the store for each request, reports its health, and answers requests in flight on SIGTERM", () =>
    Effect.gen(function*() {
      const emulator = yield* Emulator.make()
      const program = yield* start("server", { ...Program.variablesOf(emulator), PORT: "0" })
      const [, url = ""] = /(http:\/\/[\d.:]+)/.exec(yield* program.says("Listening on")) ?? []
      const idle = yield* fetched(`${url}/health`)
      deepStrictEqual([idle.status, JSON.parse(idle.text)], [
        200,
        { state: "Empty", acquiring: false, expiresAt: null, error: null }
      ])
      assert.strictEqual((yield* fetched(`${url}/ready`)).status, 200)
      assert.strictEqual(yield* Program.tokenRequests(emulator), 1)
      const answers = yield* Effect.all(
        Array.from({ length: 20 }, (_, id) => fetched(`${url}/orders/${id}`)),
        { concurrency: "unbounded" }
      )
      deepStrictEqual(new Set(answers.map(({ status }) => status)), new Set([200]))
      assert.include(answers[7]?.text ?? "", "\"path\":\"/orders/7\"")
      assert.strictEqual(yield* Program.tokenRequests(emulator), 1)
      assert.include((yield* fetched(`${url}/health`)).text, "\"state\":\"Fresh\"")
      // Passes on errors that concern the caller, and none that concern the credentials of the server.
      for (const [theirs, ours] of [[404, 404], [422, 422], [403, 502]] as const) {
        const word = "an invented word of the store"
        yield* emulator.fail(
          Fault.status(theirs, { on: "api", body: JSON.stringify({ word }) })
        )
        const { status, text } = yield* fetched(`${url}/orders/1`)
        deepStrictEqual([status, text.includes(word)], [ours, ours === theirs], String(theirs))
      }
      // No token is available.
      yield* emulator.fail(Fault.status(400, { times: 100 }))
      yield* emulator.revoke()
      const unauthorized = yield* fetched(`${url}/orders/1`)
      deepStrictEqual([unauthorized.status, JSON.parse(unauthorized.text)], [
        502,
        { error: "store unavailable" }
      ])
      const failing = yield* fetched(`${url}/orders/1`)
      assert.strictEqual(failing.status, 502)
      const ready = yield* fetched(`${url}/ready`)
      deepStrictEqual([ready.status, JSON.parse(ready.text)], [503, {
        error: "TokenRefusedError"
      }])
      assert.strictEqual(
        (yield* fetched(`${url}/health`)).status,
        200,
        "a restart would not help"
      )
      yield* emulator.clearFaults
      yield* eventually(fetched(`${url}/orders/1`), ({ status }) => status === 200)
      // A request that is in flight at the signal gets its response.
      yield* emulator.clearRequests
      yield* emulator.fail(Fault.delay("1 second", { on: "api" }))
      const inFlight = yield* Effect.fork(fetched(`${url}/orders/2`))
      yield* eventually(emulator.requests, (requests) => requests.length > 0)
      yield* program.signal("SIGTERM")
      assert.strictEqual((yield* inFlight).status, 200)
      const { output } = yield* program.ended
      deepStrictEqual(
        yield* Program.secretsIn(emulator, output, ...answers.map(({ text }) => text)),
        []
      )
    }))

  it.scoped("graceful shutdown: finishes the current order, starts no other, and can still call the API", () =>
    Effect.gen(function*() {
      // The clock stands still, so that the test decides when the second order gets its response.
      const emulator = yield* Emulator.make()
      const answered = Effect.zipRight(
        TestClock.adjust("1 minute"),
        TestServices.provideLive(Effect.sleep("10 millis"))
      )
      yield* emulator.fail([
        Fault.delay("0 millis", { on: "api" }),
        Fault.delay("1 minute", { on: "api", times: 100 })
      ])
      const program = yield* start("gracefulShutdown", Program.variablesOf(emulator))
      yield* TestServices.provideLive(
        eventually(
          emulator.requests,
          (all) => all.filter(({ kind }) => kind === "api").length === 2
        )
      )
      yield* program.signal("SIGTERM")
      yield* TestServices.provideLive(program.says("shutting down"))
      const { output } = yield* Effect.raceFirst(program.ended, Effect.forever(answered))
      deepStrictEqual(output.trim().split("\n"), [
        "/orders/1: 200",
        "shutting down: no further order",
        "/orders/2: 200",
        "/sign-off: 200"
      ])
      yield* TestServices.provideLive(eventually(emulator.connections, (open) => open === 0))
    }))

  it.scopedLive.skipIf(isLeftOut)(
    "fleet: three processes share one token through Redis, and acquire one each without Redis",
    () =>
      Effect.gen(function*() {
        const emulator = yield* Emulator.make()
        const redis = yield* redisServer()
        const variables = { ...Program.variablesOf(emulator), STORE_API_REDIS_URL: redis.url }
        const fleet = (more = {}) =>
          Effect.all(Effect.replicate(run("fleet", { ...variables, ...more }), 3), {
            concurrency: 3
          })
        const together = yield* fleet(patient)
        for (const { output } of together) {
          assert.match(output, /^200, with the token that expires at \S+Z\n$/)
        }
        assert.strictEqual(yield* Program.tokenRequests(emulator), 1)
        yield* redis.stop
        const alone = yield* fleet()
        for (const { output } of alone) {
          assert.include(output, "200, with the token that expires at")
        }
        assert.strictEqual(yield* Program.tokenRequests(emulator), 4)
      })
  )
})
