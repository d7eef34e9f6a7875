/** Tests the command in this process: its flags, variables, output and error messages. */
import { existsSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { parseEnv } from "node:util"
import { assert, describe, it } from "@effect/vitest"
import { deepStrictEqual } from "@effect/vitest/utils"
import { Scenario } from "@store-api/emulator"
import { ConfigProvider, Effect, Queue } from "effect"
import { test } from "../../core/test/support/test.js"
import * as command from "../src/internal/command.js"
import { askToken, callApi, connect, demoSecret, json, send } from "./utils.js"

type Variables = Readonly<Record<string, string>>

/** Runs the command, which offers its output to this queue. */
const run = (printed: Queue.Enqueue<string>, args: ReadonlyArray<string>, variables: Variables) =>
  Effect.flatMap(Effect.console, (console) =>
    command.run(args).pipe(
      Effect.withConsole({ ...console, log: (text: string) => Queue.offer(printed, text) }),
      Effect.withConfigProvider(ConfigProvider.fromMap(new Map(Object.entries(variables))))
    ))

/** Starts the command and waits for its greeting. `next` takes the output after that. */
const start = (args: ReadonlyArray<string>, variables: Variables = {}) =>
  Effect.gen(function*() {
    const printed = yield* Queue.unbounded<string>()
    const fiber = yield* Effect.forkScoped(run(printed, args, variables))
    const greeting = yield* Effect.raceFirst(Queue.take(printed), Effect.zipRight(fiber, Effect.never))
    assert.strictEqual(yield* Queue.take(printed), "")
    const [, url = ""] = /export STORE_API_URL='(.*)'/.exec(greeting) ?? []
    return { url, greeting, next: Queue.take(printed) }
  })

const userSecret = "canary-of-a-user+/="
const userBody = `grant_type=client_credentials&client_id=my-id&client_secret=${userSecret}`

const newFolder = Effect.acquireRelease(
  Effect.sync(() => mkdtempSync(join(tmpdir(), "store-api-emulator-"))),
  (folder) => Effect.sync(() => rmSync(folder, { recursive: true }))
)

describe("store-api-emulator", () => {
  test.live("prints its URL and the variables of the demo client, which work as they are printed", function*() {
    const { greeting, url } = yield* start([])
    assert.match(url, /^http:\/\/127\.0\.0\.1:\d+$/)
    const lines = greeting.split("\n")
    assert.include(lines, `export STORE_API_AUTH_URL='${url}'`)
    assert.include(lines, `export STORE_API_URL='${url}'`)
    assert.include(lines, "export STORE_API_CLIENT_ID='demo-client'")
    assert.include(lines, `export STORE_API_CLIENT_SECRET='${demoSecret}'`)
    const answer = yield* askToken(url)
    assert.strictEqual(answer.status, 200)
    assert.strictEqual(json(answer)["expires_in"], 3600)
  })

  test.live("listens on the given port, and names a busy one", function*() {
    const { port } = new URL(yield* Effect.scoped(Effect.map(start([]), ({ url }) => url)))
    const { url } = yield* start(["--port", port])
    assert.strictEqual(url, `http://127.0.0.1:${port}`)
    const sentence = yield* fails(["--port", port])
    assert.include(sentence, `--port cannot be ${port}:`)
  })

  for (
    const [args, expiresIn] of [
      [["--token-life", "1500ms"], 1],
      [["--token-life", "5m"], 300],
      [["--token-life", "1h"], 3600],
      [["--token-life", "2 seconds"], 2],
      [["--token-life=2s"], 2]
    ] as const
  ) {
    test.live(`reads ${args.join(" ")}`, function*() {
      const { url } = yield* start(args)
      assert.strictEqual(json(yield* askToken(url))["expires_in"], expiresIn)
    })
  }

  test.live("knows the client of the user, and never prints its secret", function*() {
    const running = yield* start(["--client-id", "my-id"], { STORE_API_CLIENT_SECRET: userSecret })
    assert.strictEqual((yield* askToken(running.url, { body: userBody })).status, 200)
    assert.strictEqual((yield* askToken(running.url)).status, 401)
    assert.include(running.greeting, "export STORE_API_CLIENT_ID='my-id'")
    for (const text of [running.greeting, yield* running.next, yield* running.next]) {
      assert.notInclude(text, userSecret)
      assert.notInclude(text, demoSecret)
    }
  })

  test.live("does not read STORE_API_CLIENT_SECRET for the demo client", function*() {
    const { greeting, url } = yield* start([], { STORE_API_CLIENT_SECRET: userSecret })
    assert.include(greeting, `export STORE_API_CLIENT_SECRET='${demoSecret}'`)
    assert.notInclude(greeting, userSecret)
    assert.strictEqual((yield* askToken(url)).status, 200)
    const body = `grant_type=client_credentials&client_id=demo-client&client_secret=${userSecret}`
    assert.strictEqual((yield* askToken(url, { body })).status, 401)
  })

  test.live("gives the invented secret to a client for which no variable is set", function*() {
    const { greeting, url } = yield* start(["--client-id", "my-id"])
    assert.include(greeting, `export STORE_API_CLIENT_SECRET='${demoSecret}'`)
    const body = `grant_type=client_credentials&client_id=my-id&client_secret=${demoSecret}`
    assert.strictEqual((yield* askToken(url, { body })).status, 200)
  })

  test.live("quotes what it prints for a shell", function*() {
    const { greeting } = yield* start(["--client-id", "it's $mine"])
    assert.include(greeting, "export STORE_API_CLIENT_ID='it'\\''s $mine'\n")
  })

  test.live("plays scenarios by name, in their order", function*() {
    const { url } = yield* start(["--scenario", "token/401-rfc", "--scenario=token/403-rfc", "--scenario", "api/403"])
    assert.strictEqual((yield* askToken(url)).status, 401)
    assert.strictEqual((yield* askToken(url)).status, 403)
    const token = String(json(yield* askToken(url))["access_token"])
    assert.strictEqual((yield* callApi(url, token)).status, 403)
  })

  test.live("--tls prints a file with the certificate, and removes it at the end", function*() {
    const { caFile, url } = yield* Effect.scoped(Effect.gen(function*() {
      const { greeting, url } = yield* start(["--tls", "--scenario", "token/tls-expired"])
      const [, caFile = ""] = /export NODE_EXTRA_CA_CERTS='(.*)'/.exec(greeting) ?? []
      assert.match(readFileSync(caFile, "utf8"), /^-----BEGIN CERTIFICATE-----\n/)
      return { caFile, url }
    }))
    assert.match(url, /^https:/)
    assert.isFalse(existsSync(caFile))
  })

  test("--list prints a line per scenario", function*() {
    const printed = yield* Queue.unbounded<string>()
    yield* run(printed, ["--list"], {})
    const lines = (yield* Queue.take(printed)).split("\n")
    deepStrictEqual(lines.map((line) => line.split(/ +/)[0]), [...Scenario.names])
  })

  test.live("prints a request when it ends, although an earlier one is still open", function*() {
    const { next, url } = yield* start(["--scenario", "token/silence"])
    const socket = yield* connect(url)
    socket.write("POST /v1/oauth/accesstoken HTTP/1.1\r\nHost: localhost\r\nContent-Length: 0\r\n\r\n")
    yield* send(url, { path: "/orders" })
    assert.match(yield* next, /^\d\d:\d\d:\d\d GET \/orders 401 Send Authorization: Bearer /)
    socket.destroy()
    assert.match(yield* next, /^[\d:]{8} POST \/v1\/oauth\/accesstoken ended without a response fault [A-Z]\w+$/)
  })

  test.live("logs each request in a line with its time and the reason of a refusal, without secret, token or query", function*() {
    const running = yield* start([])
    const { url } = running
    const next = Effect.map(running.next, (line) => line.replace(/^\d\d:\d\d:\d\d /, ""))
    const token = String(json(yield* askToken(url))["access_token"])
    assert.strictEqual(yield* next, "POST /v1/oauth/accesstoken 200")
    yield* askToken(url, { body: "grant_type=client_credentials&client_id=canary&client_secret=canary" })
    assert.strictEqual(
      yield* next,
      "POST /v1/oauth/accesstoken 401 The client_id is unknown or the client_secret is wrong."
    )
    yield* callApi(url, token, { method: "PUT", path: "/orders/7?canary=1", body: token })
    assert.strictEqual(yield* next, "PUT /orders/7?… 200")
    yield* send(url, { path: "/orders" })
    assert.match(yield* next, /^GET \/orders 401 Send Authorization/)
    yield* callApi(url, token, { path: `/orders/${encodeURIComponent(token)}` })
    assert.strictEqual(yield* next, "GET <redacted> 200")
  })

  it.scopedLive.each(["--dotenv", "--env-file"])(
    "%s writes the variables for this user alone, without a secret of the user",
    (flag) =>
      Effect.gen(function*() {
        const folder = yield* newFolder
        const file = join(folder, "my.env")
        writeFileSync(file, "# Written by store-api-emulator\nOLD=1", { mode: 0o644 })
        const { url } = yield* start([flag, file])
        deepStrictEqual(parseEnv(readFileSync(file, "utf8")), {
          STORE_API_AUTH_URL: url,
          STORE_API_URL: url,
          STORE_API_CLIENT_ID: "demo-client",
          STORE_API_CLIENT_SECRET: demoSecret
        })
        assert.strictEqual(statSync(file).mode & 0o777, 0o600)
        const another = join(folder, ".env")
        writeFileSync(another, "STORE_API_CLIENT_SECRET=invented")
        const error = yield* Effect.flip(start([flag, another]))
        assert.include(
          error.message,
          `${flag} must be a new file in a folder that exists, an empty file, or one that an emulator wrote`
        )
        assert.strictEqual(readFileSync(another, "utf8"), "STORE_API_CLIENT_SECRET=invented")
      })
  )

  it.scopedLive.each(["shop\\new", "the shop's", "the \"shop\""])(
    "--dotenv keeps the client id %s",
    (clientId) =>
      Effect.gen(function*() {
        const folder = yield* newFolder
        const file = join(folder, "my.env")
        yield* start(["--dotenv", file, "--client-id", clientId])
        assert.strictEqual(parseEnv(readFileSync(file, "utf8"))["STORE_API_CLIENT_ID"], clientId)
      })
  )

  test("--help prints the flags in 80 columns, and two examples", function*() {
    const printed = yield* Queue.unbounded<string>()
    yield* run(printed, ["--help"], {})
    const help = yield* Queue.take(printed)
    for (const word of [...Object.keys(command.flags).map((name) => `--${name}`), "STORE_API_CLIENT_SECRET"]) {
      assert.include(help, word)
    }
    assert.isAtMost(Math.max(...help.split("\n").map((line) => line.length)), 80)
    assert.lengthOf(help.match(/^ {2}\$ store-api-emulator /gm) ?? [], 2)
  })
})

/** The one sentence with which the command fails. Asserts that it prints nothing else. */
const fails = (args: ReadonlyArray<string>, variables: Variables = {}) =>
  Effect.gen(function*() {
    const printed = yield* Queue.unbounded<string>()
    const { message } = yield* Effect.flip(run(printed, args, variables))
    deepStrictEqual([...(yield* Queue.takeAll(printed))], [])
    assert.match(message, /^[A-Z-][^\n]{20,}[.]$/)
    assert.notMatch(message, /[.] /)
    assert.notInclude(message, "canary")
    return message
  })

describe("store-api-emulator fails with one sentence", () => {
  const lines = {
    "for an unknown flag": { named: "--prot", args: ["--prot", "1"] },
    "for a secret as a flag": { named: "--client-secret", args: ["--client-secret=canary"] },
    "for a value of a switch": { named: "--tls", args: ["--tls=canary"] },
    "for an argument": { named: "The line", args: ["canary"] },
    "for a flag without its value": { named: "--port", args: ["--port"] },
    "for a port that is not a number": { named: "--port", args: ["--port", "canary"] },
    "for a port out of range": { named: "--port", args: ["--port", "70000"] },
    "for a lifetime that is not a duration": { named: "--token-life", args: ["--token-life", "canary"] },
    "for a lifetime of zero": { named: "--token-life", args: ["--token-life", "0s"] },
    "for a lifetime beyond an hour": { named: "--token-life", args: ["--token-life", "2h"] },
    "for a scenario that does not exist": { named: "--scenario", args: ["--scenario", "token/canary"] },
    "for a scenario that needs TLS": { named: "--scenario", args: ["--scenario", "token/tls-expired"] },
    "for an id that cannot be sent raw": { named: "--client-id", args: ["--client-id", "a&b"] }
  }
  for (const [name, { args, named }] of Object.entries(lines)) {
    it.effect(`${name}, and begins with it`, () =>
      Effect.map(fails(args), (sentence) => assert.isTrue(sentence.startsWith(`${named} `), sentence)))
  }

  for (const [name, secret] of [["a secret that cannot be sent raw", "canary&x"], ["an empty secret", ""]] as const) {
    it.effect(`for ${name}, and begins with its variable`, () =>
      Effect.map(
        fails(["--client-id", "my-id"], { STORE_API_CLIENT_SECRET: secret }),
        (sentence) => assert.isTrue(sentence.startsWith("STORE_API_CLIENT_SECRET "), sentence)
      ))
  }
})
