/** `store-api emulator`. The tests of the package have the rules of the service. */
import { existsSync, readdirSync, readFileSync, statSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { parseEnv } from "node:util"
import { assert, describe, vi } from "@effect/vitest"
import { deepStrictEqual } from "@effect/vitest/utils"
import { Fault, Scenario } from "@store-api/emulator"
import { test } from "@store-api/testing/test"
import { Effect, Fiber, type Scope } from "effect"
import {
  demoSecret,
  newUser,
  prints,
  refuses,
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
const emulatorWith = (line = "", from?: User) =>
  Effect.gen(function*() {
    const user = from ??
      (yield* newUser({ [secretVariable]: realSecret }, Effect.succeed([realSecret])))
    const running = yield* start(user, wordsOf(line), { shows: true })
    if (!(yield* running.shows(/\n\n.*\n\n/s))) {
      return yield* Effect.dieMessage(running.stderr.text)
    }
    const variables = variablesIn(running.stdout.text)
    const { STORE_API_URL: url = "" } = variables
    return { ...running, user, variables, url, client: yield* newUser(variables) }
  })

/** The lines after the greeting, once there are so many. The times are left out. */
const linesOf = (running: Running, count: number) =>
  Effect.map(
    running.shows(new RegExp(`\n\n.*\n\n(.*\n){${count}}$`, "s")),
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

describe("store-api emulator", () => {
  test.live("prints the variables of the demo client, which work unchanged, and never a secret of the environment", function*() {
    const running = yield* emulatorWith("--scenario api/403")
    const { client, stdout, url, variables } = running
    assert.match(url, /^http:\/\/127\.0\.0\.1:\d+$/)
    const expected = {
      STORE_API_AUTH_URL: url,
      STORE_API_URL: url,
      STORE_API_CLIENT_ID: "demo-client"
    }
    deepStrictEqual(variables, { ...expected, [secretVariable]: demoSecret })
    const { code } = yield* run(client, ["call", "/orders?canary=1", "--fail"])
    assert.strictEqual(code, 7)
    deepStrictEqual([
      (yield* ask(url)).expiresIn,
      (yield* ask(url, "demo-client", realSecret)).status
    ], [3600, 401])
    deepStrictEqual(yield* linesOf(running, 8), [
      "… → 1 POST /v1/oauth/accesstoken",
      "… ← 1 POST /v1/oauth/accesstoken 200 in … ms, token #1 until …",
      "… → 2 GET /orders?…, token #1 until …",
      "… ← 2 GET /orders?… 403 in … ms, token #1 until …: fault api/403",
      "… → 3 POST /v1/oauth/accesstoken",
      "… ← 3 POST /v1/oauth/accesstoken 200 in … ms, token #2 until …",
      "… → 4 POST /v1/oauth/accesstoken",
      "… ← 4 POST /v1/oauth/accesstoken 401 in … ms: The client_id is unknown or the client_secret is wrong."
    ])
    assert.notInclude(stdout.text, realSecret)
  })

  test.live("listens on the given port", function*() {
    const { port } = new URL(
      yield* Effect.scoped(Effect.map(emulatorWith(), ({ url }) => url))
    )
    const { url } = yield* emulatorWith(`--port ${port}`)
    assert.strictEqual(url, `http://127.0.0.1:${port}`)
  })

  test.live.each<[line: string, expiresIn: number, type?: string]>([
    ["--token-life 1500ms", 1],
    ["--token-life 5m", 300],
    ["--token-life 1h", 3600],
    ["--token-life=2s", 2],
    ["--lenient", 3600, `${formType}; charset=utf-8`]
  ])("reads %s", function*([line, expiresIn, type]) {
    const { url } = yield* emulatorWith(line)
    assert.strictEqual((yield* ask(url, undefined, undefined, type)).expiresIn, expiresIn)
  })

  test.live("--token-path and --client-authentication configure the token endpoint", function*() {
    const methods =
      "--client-authentication client_secret_post --client-authentication=client_secret_basic"
    const { url } = yield* emulatorWith(`--token-path /oauth/token ${methods}`)
    const encoded = encodeURIComponent(demoSecret)
    const basic = `Basic ${Buffer.from(`demo-client:${encoded}`).toString("base64")}`
    const grant = "grant_type=client_credentials"
    const requests = [
      {
        headers: { "Content-Type": formType },
        body: `${grant}&client_id=demo-client&client_secret=${encoded}`
      },
      { headers: { "Content-Type": formType, Authorization: basic }, body: grant }
    ]
    for (const request of requests) {
      assert.strictEqual(
        (yield* send(`${url}/oauth/token`, { method: "POST", ...request })).status,
        200
      )
    }
  })

  test.live("knows the client of the user, and never prints its secret", function*() {
    const { stdout, url, variables } = yield* emulatorWith("--client-id my-id")
    deepStrictEqual(
      [(yield* ask(url, "my-id", realSecret)).status, (yield* ask(url)).status],
      [
        200,
        401
      ]
    )
    assert.strictEqual(variables["STORE_API_CLIENT_ID"], "my-id")
    for (const secret of [realSecret, demoSecret]) assert.notInclude(stdout.text, secret)
  })

  test.live("gives the invented secret to a client for which no variable is set, quoted for a shell", function*() {
    const { shows, stdout } = yield* start(yield* newUser({}), [
      "emulator",
      "--client-id",
      "it's $mine"
    ], {
      shows: true
    })
    assert.isTrue(yield* shows("export STORE_API_CLIENT_ID='it'\\''s $mine'\n"))
    assert.include(stdout.text, `export ${secretVariable}='${demoSecret}'\n`)
  })

  test.live("plays scenarios by name, in their order", function*() {
    const line =
      "--scenario token/401-rfc --scenario=token/503-retry-after-twice --scenario api/403"
    const { url } = yield* emulatorWith(line)
    deepStrictEqual([(yield* ask(url)).status, (yield* ask(url)).status], [401, 503])
    assert.strictEqual((yield* call(url, (yield* ask(url)).token)).status, 403)
  })

  test.live("--tls prints a file with the certificate, and removes it at the end", function*() {
    const { NODE_EXTRA_CA_CERTS: file = "", STORE_API_URL: url } = yield* Effect.scoped(
      Effect.gen(function*() {
        const { variables } = yield* emulatorWith("--tls --scenario token/tls-expired")
        assert.match(
          readFileSync(variables["NODE_EXTRA_CA_CERTS"] ?? "", "utf8"),
          /^-----BEGIN CERTIFICATE-----\n/
        )
        return variables
      })
    )
    assert.match(url ?? "", /^https:/)
    assert.isFalse(existsSync(file))
  })

  test.live("--list prints a line per scenario", function*() {
    const lines = (yield* prints(yield* newUser({}), "emulator --list")).trim().split("\n")
    deepStrictEqual(lines.map((line) => line.split(/ +/)[0]), [...Scenario.names])
  })

  test.live("prints a request when it starts and when it ends, although an earlier one is still open", function*() {
    const running = yield* emulatorWith("--scenario token/silence")
    const silent = yield* Effect.fork(ask(running.url))
    yield* linesOf(running, 1)
    yield* send(`${running.url}/orders`)
    yield* linesOf(running, 3)
    yield* Fiber.interrupt(silent)
    const [first, second, third = "", last] = yield* linesOf(running, 4)
    deepStrictEqual([first, second], ["… → 1 POST /v1/oauth/accesstoken", "… → 2 GET /orders"])
    assert.match(third, /^… ← 2 GET \/orders 401 in … ms: Send Authorization: Bearer /)
    assert.strictEqual(
      last,
      "… ← 1 POST /v1/oauth/accesstoken no response after … ms: fault token/silence"
    )
  })

  test("prints the time of this machine's zone, as the page does", function*() {
    vi.stubEnv("TZ", "Asia/Tokyo")
    yield* Effect.addFinalizer(() => Effect.sync(() => vi.unstubAllEnvs()))
    const { shows, url } = yield* emulatorWith()
    yield* send(`${url}/orders`)
    assert.isTrue(yield* shows("\n09:00:00 → 1 GET /orders\n"))
  })

  test.live("shows the start and the end of a connection that meets a fault, and no token in a path", function*() {
    const running = yield* emulatorWith()
    const { client, url } = running
    const { token } = yield* ask(url)
    yield* call(url, token, `/orders/${encodeURIComponent(token)}`)
    yield* prints(client, "emulator fail token/reset-on-accept --times 1")
    yield* Effect.flip(send(url))
    deepStrictEqual((yield* linesOf(running, 6)).slice(3), [
      "… ← 2 GET <redacted> 200 in … ms, token #1 until …",
      "… → connection: fault token/reset-on-accept",
      "… ← connection ended after … ms: fault token/reset-on-accept"
    ])
  })

  test.live("--log json prints the greeting, each start and each end as one JSON object", function*() {
    const words = wordsOf("--log json --scenario api/403")
    const { shows, stdout } = yield* start(yield* newUser({}), words, { shows: true })
    assert.isTrue(yield* shows(/"listening".*\n/))
    const { url, variables } = JSON.parse(stdout.text) as {
      url: string
      variables: Record<string, string>
    }
    assert.strictEqual(variables["STORE_API_URL"], url)
    const { token } = yield* ask(url)
    yield* call(url, token, "/orders?canary=1")
    assert.isTrue(yield* shows(/(.*\n){5}/))
    const lines = stdout.text.trim().split("\n").slice(1)
    for (const secret of [token, "canary"]) assert.notInclude(lines.join(), secret)
    const [, issued, start3, end] = lines.map((line) =>
      JSON.parse(line) as Readonly<Record<string, unknown>>
    )
    assert.nestedPropertyVal(issued, "token.id", 1)
    deepStrictEqual([start3?.["event"], start3?.["token"], start3?.["status"]], [
      "start",
      issued?.["token"],
      null
    ])
    deepStrictEqual([end?.["event"], end?.["id"], end?.["reason"]], [
      "end",
      2,
      "fault api/403"
    ])
    assert.isNumber(end?.["duration"])
  })

  test.live("--responses is what the API responds to requests with a token", function*() {
    const user = yield* newUser({})
    const body = [{ id: 7, article: "chair" }]
    const deletes = {
      method: "delete",
      path: "/orders/7",
      status: 204,
      headers: { "X-Mine": "1" }
    }
    const write = (responses: unknown) =>
      writeFileSync(join(user.cwd, "api.json"), JSON.stringify(responses))
    write([{ path: "/orders", body }, deletes])
    const { url } = yield* emulatorWith("--responses api.json", user)
    const { token } = yield* ask(url)
    const orders = yield* call(url, token, "/orders?page=2")
    deepStrictEqual(yield* Effect.promise(() => orders.json()), body)
    const removed = yield* call(url, token, "/orders/7", { method: "DELETE" })
    deepStrictEqual([removed.status, removed.headers.get("X-Mine")], [204, "1"])
    write([{ path: "orders" }])
    yield* refuses(
      user,
      "emulator --responses api.json",
      2,
      /^store-api: --responses\[0\][.]path must be like /
    )
  })

  test.live("--state keeps tokens for the next start, and only for this user", function*() {
    const user = yield* newUser({})
    const once = <A, E>(
      use: (url: string, client: User) => Effect.Effect<A, E, Scope.Scope>
    ) =>
      Effect.scoped(
        Effect.flatMap(
          emulatorWith("--state state.json", user),
          ({ client, url }) => use(url, client)
        )
      )
    const [kept, revoked] = yield* once((url) => Effect.all([ask(url), ask(url)]))
    yield* once((_, client) => prints(client, "emulator revoke 2"))
    assert.strictEqual(statSync(join(user.cwd, "state.json")).mode & 0o777, 0o600)
    deepStrictEqual(readdirSync(user.cwd), ["state.json"])
    yield* once((url, client) =>
      Effect.gen(function*() {
        const responses = yield* Effect.forEach(
          [kept, revoked],
          ({ token }) => call(url, token)
        )
        deepStrictEqual(responses.map(({ status }) => status), [200, 401])
        yield* Effect.all(Effect.replicate(ask(url), 20), { concurrency: 8 })
        assert.lengthOf((yield* prints(client, "emulator tokens")).match(/^#\d/gm) ?? [], 22)
      })
    )
    const ids = [...readFileSync(join(user.cwd, "state.json"), "utf8").matchAll(/"id":(\d+)/g)]
      .map(
        ([, id]) => Number(id)
      )
    deepStrictEqual(ids, Array.from({ length: 22 }, (_, index) => index + 1))
    writeFileSync(join(user.cwd, "foreign.json"), "canary")
    yield* refuses(
      user,
      "emulator --state foreign.json",
      2,
      "--state must be a JSON file with an array of tokens."
    )
    assert.strictEqual(readFileSync(join(user.cwd, "foreign.json"), "utf8"), "canary")
  })

  test.live("--dotenv writes the variables for this user, not its secret, and replaces no file of others", function*() {
    const user = yield* newUser({ [secretVariable]: realSecret })
    const [mine, other] = [join(user.cwd, "my.env"), join(user.cwd, ".env")]
    for (const text of ["", "# Written by store-api-emulator\nOLD=1"]) {
      writeFileSync(mine, text, { mode: 0o644 })
      const { variables } = yield* Effect.scoped(emulatorWith("--dotenv my.env", user))
      deepStrictEqual(parseEnv(readFileSync(mine, "utf8")), {
        ...variables,
        [secretVariable]: demoSecret
      })
    }
    assert.strictEqual(statSync(mine).mode & 0o777, 0o600)
    writeFileSync(other, `${secretVariable}=invented`)
    const refusal = "--dotenv must be a new file, an empty one, or one that an emulator wrote."
    for (const name of [".env", "."]) {
      yield* refuses(user, `emulator --dotenv ${name}`, 2, refusal)
    }
    assert.strictEqual(readFileSync(other, "utf8"), `${secretVariable}=invented`)
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
      assert.isTrue(yield* shows("STORE_API_CLIENT_ID"))
      assert.strictEqual(
        parseEnv(readFileSync(join(user.cwd, "my.env"), "utf8"))["STORE_API_CLIENT_ID"],
        clientId
      )
    }
  )
})

test.live("fail, clear, revoke, requests and tokens steer the emulator of the port or of STORE_API_AUTH_URL", function*() {
  const { client, url } = yield* emulatorWith()
  const { port } = new URL(url)
  const says = (line: string) =>
    Effect.map(prints(client, wordsOf(line)), (text) => text.trimEnd())
  const refused = (line: string, message: string) =>
    refuses(client, wordsOf(line), 2, `The emulator refused this: ${message}`)
  assert.strictEqual(
    yield* says("fail token/503-json --times 2"),
    "Next faults: token/503-json × 2."
  )
  deepStrictEqual([(yield* ask(url)).status, (yield* ask(url)).status], [503, 503])
  const { token } = yield* ask(url)
  assert.match(
    yield* prints(yield* newUser({}), wordsOf(`tokens --port ${port}`)),
    /^#1 demo-client valid until [\d:]{8}\n$/
  )
  assert.strictEqual(yield* says("revoke #1"), "Revoked 1 token.")
  assert.strictEqual((yield* call(url, token)).status, 401)
  assert.strictEqual(yield* says("tokens"), "#1 demo-client revoked")
  yield* says("fail token/reset-on-accept --times 1")
  assert.strictEqual(
    yield* says("fail api/403"),
    "Next faults: token/reset-on-accept × 1, api/403."
  )
  yield* refused(
    "fail no\u001b",
    "The option scenario must be a name that the emulator's --list prints."
  )
  yield* refused(
    "fail token/tls",
    "The option tls is missing, this fault needs it: start the emulator with `tls: true` or --tls."
  )
  yield* refused("revoke x", "The token must be its number, such as 3.")
  yield* Effect.flip(ask(url))
  assert.strictEqual(yield* says("clear"), "There are no more faults.")
  yield* refused("revoke 99", "There is no valid token 99; see `tokens`.")
  yield* Effect.all([ask(url), ask(url)])
  assert.strictEqual(yield* says("revoke"), "Revoked 2 tokens.")
  const lines = (yield* says("requests")).split("\n")
  deepStrictEqual(lines.map((line) => line.split(" ")[2]), ["1", "2", "3", "4", "5", "6"])
  assert.match(
    lines[3] ?? "",
    /GET \/orders 401 in .* ms, token #1 until .*: The access token was revoked$/
  )
  const { user } = yield* startedWith(
    {},
    Fault.body(`{"message":"a\\u001b\\u009b\\nb"}`, { on: "api" })
  )
  assert.strictEqual(yield* prints(user, wordsOf("requests")), "a^[<U+009b>\nb\n")
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
    const stderr = yield* refuses(yield* newUser(env), wordsOf(line), code, message)
    assert.match(stderr, /^store-api: [^\n]+[.]\n$/)
    assert.notInclude(stderr, "canary&")
  }
)

test.live("a port that is taken ends the command with code 3, and the URL of another host is not its port", function*() {
  const { port } = new URL((yield* emulatorWith()).url)
  const user = yield* newUser({ STORE_API_AUTH_URL: `http://store.example.invalid:${port}` })
  yield* refuses(
    user,
    `emulator --port ${port}`,
    3,
    new RegExp(`^store-api: --port cannot be ${port}:`)
  )
  yield* refuses(user, "emulator clear", 3, notFound)
})
