/** Tests the command in this process: its flags, variables, output and error messages. */
import { existsSync, readdirSync, readFileSync, statSync, writeFileSync } from "node:fs"
import { dirname, join } from "node:path"
import { parseEnv } from "node:util"
import { assert, describe, vi } from "@effect/vitest"
import { deepStrictEqual } from "@effect/vitest/utils"
import { Fault, Scenario } from "@store-api/emulator"
import { newFolder } from "@store-api/testing/loopback"
import { test } from "@store-api/testing/test"
import { ConfigProvider, Effect, Exit, Queue } from "effect"
import { commands } from "../src/EmulatorCommand.js"
import * as command from "../src/internal/command.js"
import { askToken, bodyOf, callApi, connect, demoSecret, failing } from "./utils.js"
import { formType, getToken, json, send, steer } from "./utils.js"

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

/** Starts the command and waits for its greeting. `next` takes the next line after that, and `ended` the next end. */
const start = (args: ReadonlyArray<string>, variables: Variables = {}, where = /export STORE_API_URL='(.*)'/) =>
  Effect.gen(function*() {
    const printed = yield* Queue.unbounded<string>()
    const fiber = yield* Effect.forkScoped(run(printed, args, variables))
    const greeting = yield* Effect.raceFirst(Queue.take(printed), Effect.zipRight(fiber, Effect.never))
    const [, url = ""] = where.exec(greeting) ?? []
    const next = Queue.take(printed)
    const ended = Effect.repeat(next, { until: (line) => line.includes(" ← ") })
    return { url, greeting, next, ended }
  })

const userSecret = "canary-of-a-user+/="

const emptyFolder = newFolder("store-api-emulator")

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
    const { ended, url } = yield* start(["--token-path", "/oauth/token", ...methods])
    const basic = Buffer.from(`demo-client:${encodeURIComponent(demoSecret)}`).toString("base64")
    const headers = { "Content-Type": formType, Authorization: `Basic ${basic}` }
    const inHeader = { headers, body: "grant_type=client_credentials" }
    for (const changes of [{ body: bodyOf("demo-client", encodeURIComponent(demoSecret)) }, inHeader]) {
      assert.strictEqual((yield* askToken(url, { path: "/oauth/token", ...changes })).status, 200)
      assert.match(yield* ended, / POST \/oauth\/token 200 in /)
    }
  })

  test.live("knows the client of the user, and never prints its secret", function*() {
    const running = yield* start(["--client-id", "my-id"], { STORE_API_CLIENT_SECRET: userSecret })
    assert.strictEqual((yield* askToken(running.url, { body: bodyOf("my-id", userSecret) })).status, 200)
    assert.strictEqual((yield* askToken(running.url)).status, 401)
    assert.include(running.greeting, "export STORE_API_CLIENT_ID='my-id'")
    for (const text of [running.greeting, yield* running.ended, yield* running.ended]) {
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
    const line = "--scenario token/401-rfc --scenario=token/503-retry-after-twice --scenario api/403"
    const { url } = yield* start(line.split(" "))
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
    const words = [...Object.keys(commands).join(" ").split(" "), ...Object.keys(commands[""].flags)]
    for (const word of words) assert.include(help, word)
    assert.isAtMost(Math.max(...help.split("\n").map((line) => line.length)), 80)
    assert.lengthOf(help.match(/^ {2}\$ store-api-emulator /gm) ?? [], 2)
  })

  test.live("prints a request when it starts and when it ends, although an earlier one is still open", function*() {
    const { next, url } = yield* start(["--scenario", "token/silence"])
    const socket = yield* connect(url)
    socket.write("POST /v1/oauth/accesstoken HTTP/1.1\r\nHost: localhost\r\nContent-Length: 0\r\n\r\n")
    assert.match(yield* next, /^\d\d:\d\d:\d\d → 1 POST \/v1\/oauth\/accesstoken$/)
    yield* send(url, { path: "/orders" })
    assert.match(yield* next, /^[\d:]{8} → 2 GET \/orders$/)
    assert.match(yield* next, /^[\d:]{8} ← 2 GET \/orders 401 in \d+ ms: Send Authorization: Bearer /)
    socket.destroy()
    assert.match(yield* next, /← 1 POST \/v1\/oauth\/accesstoken no response after \d+ ms: fault token\/silence$/)
  })

  test("prints the time of this machine's zone, as the page does", function*() {
    vi.stubEnv("TZ", "Asia/Tokyo")
    yield* Effect.addFinalizer(() => Effect.sync(() => vi.unstubAllEnvs()))
    const { next, url } = yield* start([])
    yield* send(url, { path: "/orders" })
    assert.strictEqual(yield* next, "09:00:00 → 1 GET /orders")
  })

  test.live.each(
    [
      ["text", /^[\d:]{8} → connection: fault token\/reset-on-accept$/, /← connection ended after \d+ ms: fault token/],
      ["json", /^{"event":"start",/, /"fault token\/reset-on-accept".*"duration":\d+}$/]
    ] as const
  )("--log %s shows the start and the end of a connection that meets a fault", function*([log, first, last]) {
    const { next, url } = yield* start(["--scenario", "token/reset-on-accept", "--log", log], {}, /(http:[\d./]+:\d+)/)
    yield* Effect.flip(send(url))
    assert.match(yield* next, first)
    assert.match(yield* next, last)
  })

  test.live("logs the token by its number and the reason of a refusal, without secret, token or query", function*() {
    const { ended, url } = yield* start([])
    const end = Effect.map(ended, (line) => line.replace(/^[\d:]{8} ← /, "").replace(/[\d:]{8}$|\d+ ms/g, "…"))
    const token = String(json(yield* askToken(url))["access_token"])
    assert.strictEqual(yield* end, "1 POST /v1/oauth/accesstoken 200 in …, token #1 until …")
    yield* askToken(url, { body: bodyOf("canary", "canary") })
    assert.strictEqual(
      yield* end,
      "2 POST /v1/oauth/accesstoken 401 in …: The client_id is unknown or the client_secret is wrong."
    )
    yield* callApi(url, token, { method: "PUT", path: "/orders/7?canary=1", body: token })
    assert.strictEqual(yield* end, "3 PUT /orders/7?… 200 in …, token #1 until …")
    yield* callApi(url, token, { path: `/orders/${encodeURIComponent(token)}` })
    assert.strictEqual(yield* end, "4 GET <redacted> 200 in …, token #1 until …")
  })

  test.live("--log json prints the greeting, each start and each end as one JSON object", function*() {
    const { greeting, next } = yield* start(["--log", "json", "--scenario", "api/403"], {}, /"url":"([^"]*)"/)
    const { url, variables } = JSON.parse(greeting) as { url: string; variables: Variables }
    assert.strictEqual(variables["STORE_API_URL"], url)
    const token = yield* getToken(url)
    yield* callApi(url, token, { path: "/orders?canary=1" })
    const lines = yield* Effect.replicateEffect(next, 4)
    for (const secret of [token, "canary"]) assert.notInclude(lines.join(), secret)
    const [, issued, start3, end] = lines.map((line) => JSON.parse(line) as Readonly<Record<string, unknown>>)
    assert.nestedPropertyVal(issued, "token.id", 1)
    deepStrictEqual([start3?.["event"], start3?.["token"], start3?.["status"]], ["start", issued?.["token"], null])
    deepStrictEqual([end?.["event"], end?.["id"], end?.["reason"]], ["end", 2, "fault api/403"])
    assert.isNumber(end?.["duration"])
  })

  test.live("--responses is what the API responds to requests with a token", function*() {
    const file = join(yield* emptyFolder, "responses.json")
    const body = [{ id: 7, article: "chair" }]
    const deletes = { method: "delete", path: "/orders/7", status: 204, headers: { "X-Mine": "1" } }
    writeFileSync(file, JSON.stringify([{ path: "/orders", body }, deletes]))
    const { url } = yield* start(["--responses", file])
    const token = yield* getToken(url)
    deepStrictEqual(JSON.parse((yield* callApi(url, token, { path: "/orders?page=2" })).text), body)
    const removed = yield* callApi(url, token, { method: "DELETE", path: "/orders/7" })
    deepStrictEqual([removed.status, removed.headers["x-mine"], removed.text], [204, "1", ""])
    deepStrictEqual(json(yield* callApi(url, token, { path: "/orders/7" }))["path"], "/orders/7")
    assert.strictEqual((yield* send(url, { path: "/orders" })).status, 401)
    writeFileSync(file, `[{"path":"orders"}]`)
    assert.match(yield* fails(["--responses", file]), /^--responses\[0\][.]path must be like /)
  })

  test.live("--state keeps tokens for the next start, and only for this user", function*() {
    const file = join(yield* emptyFolder, "state.json")
    const once = <A, E>(use: (url: string) => Effect.Effect<A, E>) =>
      Effect.scoped(Effect.flatMap(start(["--state", file]), ({ url }) => use(url)))
    const [kept, revoked] = yield* once((url) => Effect.all([getToken(url), getToken(url)]))
    yield* once((url) => steer(url, "revoke", { argument: "2" }))
    assert.strictEqual(statSync(file).mode & 0o777, 0o600)
    deepStrictEqual(readdirSync(dirname(file)), ["state.json"])
    yield* once((url) =>
      Effect.gen(function*() {
        const statuses = yield* Effect.forEach([kept, revoked], (token) => callApi(url, token))
        deepStrictEqual(statuses.map(({ status }) => status), [200, 401])
        yield* getToken(url)
        const { message } = json(yield* steer(url, "tokens", {}))
        deepStrictEqual(String(message).match(/^#\d/gm), ["#1", "#2", "#3"])
      })
    )
    const foreign = join(dirname(file), "foreign.json")
    writeFileSync(foreign, "canary")
    assert.match(yield* fails(["--state", foreign]), /^--state must be a JSON file that an emulator wrote/)
    assert.strictEqual(readFileSync(foreign, "utf8"), "canary")
  })

  test.live("fail, clear, revoke, requests and tokens steer the emulator of the port or of STORE_API_AUTH_URL", function*() {
    const { url } = yield* start([])
    const { port } = new URL(url)
    const says = (line: string, variables: Variables = { STORE_API_AUTH_URL: url }) =>
      Effect.flatMap(
        Queue.unbounded<string>(),
        (printed) => Effect.zipRight(run(printed, line.split(" "), variables), Queue.take(printed))
      )
    assert.strictEqual(yield* says("fail token/503-json --times 2"), "token/503-json applies to the next 2 requests.")
    deepStrictEqual([(yield* askToken(url)).status, (yield* askToken(url)).status], [503, 503])
    const token = yield* getToken(url)
    assert.match(yield* says(`tokens --port ${port}`, {}), /^#1 demo-client valid until [\d:]{8}$/)
    assert.strictEqual(yield* says("revoke #1"), "Revoked 1 token.")
    assert.strictEqual((yield* callApi(url, token)).status, 401)
    assert.strictEqual(yield* says("tokens"), "#1 demo-client revoked")
    assert.include(yield* says("fail token/reset-on-accept"), " applies to the next requests.")
    assert.include(yield* says("fail token/fails-then-works"), " applies to the next 3 requests.")
    assert.include(yield* says("fail token/drip --times 1"), " applies to the next request, after the earlier faults, ")
    assert.match(yield* fails(["fail", "no\u001b\u009b", "--port", port]), /"no\?\?" must .* emulator's --list /)
    assert.match(yield* fails(["revoke", "99", "--port", port]), /: There is no token 99; list them with `tokens`[.]$/)
    assert.isTrue(Exit.isFailure(yield* Effect.exit(askToken(url))))
    assert.strictEqual(yield* says("clear"), "There are no more faults.")
    const other = yield* failing(Fault.body(`{"message":"a\\u001b\\u009b\\nb"}`, { on: "api" }))
    assert.strictEqual(yield* says(`requests --port ${new URL(other.url).port}`), "a??\nb")
    yield* Effect.all([getToken(url), getToken(url)])
    assert.strictEqual(yield* says("revoke"), "Revoked 2 tokens.")
    const lines = (yield* says("requests")).split("\n")
    deepStrictEqual(lines.map((line) => line.split(" ")[2]), ["1", "2", "3", "4", "5", "6"])
    const elsewhere = { STORE_API_AUTH_URL: "https://store.example.invalid" }
    assert.match(yield* fails(["clear"], elsewhere), /^STORE_API_AUTH_URL must be the URL of an emulator on 127/)
    assert.match(lines[3] ?? "", /GET \/orders 401 in .* ms, token #1 until .*: The access token was revoked$/)
  })

  test.live.each(["--dotenv", "--env-file"])("%s writes the variables for this user, not its secret", function*(flag) {
    const folder = yield* emptyFolder
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
    assert.include(error.message, `${flag} must be a new file in a folder that exists, an empty file, or one that`)
    assert.strictEqual(readFileSync(another, "utf8"), "STORE_API_CLIENT_SECRET=invented")
  })

  test.live.each(["shop\\new", "the shop's", "the \"shop\""])("--dotenv keeps the client id %s", function*(clientId) {
    const file = join(yield* emptyFolder, "my.env")
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
  ["an argument", "The command line", "canary"],
  ["a flag without its value", "--port", "--port"],
  ["a port that is not a number", "--port", "--port canary"],
  ["a lifetime that is not a duration", "--token-life", "--token-life canary"],
  ["a lifetime beyond an hour", "--token-life", "--token-life 2h"],
  ["a token path without a slash", "--token-path", "--token-path canary"],
  ["a method that does not exist", "--client-authentication", "--client-authentication canary"],
  ["a scenario that does not exist", "--scenario", "--scenario token/canary"],
  ["a scenario that needs TLS", "--scenario", "--scenario token/tls-expired"],
  ["another format of the log", "--log", "--log canary"],
  ["no file of responses", "--responses", "--responses /canary/responses.json"],
  ["a state that cannot be written", "--state", "--state /canary/state.json"],
  ["a command without its argument", "The command line", "fail"],
  ["a flag of another command", "--tls", "clear --tls"],
  ["an unknown emulator", "--port", "clear"],
  ["a port without an emulator", "--port", "clear --port 9"],
  ["an id that cannot be sent raw", "--client-id", "--client-id a&b"],
  ["a secret that cannot be sent raw", secretVariable, "--client-id my-id", "canary&x"],
  ["an empty secret", secretVariable, "--client-id my-id", ""]
])("store-api-emulator fails for %s with one sentence that begins with %s", function*([, named, line, secret]) {
  const sentence = yield* fails(line.split(" "), secret === undefined ? {} : { [secretVariable]: secret })
  assert.isTrue(sentence.startsWith(`${named} `), sentence)
})
