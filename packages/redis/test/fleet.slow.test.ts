import { spawn } from "node:child_process"
import { assert, describe } from "@effect/vitest"
import { deepStrictEqual } from "@effect/vitest/utils"
import { Fault } from "@store-api/emulator"
import { Effect, Fiber } from "effect"
import { test } from "../../core/test/support/test.js"
import { canMakeCertificates } from "../../platform-node/test/support/certificates.js"
import { bundle } from "../../platform-node/test/support/childProcess.js"
import {
  connected,
  fleetOfProcesses,
  open,
  processes,
  reasonsOf,
  renewal,
  share,
  shop,
  tokens,
  until,
  warningsOf
} from "./support/fleet.js"
import { fleetTests, realTime } from "./support/fleetTests.js"
import type { Settings } from "./support/member.js"
import { isLeftOut, redisOverTls, redisServer } from "./support/redisServer.js"

fleetTests({
  name: "16 processes and one Redis",
  size: 16,
  fleet: fleetOfProcesses(16),
  pace: realTime(1000),
  life: 8000
})

describe.skipIf(isLeftOut)("the process that acquires the token for all", () => {
  test.live(
    "is killed: the others wait until its lease ends, then one of them acquires a token",
    function*() {
      const [holder, ...others] = yield* processes(5)
      assert(holder !== undefined)
      const [redis, { tokenRequests, fail, settings }] = yield* Effect.all([redisServer(), shop()])
      const leases = Effect.map(redis.command("KEYS", "*:lease"), (keys) => (keys as Array<string>).length)
      const start = (all: typeof others) => (_: number, settings: Parameters<typeof open>[1]) =>
        Effect.forEach(all, (process) => open(process, settings), { concurrency: "unbounded" })
      const [firstMember] = yield* share(start([holder]), 1, redis, { ...settings, lease: "5 seconds" })
      const members = yield* share(start(others), 4, redis, { ...settings, lease: "5 seconds" })
      assert(firstMember !== undefined)
      yield* fail(Fault.hang())
      const killed = yield* Effect.fork(Effect.exit(firstMember.get))
      yield* until("it sends a token request", Effect.map(tokenRequests, (count) => count === 1))
      assert.strictEqual(yield* leases, 1)
      yield* holder.kill
      assert.strictEqual(yield* tokens(members), 1)
      assert.strictEqual((yield* Fiber.join(killed))._tag, "Failure")
      assert.strictEqual(yield* tokenRequests, 2)
      assert.strictEqual(yield* leases, 0)
      for (const warnings of yield* warningsOf(members)) assert.isEmpty(warnings)
    },
    120_000
  )
})

const limit = 90_000

/** Node reads NODE_EXTRA_CA_CERTS when a process starts. */
const twoThatTrust = (
  redis: { readonly cert: string; readonly tlsUrl: string },
  settings: Parameters<typeof open>[1]
) =>
  Effect.flatMap(
    processes(2, { NODE_EXTRA_CA_CERTS: redis.cert }),
    (all) =>
      Effect.forEach(all, (process) => open(process, { ...settings, redisUrl: redis.tlsUrl }), { concurrency: 2 })
  )

describe.skipIf(isLeftOut || !canMakeCertificates)("over TLS", () => {
  test.live("processes that trust the authority share a token", function*() {
    const [redis, { tokenRequests, settings }] = yield* Effect.all([redisOverTls("no"), shop()])
    const members = yield* twoThatTrust(redis, settings)
    yield* connected(members)
    deepStrictEqual(yield* renewal(members, tokenRequests), { requests: 1, tokens: 1 })
    deepStrictEqual(yield* reasonsOf(members), [[], []])
  }, limit)

  test.live(
    "processes do not use a server with a trusted certificate for another host: each acquires a token and warns",
    function*() {
      const [redis, { tokenRequests, settings }] = yield* Effect.all([
        redisOverTls("no", "redis.shop.example"),
        shop()
      ])
      const members = yield* twoThatTrust(redis, settings)
      deepStrictEqual(yield* renewal(members, tokenRequests), { requests: 2, tokens: 2 })
      const reason = "ERR_TLS_CERT_ALTNAME_INVALID"
      deepStrictEqual(yield* reasonsOf(members), [[reason], [reason]])
      yield* until("no member is connected", Effect.map(redis.connected, (count) => count === 0))
    },
    limit
  )
})

/**
 * How long a process may take to exit once it is done, in milliseconds. A client that reconnects pauses for two
 * seconds.
 */
const exitLimit = { whenClosed: 20_000, whenLeaked: 4000 }

/** Runs `once.ts`. Returns its output, and its exit code if it exited. */
const run = (file: string, settings: Settings, limit: number, ...end: ReadonlyArray<string>) =>
  Effect.async<{ readonly output: string; readonly code: number | null }>((resume) => {
    const child = spawn(process.execPath, [file, JSON.stringify(settings), ...end], {
      env: { ...process.env, NODE_OPTIONS: "" },
      stdio: ["ignore", "pipe", "inherit"]
    })
    let output = ""
    let timer: NodeJS.Timeout | undefined
    child.stdout.on("data", (chunk: Buffer) => {
      output += chunk.toString()
      timer ??= setTimeout(() => child.kill("SIGKILL"), limit)
    })
    child.on("close", (code) => {
      clearTimeout(timer)
      resume(Effect.succeed({ output, code }))
    })
    return Effect.sync(() => child.kill("SIGKILL"))
  })

const ended = { output: "done\n", code: 0 }

describe.skipIf(isLeftOut)("closing the scope", () => {
  test.live(
    "lets the process exit, even if Redis does not respond or is stopped; an open scope keeps it running",
    function*() {
      const [redis, { tokenRequests, settings }] = yield* Effect.all([redisServer(), shop()])
      const file = yield* bundle(new URL("./child/once.ts", import.meta.url))
      const at = { ...settings, redisUrl: redis.url }
      deepStrictEqual(yield* run(file, at, exitLimit.whenClosed), ended)
      deepStrictEqual(yield* run(file, at, exitLimit.whenLeaked, "leaked"), { output: "done\n", code: null })
      assert.strictEqual(yield* tokenRequests, 1)
      yield* redis.pause
      deepStrictEqual(yield* run(file, at, exitLimit.whenClosed), ended)
      yield* redis.stop
      deepStrictEqual(yield* run(file, at, exitLimit.whenClosed), ended)
      assert.strictEqual(yield* tokenRequests, 3)
      // No server listens on port 1.
      for (const redisUrl of ["redis+cluster://127.0.0.1:1", "redis+sentinel://127.0.0.1:1/tokens"]) {
        const bounded = { ...settings, redisUrl, storeTimeout: "1 second" } as const
        deepStrictEqual(yield* run(file, bounded, exitLimit.whenClosed), ended)
      }
      assert.strictEqual(yield* tokenRequests, 5)
    },
    limit
  )
})
