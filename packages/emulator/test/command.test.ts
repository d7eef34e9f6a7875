/** Tests the command in this process: its flags, variables, output and error messages. */
import { existsSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { parseEnv } from "node:util"
import { assert, describe } from "@effect/vitest"
import { deepStrictEqual } from "@effect/vitest/utils"
import { Scenario } from "@store-api/emulator"
import { test } from "@store-api/testing/test"
import { ConfigProvider, Effect, Queue } from "effect"
import * as command from "../src/internal/command.js"
import { askToken, bodyOf, callApi, connect, demoSecret, formType, json, send } from "./utils.js"

type Variables = Readonly<Record<string, string>>

/** Runs the command, which offers its output to this queue. */
const run = (printed: Queue.Enqueue<string>, args: ReadonlyArray<string>, variables: Variables = {}) =>
  Effect.flatMap(Effect.console, (console) =>
    command.run(args).pipe(
      Effect.withConsole({ ...console, log: (text: string) => Queue.offer(printed, text) }),
      Effect.withConfigProvider(ConfigProvider.fromMap(new Map(Object.entries(variables))))
    ))

/** What a run prints that ends by itself. */
const printed = (...args: ReadonlyArray<string>) =>
  Effect.gen(function*() {
    const printed = yield* Queue.unbounded<string>()
    yield* run(printed, args)
    return yield* Queue.take(printed)
  })

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

const newFolder = Effect.acquireRelease(
  Effect.sync(() => mkdtempSync(join(tmpdir(), "store-api-emulator-"))),
  (folder) => Effect.sync(() => rmSync(folder, { recursive: true }))
)

describe("store-api-emulator", () => {
  test.live("prints its URL and the variables of the demo client, which work as they are printed", function*() {
    const { greeting, url } = yield* start([], { STORE_API_CLIENT_SECRET: userSecret })
    assert.match(url, /^http:\/\/127\.0\.0\.1:\d+$/)
    const lines = greeting.split("\n")
    assert.include(lines, `export STORE_API_AUTH_URL='${url}'`)
    assert.include(lines, `export STORE_API_URL='${url}'`)
    assert.include(lines, "export STORE_API_CLIENT_ID='demo-client'")
    assert.include(lines, `export STORE_API_CLIENT_SECRET='${demoSecret}'`)
    const answer = yield* askToken(url)
    deepStrictEqual([answer.status, json(answer)["expires_in"]], [200, 3600])
    // The demo client has a secret of its own.
    assert.notInclude(greeting, userSecret)
    assert.strictEqual((yield* askToken(url, { body: bodyOf("demo-client", userSecret) })).status, 401)
  })

  test.live("listens on the given port", function*() {
    const { port } = new URL(yield* Effect.scoped(Effect.map(start([]), ({ url }) => url)))
    const { url } = yield* start(["--port", port])
    assert.strictEqual(url, `http://127.0.0.1:${port}`)
    assert.include(yield* fails(["--port", port]), `--port cannot be ${port}:`)
  })

  test.live.each<[line: string, expiresIn: number]>([
    ["--token-life 1500ms", 1],
    ["--token-life 5m", 300],
    ["--token-life 1h", 3600],
    ["--token-life=2s", 2],
    ["--lenient", 3600]
  ])("reads %s", function*([line, expiresIn]) {
    const { url } = yield* start(line.split(" "))
    const type = line === "--lenient" ? `${formType}; charset=utf-8` : formType
    assert.strictEqual(json(yield* askToken(url, { headers: { "Content-Type": type } }))["expires_in"], expiresIn)
  })

  test.live("--token-path and --client-authentication configure the token endpoint, which the log shows", function*() {
    const methods = ["--client-authentication", "client_secret_post", "--client-authentication=client_secret_basic"]
    const { next, url } = yield* start(["--token-path", "/oauth/token", ...methods])
    const basic = Buffer.from(`demo-client:${encodeURIComponent(demoSecret)}`).toString("base64")
    for (
      const changes of [
        { body: bodyOf("demo-client", encodeURIComponent(demoSecret)) },
        {
          headers: { "Content-Type": formType, Authorization: `Basic ${basic}` },
          body: "grant_type=client_credentials"
        }
      ]
    ) {
      assert.strictEqual((yield* askToken(url, { path: "/oauth/token", ...changes })).status, 200)
      assert.match(yield* next, /^[\d:]{8} POST \/oauth\/token 200$/)
    }
  })

  test.live("knows the client of the user, and never prints its secret", function*() {
    const running = yield* start(["--client-id", "my-id"], { STORE_API_CLIENT_SECRET: userSecret })
    assert.strictEqual((yield* askToken(running.url, { body: bodyOf("my-id", userSecret) })).status, 200)
    assert.strictEqual((yield* askToken(running.url)).status, 401)
    assert.include(running.greeting, "export STORE_API_CLIENT_ID='my-id'")
    for (const text of [running.greeting, yield* running.next, yield* running.next]) {
      assert.notInclude(text, userSecret)
      assert.notInclude(text, demoSecret)
    }
  })

  test.live("gives the invented secret to a client for which no variable is set, quoted for a shell", function*() {
    const { greeting, url } = yield* start(["--client-id", "it's $mine"])
    assert.include(greeting, "export STORE_API_CLIENT_ID='it'\\''s $mine'\n")
    assert.include(greeting, `export STORE_API_CLIENT_SECRET='${demoSecret}'`)
    assert.strictEqual((yield* askToken(url, { body: bodyOf("it's $mine", demoSecret) })).status, 200)
  })

  test.live("plays scenarios by name, in their order", function*() {
    const { url } = yield* start([
      "--scenario",
      "token/401-rfc",
      "--scenario=token/503-retry-after-twice",
      "--scenario",
      "api/403"
    ])
    deepStrictEqual([(yield* askToken(url)).status, (yield* askToken(url)).status], [401, 503])
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
    const lines = (yield* printed("--list")).split("\n")
    deepStrictEqual(lines.map((line) => line.split(/ +/)[0]), [...Scenario.names])
  })

  test("--help prints the flags in 80 columns, and two examples", function*() {
    const help = yield* printed("--help")
    for (const word of [...Object.keys(command.flags).map((name) => `--${name}`), "STORE_API_CLIENT_SECRET"]) {
      assert.include(help, word)
    }
    assert.isAtMost(Math.max(...help.split("\n").map((line) => line.length)), 80)
    assert.lengthOf(help.match(/^ {2}\$ store-api-emulator /gm) ?? [], 2)
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
    yield* askToken(url, { body: bodyOf("canary", "canary") })
    assert.strictEqual(
      yield* next,
      "POST /v1/oauth/accesstoken 401 The client_id is unknown or the client_secret is wrong."
    )
    yield* callApi(url, token, { method: "PUT", path: "/orders/7?canary=1", body: token })
    assert.strictEqual(yield* next, "PUT /orders/7?… 200")
    yield* callApi(url, token, { path: `/orders/${encodeURIComponent(token)}` })
    assert.strictEqual(yield* next, "GET <redacted> 200")
  })

  test.live.each(["--dotenv", "--env-file"])("%s writes the variables for this user, not its secret", function*(flag) {
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

  test.live.each(["shop\\new", "the shop's", "the \"shop\""])("--dotenv keeps the client id %s", function*(clientId) {
    const file = join(yield* newFolder, "my.env")
    yield* start(["--dotenv", file, "--client-id", clientId])
    assert.strictEqual(parseEnv(readFileSync(file, "utf8"))["STORE_API_CLIENT_ID"], clientId)
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

const secretVariable = "STORE_API_CLIENT_SECRET"

test.each<[what: string, named: string, line: string, secret?: string]>([
  ["an unknown flag", "--prot", "--prot 1"],
  ["a secret as a flag", "--client-secret", "--client-secret=canary"],
  ["a value of a switch", "--tls", "--tls=canary"],
  ["an argument", "The line", "canary"],
  ["a flag without its value", "--port", "--port"],
  ["a port that is not a number", "--port", "--port canary"],
  ["a lifetime that is not a duration", "--token-life", "--token-life canary"],
  ["a lifetime beyond an hour", "--token-life", "--token-life 2h"],
  ["a token path without a slash", "--token-path", "--token-path canary"],
  ["a method that does not exist", "--client-authentication", "--client-authentication canary"],
  ["a scenario that does not exist", "--scenario", "--scenario token/canary"],
  ["a scenario that needs TLS", "--scenario", "--scenario token/tls-expired"],
  ["an id that cannot be sent raw", "--client-id", "--client-id a&b"],
  ["a secret that cannot be sent raw", secretVariable, "--client-id my-id", "canary&x"],
  ["an empty secret", secretVariable, "--client-id my-id", ""]
])("store-api-emulator fails for %s with one sentence that begins with %s", function*([, named, line, secret]) {
  const sentence = yield* fails(line.split(" "), secret === undefined ? {} : { [secretVariable]: secret })
  assert.isTrue(sentence.startsWith(`${named} `), sentence)
})
