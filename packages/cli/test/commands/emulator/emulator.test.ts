/** `store-api emulator`. The tests of the package have the rules of the service. */
import {
  existsSync,
  readdirSync,
  readFileSync,
  statSync,
  symlinkSync,
  writeFileSync
} from "node:fs"
import { join } from "node:path"
import { parseEnv } from "node:util"
import { assert, vi } from "@effect/vitest"
import { deepStrictEqual } from "@effect/vitest/utils"
import { Fault, Scenario } from "@store-api/emulator"
import { freePort } from "@store-api/testing/loopback"
import { test } from "@store-api/testing/test"
import { Effect, Fiber, type Scope } from "effect"
import { newKeys, signAssertion } from "../../support/assertions.js"
import {
  demoSecret,
  expectRefusal,
  expectSuccess,
  newUser,
  run,
  type Running,
  start,
  startedWith,
  type User,
  variablesIn
} from "../../support/cli.js"

const secretVariable = "STORE_API_CLIENT_SECRET"

const realSecret = "canary-of-a-user+/="

const wordsOf = (line: string) =>
  ["emulator", ...line.split(" ")].filter((word) => word !== "")

/** Starts an emulator in the environment of a real client, and waits for the variables that it prints. */
const emulatorWith = (line = "", owner?: User) =>
  Effect.gen(function*() {
    const user = owner ??
      (yield* newUser({ [secretVariable]: realSecret }, Effect.succeed([realSecret])))
    const running = yield* start(user, wordsOf(line), { shows: true })
    yield* running.shows(/\n\n.*\n\n/s)
    const variables = variablesIn(running.stdout.text)
    const { STORE_API_URL: url = "" } = variables
    return { ...running, user, variables, url, client: yield* newUser(variables) }
  })

/** The lines after the greeting, once there are so many. The times are left out. */
const linesOf = (running: Running, count: number) =>
  Effect.map(
    running.shows(new RegExp(`\n\n.*\n\n(.*\n){${count}}`, "s")),
    () =>
      (running.stdout.text.split("\n\n")[2] ?? "").replace(/[\d:]{8}|\d+(?= ms)/g, "…").trim()
        .split("\n")
  )

/** Sends a request without the library, on a connection of its own. */
const send = (
  url: string,
  { headers, ...init }: RequestInit & { readonly headers?: Record<string, string> } = {}
) =>
  Effect.tryPromise((signal) =>
    fetch(url, { ...init, headers: { ...headers, Connection: "close" }, signal })
  )

const formType = "application/x-www-form-urlencoded"

/** Sends a token request, and returns the status and the body. */
const ask = (url: string, id = "demo-client", secret = demoSecret, type = formType) =>
  Effect.gen(function*() {
    const body = `grant_type=client_credentials&client_id=${id}&client_secret=${secret}`
    const init = { method: "POST", headers: { "Content-Type": type }, body }
    const response = yield* send(`${url}/v1/oauth/accesstoken`, init)
    const text = yield* Effect.promise(() => response.text())
    const content = JSON.parse(text || "{}") as Readonly<Record<string, unknown>>
    return {
      status: response.status,
      token: String(content["access_token"]),
      expiresIn: content["expires_in"]
    }
  })

const call = (url: string, token: string, path = "/orders", init: RequestInit = {}) =>
  send(`${url}${path}`, { ...init, headers: { Authorization: `Bearer ${token}` } })

test.live("emulator prints variables with which other commands work", function*() {
  const { client, url, variables } = yield* emulatorWith()
  assert.match(url, /^http:\/\/127\.0\.0\.1:\d+$/)
  deepStrictEqual(variables, {
    STORE_API_AUTH_URL: url,
    STORE_API_URL: url,
    STORE_API_CLIENT_ID: "demo-client",
    [secretVariable]: demoSecret
  })
  assert.strictEqual((yield* run(client, ["call", "/orders", "--fail"])).code, 0)
})

test.live("emulator uses no secret of the environment for the demo client", function*() {
  const { stdout, url } = yield* emulatorWith()
  deepStrictEqual([
    (yield* ask(url)).status,
    (yield* ask(url, "demo-client", realSecret)).status
  ], [200, 401])
  assert.notInclude(stdout.text, realSecret)
})

test.live("emulator prints a line for each start of a request, its end, its token and its fault", function*() {
  const emulator = yield* emulatorWith("--scenario api/403")
  const { url } = emulator
  yield* call(url, (yield* ask(url)).token, "/orders?canary=1")
  yield* ask(url, "demo-client", realSecret)
  deepStrictEqual(yield* linesOf(emulator, 6), [
    "… → 1 POST /v1/oauth/accesstoken",
    "… ← 1 POST /v1/oauth/accesstoken 200 in … ms, token #1 until …",
    "… → 2 GET /orders?…, token #1 until …",
    "… ← 2 GET /orders?… 403 in … ms, token #1 until …: fault api/403",
    "… → 3 POST /v1/oauth/accesstoken",
    "… ← 3 POST /v1/oauth/accesstoken 401 in … ms: The client_id is unknown or the client_secret is wrong."
  ])
})

test.live("emulator listens on the port of --port", function*() {
  const port = yield* freePort
  const { url } = yield* emulatorWith(`--port ${port}`)
  assert.strictEqual(url, `http://127.0.0.1:${port}`)
})

test.live.each<[line: string, expiresIn: number, type?: string]>([
  ["--token-life 1500ms", 1],
  ["--token-life 5m", 300],
  ["--token-life 1h", 3600],
  ["--token-life=2s", 2],
  ["--lenient", 3600, `${formType}; charset=utf-8`]
])("emulator %s applies to its tokens or requests", function*([line, expiresIn, type]) {
  const { url } = yield* emulatorWith(line)
  assert.strictEqual((yield* ask(url, undefined, undefined, type)).expiresIn, expiresIn)
})

test.live("--token-path names the path of the token endpoint", function*() {
  const { url } = yield* emulatorWith("--token-path /oauth/token")
  const body =
    `grant_type=client_credentials&client_id=demo-client&client_secret=${demoSecret}`
  const init = { method: "POST", headers: { "Content-Type": formType }, body }
  assert.strictEqual((yield* send(`${url}/oauth/token`, init)).status, 200)
})

const encodedSecret = encodeURIComponent(demoSecret)
const basic = Buffer.from(`demo-client:${encodedSecret}`).toString("base64")

test.live.each<[method: string, headers: Record<string, string>, fields: string]>([
  ["client_secret_post", {}, `&client_id=demo-client&client_secret=${encodedSecret}`],
  ["client_secret_basic", { Authorization: `Basic ${basic}` }, ""]
])("--client-authentication allows %s among others", function*([, headers, fields]) {
  const { url } = yield* emulatorWith(
    "--client-authentication client_secret_post --client-authentication=client_secret_basic"
  )
  const response = yield* send(`${url}/v1/oauth/accesstoken`, {
    method: "POST",
    headers: { "Content-Type": formType, ...headers },
    body: `grant_type=client_credentials${fields}`
  })
  assert.strictEqual(response.status, 200)
})

test.live("--public-key verifies assertions, for which no secret is printed", function*() {
  const user = yield* newUser({})
  const { privateKey, publicKey } = newKeys()
  writeFileSync(join(user.cwd, "client.pem"), publicKey)
  const { stdout, url } = yield* emulatorWith(
    "--client-authentication private_key_jwt --public-key client.pem",
    user
  )
  assert.notInclude(stdout.text, secretVariable)
  const endpoint = `${url}/v1/oauth/accesstoken`
  const assertion = signAssertion("demo-client", endpoint, privateKey)
  const response = yield* send(endpoint, {
    method: "POST",
    headers: { "Content-Type": formType },
    body: new URLSearchParams({
      grant_type: "client_credentials",
      client_assertion_type: "urn:ietf:params:oauth:client-assertion-type:jwt-bearer",
      client_assertion: assertion
    }).toString()
  })
  assert.strictEqual(response.status, 200)
})

test.live("--client-id replaces the demo client by that of the environment", function*() {
  const { url, variables } = yield* emulatorWith("--client-id my-id")
  assert.strictEqual(variables["STORE_API_CLIENT_ID"], "my-id")
  deepStrictEqual(
    [(yield* ask(url, "my-id", realSecret)).status, (yield* ask(url)).status],
    [200, 401]
  )
})

test.live("--client-id prints no secret", function*() {
  const { stdout } = yield* emulatorWith("--client-id my-id")
  for (const secret of [realSecret, demoSecret]) assert.notInclude(stdout.text, secret)
})

/** An emulator without a secret in the environment. */
const startQuoted = Effect.gen(function*() {
  const args = ["emulator", "--client-id", "it's $mine"]
  const { shows, stdout } = yield* start(yield* newUser({}), args, { shows: true })
  yield* shows(/\n\n.*\n\n/s)
  return stdout.text
})

test.live("a client without a secret in the environment gets the invented one", function*() {
  assert.include(yield* startQuoted, `export ${secretVariable}='${demoSecret}'\n`)
})

test.live("emulator quotes the variables for a shell", function*() {
  assert.include(
    yield* startQuoted,
    "export STORE_API_CLIENT_ID='it'\\''s $mine'\n"
  )
})

test.live("emulator plays the scenarios of --scenario in their order", function*() {
  const line =
    "--scenario token/401-rfc --scenario=token/503-retry-after-twice --scenario api/403"
  const { url } = yield* emulatorWith(line)
  deepStrictEqual([(yield* ask(url)).status, (yield* ask(url)).status], [401, 503])
  assert.strictEqual((yield* call(url, (yield* ask(url)).token)).status, 403)
})

test.live("--tls prints a file with the certificate", function*() {
  const { url, variables } = yield* emulatorWith("--tls --scenario token/tls-expired")
  assert.match(url, /^https:/)
  const text = readFileSync(variables["NODE_EXTRA_CA_CERTS"] ?? "", "utf8")
  assert.match(text, /^-----BEGIN CERTIFICATE-----\n/)
})

test.live("--tls removes the file with the certificate at the end", function*() {
  const file = yield* Effect.scoped(
    Effect.map(emulatorWith("--tls"), ({ variables }) => variables["NODE_EXTRA_CA_CERTS"])
  )
  assert.isString(file)
  assert.isFalse(existsSync(file ?? ""))
})

test.live("--list prints a line per scenario", function*() {
  const lines = (yield* expectSuccess(yield* newUser({}), "emulator --list")).trim().split(
    "\n"
  )
  deepStrictEqual(lines.map((line) => line.split(/ +/)[0]), [...Scenario.names])
})

test.live("emulator prints a request although an earlier one is still open", function*() {
  const emulator = yield* emulatorWith("--scenario token/silence")
  const silent = yield* Effect.fork(ask(emulator.url))
  yield* linesOf(emulator, 1)
  yield* send(`${emulator.url}/orders`)
  yield* linesOf(emulator, 3)
  yield* Fiber.interrupt(silent)
  const [first, second, third = "", last] = yield* linesOf(emulator, 4)
  deepStrictEqual([first, second], ["… → 1 POST /v1/oauth/accesstoken", "… → 2 GET /orders"])
  assert.match(third, /^… ← 2 GET \/orders 401 in … ms: Send Authorization: Bearer /)
  assert.strictEqual(
    last,
    "… ← 1 POST /v1/oauth/accesstoken no response after … ms: fault token/silence"
  )
})

test("emulator prints times in this machine's zone, as the page does", function*() {
  vi.stubEnv("TZ", "Asia/Tokyo")
  yield* Effect.addFinalizer(() => Effect.sync(() => vi.unstubAllEnvs()))
  const { shows, stdout, url } = yield* emulatorWith()
  yield* send(`${url}/orders`)
  // Any line, so that a wrong one fails and is not waited for.
  yield* shows(/ → .*\n/)
  assert.strictEqual(/^.* → .*$/m.exec(stdout.text)?.[0], "09:00:00 → 1 GET /orders")
})

test.live("emulator prints no token in a path", function*() {
  const emulator = yield* emulatorWith()
  const { token } = yield* ask(emulator.url)
  yield* call(emulator.url, token, `/orders/${encodeURIComponent(token)}`)
  const lines = yield* linesOf(emulator, 4)
  assert.strictEqual(lines[3], "… ← 2 GET <redacted> 200 in … ms, token #1 until …")
})

test.live("emulator prints the start and the end of a connection that meets a fault", function*() {
  const emulator = yield* emulatorWith()
  yield* expectSuccess(emulator.client, "emulator fail token/reset-on-accept --times 1")
  yield* Effect.flip(send(emulator.url))
  deepStrictEqual(yield* linesOf(emulator, 2), [
    "… → connection: fault token/reset-on-accept",
    "… ← connection ended after … ms: fault token/reset-on-accept"
  ])
})

/** The greeting, and the lines of a token request and of a call that fails. */
const startWithJson = Effect.gen(function*() {
  const words = wordsOf("--log json --scenario api/403")
  const { shows, stdout } = yield* start(yield* newUser({}), words, { shows: true })
  yield* shows(/"listening".*\n/)
  const greeting = JSON.parse(stdout.text) as {
    readonly url: string
    readonly variables: Readonly<Record<string, string>>
  }
  const { token } = yield* ask(greeting.url)
  yield* call(greeting.url, token, "/orders?canary=1")
  yield* shows(/(.*\n){5}/)
  const lines = stdout.text.trim().split("\n").slice(1)
  const entries = lines.map((line) => JSON.parse(line) as Readonly<Record<string, unknown>>)
  return { entries, greeting, token, text: lines.join() }
})

test.live("--log json prints the greeting with the variables", function*() {
  const { url, variables } = (yield* startWithJson).greeting
  assert.strictEqual(variables["STORE_API_URL"], url)
})

test.live("--log json prints each start and each end as an object", function*() {
  const [, tokenEnd, callStart, callEnd] = (yield* startWithJson).entries
  assert.nestedPropertyVal(tokenEnd, "token.id", 1)
  deepStrictEqual([callStart?.["event"], callStart?.["token"], callStart?.["status"]], [
    "start",
    tokenEnd?.["token"],
    null
  ])
  deepStrictEqual([callEnd?.["event"], callEnd?.["id"], callEnd?.["reason"]], [
    "end",
    2,
    "fault api/403"
  ])
  assert.isNumber(callEnd?.["duration"])
})

test.live("--log json prints no secret part of a request", function*() {
  const { text, token } = yield* startWithJson
  assert.include(text, "/orders")
  for (const secret of [token, "canary"]) assert.notInclude(text, secret)
})

const writeResponses = ({ cwd }: User, responses: unknown) =>
  writeFileSync(join(cwd, "api.json"), JSON.stringify(responses))

test.live("--responses names the body for a path", function*() {
  const user = yield* newUser({})
  const body = [{ id: 7, article: "chair" }]
  writeResponses(user, [{ path: "/orders", body }])
  const { url } = yield* emulatorWith("--responses api.json", user)
  const orders = yield* call(url, (yield* ask(url)).token, "/orders?page=2")
  deepStrictEqual(yield* Effect.promise(() => orders.json()), body)
})

test.live("--responses names the status and headers for a method", function*() {
  const user = yield* newUser({})
  const headers = { "X-Mine": "1" }
  writeResponses(user, [{ method: "delete", path: "/orders/7", status: 204, headers }])
  const { url } = yield* emulatorWith("--responses api.json", user)
  const { token } = yield* ask(url)
  const response = yield* call(url, token, "/orders/7", { method: "DELETE" })
  deepStrictEqual([response.status, response.headers.get("X-Mine")], [204, "1"])
})

test.live("--responses with a wrong path is refused by its number", function*() {
  const user = yield* newUser({})
  writeResponses(user, [{ path: "orders" }])
  const message = /^store-api: --responses\[0\][.]path must be like /
  yield* expectRefusal(user, "emulator --responses api.json", 2, message)
})

/** Starts an emulator with the state of the user, and ends it. */
const useState = <A, E>(
  user: User,
  use: (url: string, client: User) => Effect.Effect<A, E, Scope.Scope>
) =>
  Effect.scoped(
    Effect.flatMap(
      emulatorWith("--state state.json", user),
      ({ client, url }) => use(url, client)
    )
  )
const stateOf = ({ cwd }: User) => readFileSync(join(cwd, "state.json"), "utf8")

test.live("--state keeps tokens for the next start", function*() {
  const user = yield* newUser({})
  const { token } = yield* useState(user, (url) => ask(url))
  const { status } = yield* useState(user, (url) => call(url, token))
  assert.strictEqual(status, 200)
})

test.live("--state keeps for the next start that a token was revoked", function*() {
  const user = yield* newUser({})
  const { token } = yield* useState(user, (url) => ask(url))
  yield* useState(user, (_, client) => expectSuccess(client, "emulator revoke 1"))
  const { status } = yield* useState(user, (url) => call(url, token))
  assert.strictEqual(status, 401)
})

test.live("--state keeps each token of requests at once", function*() {
  const user = yield* newUser({})
  yield* useState(
    user,
    (url) => Effect.all(Effect.replicate(ask(url), 20), { concurrency: 8 })
  )
  const ids = [...stateOf(user).matchAll(/"id":(\d+)/g)].map(([, id]) => Number(id))
  deepStrictEqual(ids, Array.from({ length: 20 }, (_, index) => index + 1))
})

test.live("--state writes one file that only this user can read", function*() {
  const user = yield* newUser({})
  yield* useState(user, (url) => ask(url))
  assert.strictEqual(statSync(join(user.cwd, "state.json")).mode & 0o777, 0o600)
  deepStrictEqual(readdirSync(user.cwd), ["state.json"])
})

test.live("--state replaces no file of another kind", function*() {
  const user = yield* newUser({})
  const file = join(user.cwd, "foreign.json")
  writeFileSync(file, "canary")
  const message = "--state must be a JSON file with an array of tokens."
  yield* expectRefusal(user, "emulator --state foreign.json", 2, message)
  assert.strictEqual(readFileSync(file, "utf8"), "canary")
})

test.live.each([
  ["an empty file", ""],
  ["a file that an emulator wrote", "# Written by store-api-emulator\nOLD=1"]
])("--dotenv writes the variables to %s, without the user's secret", function*([, text]) {
  const user = yield* newUser({ [secretVariable]: realSecret })
  const file = join(user.cwd, "my.env")
  writeFileSync(file, text)
  const { variables } = yield* Effect.scoped(emulatorWith("--dotenv my.env", user))
  deepStrictEqual(parseEnv(readFileSync(file, "utf8")), {
    ...variables,
    [secretVariable]: demoSecret
  })
})

test.live("--dotenv writes a file that only this user can read", function*() {
  const user = yield* newUser({})
  const file = join(user.cwd, "my.env")
  writeFileSync(file, "", { mode: 0o644 })
  yield* Effect.scoped(emulatorWith("--dotenv my.env", user))
  assert.strictEqual(statSync(file).mode & 0o777, 0o600)
})

test.live.each([".env", "."])("--dotenv replaces no file of others: %s", function*(name) {
  const user = yield* newUser({})
  const file = join(user.cwd, ".env")
  writeFileSync(file, `${secretVariable}=invented`)
  const message = "--dotenv must be a new file, an empty one, or one that an emulator wrote."
  yield* expectRefusal(user, `emulator --dotenv ${name}`, 2, message)
  assert.strictEqual(readFileSync(file, "utf8"), `${secretVariable}=invented`)
})

test.live("--dotenv replaces no device", function*() {
  const user = yield* newUser({})
  // By a link, because a command that replaces /dev/null itself would harm the machine that runs this test.
  symlinkSync("/dev/null", join(user.cwd, "device"))
  const message = /^store-api: Cannot write \S*device: it is not a regular file[.]\n$/
  yield* expectRefusal(user, "emulator --dotenv device", 3, message)
})

test.live.each(["shop\\new", "the shop's", "the \"shop\""])(
  "--dotenv keeps the client id %s",
  function*(clientId) {
    const user = yield* newUser({})
    const { shows } = yield* start(user, [
      "emulator",
      "--dotenv",
      "my.env",
      "--client-id",
      clientId
    ], { shows: true })
    yield* shows(/STORE_API_CLIENT_ID/)
    assert.strictEqual(
      parseEnv(readFileSync(join(user.cwd, "my.env"), "utf8"))["STORE_API_CLIENT_ID"],
      clientId
    )
  }
)

/** An emulator, its token requests, and the commands that steer it. */
const startSteered = Effect.map(emulatorWith(), ({ client, url }) => ({
  url,
  says: (line: string) =>
    Effect.map(expectSuccess(client, wordsOf(line)), (text) => text.trimEnd()),
  refuses: (line: string, message: string) =>
    expectRefusal(client, wordsOf(line), 2, `The emulator refused this: ${message}`)
}))

test.live("emulator fail makes the next requests fail", function*() {
  const { says, url } = yield* startSteered
  const text = yield* says("fail token/503-json --times 2")
  assert.strictEqual(text, "Next faults: token/503-json × 2.")
  const statuses = yield* Effect.replicateEffect(
    Effect.map(ask(url), ({ status }) => status),
    3
  )
  deepStrictEqual(statuses, [503, 503, 200])
})

test.live("emulator fail adds to the faults that are left", function*() {
  const { says } = yield* startSteered
  yield* says("fail token/reset-on-accept --times 1")
  assert.strictEqual(
    yield* says("fail api/403"),
    "Next faults: token/reset-on-accept × 1, api/403."
  )
})

test.live("emulator clear removes the faults", function*() {
  const { says, url } = yield* startSteered
  yield* says("fail token/503-json")
  assert.strictEqual(yield* says("clear"), "There are no more faults.")
  assert.strictEqual((yield* ask(url)).status, 200)
})

test.live("emulator tokens steers the emulator of --port", function*() {
  const { url } = yield* startSteered
  yield* ask(url)
  assert.match(
    yield* expectSuccess(yield* newUser({}), wordsOf(`tokens --port ${new URL(url).port}`)),
    /^#1 demo-client valid until [\d:]{8}\n$/
  )
})

test.live("emulator revoke revokes a token by its number", function*() {
  const { says, url } = yield* startSteered
  const { token } = yield* ask(url)
  assert.strictEqual(yield* says("revoke #1"), "Revoked 1 token.")
  assert.strictEqual((yield* call(url, token)).status, 401)
  assert.strictEqual(yield* says("tokens"), "#1 demo-client revoked")
})

test.live("emulator revoke without a number revokes all tokens", function*() {
  const { says, url } = yield* startSteered
  yield* Effect.all([ask(url), ask(url)])
  assert.strictEqual(yield* says("revoke"), "Revoked 2 tokens.")
})

test.live("emulator requests prints the last requests", function*() {
  const { says, url } = yield* startSteered
  const { token } = yield* ask(url)
  yield* says("revoke")
  yield* call(url, token)
  const lines = (yield* says("requests")).split("\n")
  deepStrictEqual(lines.map((line) => line.split(" ")[2]), ["1", "2"])
  assert.match(
    lines[1] ?? "",
    /GET \/orders 401 in .* ms, token #1 until .*: The access token was revoked$/
  )
})

test.live.each([
  ["fail no\u001b", "The option scenario must be a name that the emulator's --list prints."],
  ["fail token/tls", "The option tls must be true for this fault."],
  ["revoke x", "The token must be its number, such as 3."],
  ["revoke 99", "There is no valid token 99; see `tokens`."]
])("the emulator refuses %s with a sentence", function*([line, message]) {
  const { refuses } = yield* startSteered
  yield* refuses(line, message)
})

test.live("control characters of a server that is taken for the emulator are shown in a harmless form", function*() {
  const { user } = yield* startedWith(
    {},
    Fault.body(`{"message":"a\\u001b\\u009b\\nb"}`, { on: "api" })
  )
  assert.strictEqual(yield* expectSuccess(user, wordsOf("requests")), "a^[<U+009b>\nb\n")
})

const notFound =
  "No emulator was found. Use --port PORT, or export its URL as STORE_API_AUTH_URL."

test.live.each<[line: string, code: number, message: string | RegExp, env?: User["env"]]>([
  [
    "--prot 1",
    2,
    "Unknown option '--prot'. Did you mean --port? See store-api emulator --help."
  ],
  ["--port", 2, "Option '--port <PORT>' argument missing. See store-api emulator --help."],
  ["--port canary", 2, "--port must be a whole number from 0 (a free port) to 65535."],
  ["--port=", 2, "--port must be a whole number from 0 (a free port) to 65535."],
  ["--token-life 0", 2, "--token-life must be a time such as 500ms, 30s or 2m."],
  [
    "--token-path oauth",
    2,
    "--token-path must be like /oauth/token: a slash, then plain path characters."
  ],
  [
    "--client-authentication x",
    2,
    /^store-api: --client-authentication must be one of specification, /
  ],
  ["--scenario token/x", 2, "--scenario must be a name that --list prints."],
  ["--scenario token/tls-expired", 2, "--scenario token/tls-expired needs --tls."],
  ["--scenario api/dpop", 2, "--scenario api/dpop needs --dpop no-nonce."],
  [
    "--client-authentication private_key_jwt",
    2,
    "--public-key must be a public key in PEM (SPKI)."
  ],
  ["--public-key /", 2, "--public-key must be a file that can be read."],
  ["--log x", 2, "--log must be one of text, json. See store-api emulator --help."],
  [
    "--responses nothing.json",
    2,
    "--responses must be a JSON file with an array of responses."
  ],
  ["--state /dev/null/state.json", 2, "--state must be a JSON file with an array of tokens."],
  ["--state none/state.json", 3, /^store-api: Cannot write \S*none.state[.]json[.]\n$/],
  ["--dotenv none/my.env", 3, /^store-api: Cannot write \S*none.my[.]env[.]\n$/],
  [
    "--client-id a&b",
    2,
    /^store-api: --client-id must be one or more printable ASCII characters without &, /
  ],
  ["--client-id x", 3, /^store-api: STORE_API_CLIENT_SECRET must be one or more /, {
    [secretVariable]: "canary&x"
  }],
  ["--client-id x", 3, /^store-api: STORE_API_CLIENT_SECRET must be one or more /, {
    [secretVariable]: ""
  }],
  ["fail", 2, "Missing required argument 'scenario'. See store-api emulator fail --help."],
  ["clear --tls", 2, "Unknown option '--tls'. See store-api emulator clear --help."],
  ["clear --port x", 3, notFound],
  ["clear --port 9", 3, notFound],
  ["clear", 3, notFound]
])(
  "store-api emulator %s fails with code %i and a sentence",
  function*([line, code, message, env = {}]) {
    const stderr = yield* expectRefusal(yield* newUser(env), wordsOf(line), code, message)
    assert.match(stderr, /^store-api: [^\n]+[.]\n$/)
    assert.notInclude(stderr, "canary&")
  }
)

test.live("a port that is in use ends the emulator with code 3", function*() {
  const { port } = new URL((yield* emulatorWith()).url)
  const message = new RegExp(`^store-api: --port cannot be ${port}:`)
  yield* expectRefusal(yield* newUser({}), `emulator --port ${port}`, 3, message)
})

test.live("the URL of another host does not name the port of an emulator", function*() {
  const { port } = new URL((yield* emulatorWith()).url)
  const user = yield* newUser({ STORE_API_AUTH_URL: `http://store.example.invalid:${port}` })
  yield* expectRefusal(user, "emulator clear", 3, notFound)
})
