/** `store-api check` names the cause. `scenarios.slow.test.ts` has scenarios of the emulator. */
import * as Http from "node:http"
import * as Net from "node:net"
import * as Undici from "@effect/platform-node/Undici"
import { assert, describe } from "@effect/vitest"
import { deepStrictEqual } from "@effect/vitest/utils"
import { Fault } from "@store-api/emulator"
import { Deferred, Effect, Fiber, Option, TestClock } from "effect"
import { test } from "../../core/test/support/test.js"
import { listen } from "../../platform-node/test/utils.js"
import { proxyFor } from "../src/check/proxy.js"
import { check, type Expected, fails, refuses, run, started, startedWith, type User, withEnv } from "./support/cli.js"
import { without, withProxies } from "./support/cli.js"

const nobody = "http://127.0.0.1:9"

describe("store-api check", () => {
  test.live("--json prints one object with each step, also when one fails", function*() {
    const { user } = yield* started
    const json = (who: User) =>
      Effect.map(run(who, ["check", "--json"]), ({ code, stderr, stdout }) => {
        deepStrictEqual([stderr, stdout.split("\n").length], ["", 2])
        return { code, ...JSON.parse(stdout) as { ok: boolean; steps: Array<Record<string, unknown>> } }
      })
    const good = yield* json(user)
    deepStrictEqual([good.code, good.ok, good.steps.length], [0, true, 5])
    deepStrictEqual(Object.keys(good.steps[0] ?? {}), ["step", "ok", "millis", "detail"])
    const wrong = yield* json(withEnv(user, { STORE_API_AUTH_URL: nobody }))
    deepStrictEqual([wrong.code, wrong.ok], [5, false])
    const { millis: _, ...last } = wrong.steps.at(-1) ?? {}
    deepStrictEqual(last, {
      step: "connection",
      ok: false,
      detail: "127.0.0.1:9 refused the connection (ECONNREFUSED)",
      remedy: "Check host and port in STORE_API_AUTH_URL, and whether the service runs there."
    })
  })

  test.live("names the flag that gave a setting, and where the others come from", function*() {
    const { user } = yield* started
    const expected = [5, "connection", /ECONNREFUSED/, /Check host and port in --auth-url,/] as const
    const [configuration] = yield* fails(user, ["--auth-url", `${nobody}/`], expected)
    assert.strictEqual(
      configuration?.said,
      "--auth-url; STORE_API_CLIENT_ID, STORE_API_URL and STORE_API_CLIENT_SECRET from the environment; " +
        `POST ${nobody}/v1/oauth/accesstoken`
    )
  })

  test.live("asks for a token of its own, which it does not keep", function*() {
    const { emulator, user } = yield* started
    yield* check(user)
    yield* check(user)
    assert.lengthOf(yield* emulator.requests, 2)
    deepStrictEqual((yield* run(user, ["status"])).code, 5)
  })
})

describe("store-api check fails at the configuration, and sends nothing,", () => {
  type Variables = Readonly<Record<string, string>>

  const url = (what: string, url: string, remedy: RegExp) =>
    ["STORE_API_AUTH_URL", "STORE_API_URL"].map((name): readonly [string, Variables, RegExp] =>
      [`when ${name} ${what}`, { [name]: url }, new RegExp(`${name}.*${remedy.source}`)] as const
    )

  const proxy = (what: string, name: string, proxy: string): readonly [string, Variables, RegExp] => {
    const remedy = new RegExp(`${name} must be an http:// or https:// URL.*percent-encoded`)
    return [`when ${name} ${what}, also for this machine`, { [name]: proxy }, remedy]
  }

  test.live.each<readonly [string, Variables, RegExp]>([
    ...url("is not a URL", "canary", /is not a URL/),
    ...url("has a query", "https://store.example/?canary", /must not have a query/),
    ...url("has a fragment", "https://store.example/#canary", /must not have a fragment/),
    ...url("has a user name", "https://canary@store.example", /must not hold a user name/),
    ...url("is of a foreign scheme", "ftp://store.example", /must be an https URL/),
    ...url("is of another machine, over http", "http://store.example", /--allow-insecure/),
    proxy("has no scheme", "HTTPS_PROXY", "proxy.example:3128"),
    proxy("is an address without a scheme", "HTTP_PROXY", "10.0.0.1:3128"),
    proxy("has a password that is not encoded", "https_proxy", "http://user:canary%@127.0.0.1:3128"),
    proxy("is SOCKS", "http_proxy", "socks5://127.0.0.1:1080")
  ])("%s, as other commands do", function*([, variables, remedy]) {
    const { emulator, user } = yield* started
    const wrong = yield* withProxies(user, variables)
    // Without a path, the check does not need the API, yet names what is wrong with it.
    for (const args of [[], ["/orders"]]) {
      const steps = yield* fails(wrong, args, [3, "configuration", /missing or cannot be used/, remedy])
      assert.lengthOf(steps, 1)
      assert.notInclude(JSON.stringify(steps), "canary")
    }
    yield* refuses(wrong, "call /orders", 3, remedy)
    deepStrictEqual(yield* emulator.requests, [])
  })

  test.live("when something is missing", function*() {
    const { user } = yield* started
    const expected = [3, "configuration", /missing or cannot be used/, /STORE_API_CLIENT_ID is not set/] as const
    yield* fails(without(user, "STORE_API_CLIENT_ID"), [], expected)
  })
})

/** A server that accepts connections and sends nothing; `asked` waits until something is sent to it. */
const silent = Effect.gen(function*() {
  const asked = yield* Deferred.make<void>()
  const { port } = yield* listen(Net.createServer((socket) => {
    socket.once("data", () => Deferred.unsafeDone(asked, Effect.void))
  }))
  return { at: `127.0.0.1:${port}`, asked: Deferred.await(asked) }
})

describe("store-api check names the cause", () => {
  test.each<[name: string, expected: Expected, variables: (at: string) => Record<string, string>]>([
    ["a server", [5, "TLS", /the handshake does not complete/, /STORE_API_AUTH_URL/], (at) => ({
      STORE_API_AUTH_URL: `https://${at}`
    })],
    ["a proxy", [5, "proxy tunnel", /does not respond/, /HTTPS_PROXY/], (at) => ({
      STORE_API_AUTH_URL: "https://auth.store.example",
      HTTPS_PROXY: `http://${at}`
    })],
    ["an API", [6, "API call", /no response in time/, /STORE_API_URL/], (at) => ({ STORE_API_URL: `http://${at}` })]
  ])("%s that accepts and says nothing, after 10 seconds", function*([, expected, variables]) {
    yield* TestClock.setTime(Date.now())
    const { asked, at } = yield* silent
    const user = yield* withProxies((yield* started).user, variables(at))
    const running = yield* Effect.fork(fails(user, ["/orders"], expected))
    yield* asked
    yield* TestClock.adjust("9999 millis")
    assert.isTrue(Option.isNone(yield* Fiber.poll(running)))
    yield* TestClock.adjust("1 millis")
    yield* Fiber.join(running)
  })

  // No name has more than 63 letters: the resolver rejects it without a query.
  const unknown = `https://${"x".repeat(64)}.example`
  const limited = Fault.status(429, { headers: { "Retry-After": "0" } })
  const dateOf = (hours: number) => ({ headers: { Date: new Date(Date.now() + hours * 3_600_000).toUTCString() } })
  const api = { on: "api" } as const
  const html = { ...api, headers: { "Content-Type": "text/html" } }
  const isScript = (wrong: User["env"] | Fault.Script): wrong is Fault.Script => Array.isArray(wrong) || "_tag" in wrong
  const toApi = Fault.status(401, { headers: { "WWW-Authenticate": "Bearer realm=\"an API\"" }, times: Infinity })

  test.live.each<[name: string, User["env"] | Fault.Script, ...Expected]>([
    ["an unknown host", { STORE_API_AUTH_URL: unknown }, 5, "name lookup", /is not known \(ENOTFOUND\)/, /the host in/],
    ["a refused connection", { STORE_API_AUTH_URL: nobody }, 5, "connection", /ECONNREFUSED/, /host and port in/],
    ["an unreachable API", { STORE_API_URL: nobody }, 6, "API connection", /refused/, /STORE_API_URL/],
    ["a refusal after a rate limit", [limited, Fault.status(403)], 4, "token request", /\(403\), after 429$/, /403/],
    [
      "an authUrl that leads to an API",
      toApi,
      4,
      "token request",
      /\(401\)/,
      /AUTH_URL, which leads to a protected API/
    ],
    ["404 of the API", Fault.status(404, api), 7, "API call", /responded with 404/, /path/],
    ["429 of the API", Fault.status(429, api), 7, "API call", /responded with 429/, /Wait/],
    ["503 of the API", Fault.status(503, api), 7, "API call", /responded with 503/, /does not work/],
    ["a page of the API", Fault.body("<html>", html), 7, "API call", /web page, not JSON \(200\)/, /STORE_API_URL/]
  ])("%s", function*([, wrong, ...expected]) {
    const { emulator, user } = yield* started
    if (isScript(wrong)) yield* emulator.fail(wrong)
    yield* fails(isScript(wrong) ? user : withEnv(user, wrong), ["/orders"], expected)
  })

  test.live("a server without TLS", function*() {
    const { emulator, user } = yield* started
    const wrong = withEnv(user, { STORE_API_AUTH_URL: emulator.url.replace("http:", "https:") })
    yield* fails(wrong, [], [5, "TLS", /does not speak TLS/, /Check scheme and port/])
  })

  test.live.each([["ahead of", -1, /1 h 0 min ahead of/], ["behind", 1, /(59 min \d+ s|1 h 0 min) behind/]] as const)(
    "a clock that is an hour %s the server's",
    function*([, hours, said]) {
      const { user } = yield* startedWith({}, Fault.fields({}, dateOf(hours)))
      const steps = yield* fails(user, [], [3, "clock", said, /Set the system clock/])
      assert.isFalse(steps.find(({ name }) => name === "token request")?.failed)
    }
  )

  test.live("a clock that is an hour off is named beside a refusal", function*() {
    const { user } = yield* startedWith({}, Fault.status(400, dateOf(-1)))
    const { code, failed } = yield* check(user)
    deepStrictEqual([code, failed.map(({ name }) => name)], [4, ["token request", "clock"]])
  })

  test.live.each<[attempts: string, ...script: ReadonlyArray<Fault.Fault>]>([
    ["429 and 503", limited, Fault.status(503, { times: 2 })],
    ["a response that broke off", Fault.reset("body")]
  ])("what the endpoint's retries pass over, each once: %s", function*([attempts, ...script]) {
    const { user } = yield* startedWith({}, script)
    const { code, failed, steps } = yield* check(user)
    deepStrictEqual([code, failed], [0, []])
    assert.match(steps.find(({ name }) => name === "token request")?.said ?? "", new RegExp(`, after ${attempts}$`))
  })
})

describe("the proxy of a check", () => {
  test.live("is not there, wants a password, refuses, or is none at all; one that works is passed", function*() {
    const { emulator, user } = yield* started
    const proxy = Http.createServer().on("connect", (request, socket: Net.Socket) => {
      if (request.headers["proxy-authorization"] === undefined) {
        return void socket.end("HTTP/1.1 407 Proxy Authentication Required\r\n\r\n")
      }
      if (request.url !== "auth.store.example:80") return void socket.end("HTTP/1.1 403 Forbidden\r\n\r\n")
      const upstream = Net.connect(Number(new URL(emulator.url).port), "127.0.0.1", () => {
        socket.write("HTTP/1.1 200 OK\r\n\r\n")
        upstream.pipe(socket).pipe(upstream)
      })
      upstream.on("error", () => socket.destroy())
    })
    const at = `127.0.0.1:${(yield* listen(proxy)).port}`
    const closing = `127.0.0.1:${(yield* listen(Net.createServer((socket) => socket.destroy()))).port}`
    // Names of other machines go through the proxy, which leads them all to the emulator.
    const through = (proxy: string, host = "auth.store.example", env = {}) =>
      withProxies(user, { STORE_API_AUTH_URL: `http://${host}`, HTTP_PROXY: `http://${proxy}`, ...env })
    const password = [5, "proxy tunnel", /needs a user name and a password \(407\)/, /HTTP_PROXY/] as const
    const faults: ReadonlyArray<readonly [ReturnType<typeof through>, Expected]> = [
      [through("127.0.0.1:9"), [5, "proxy connection", /refused the connection/, /HTTP_PROXY/]],
      [through(at), password],
      // As in the HTTP client, a user without a password is not sent, and a star within a list has no effect.
      [through(`user@${at}`), password],
      [through(at, undefined, { NO_PROXY: "other.store.example,*" }), password],
      [
        through(`user:invented@${at}`, "other.store.example"),
        [5, "proxy tunnel", /refuses a tunnel to other\.store\.example:80 \(403\)/, /NO_PROXY/]
      ],
      [through(closing), [5, "proxy tunnel", /closed the connection/, /Check that HTTP_PROXY names a proxy/]]
    ]
    for (const [user, expected] of faults) yield* fails(yield* user, ["--allow-insecure"], expected)
    const good = yield* check(yield* through(`user:invented@${at}`), ["--allow-insecure"])
    deepStrictEqual([good.code, good.failed, good.steps.map(({ name }) => name).slice(1, 4)], [
      ...[0, []],
      ["proxy name lookup", "proxy connection", "proxy tunnel"]
    ])
    // This machine goes through none, whatever the environment says.
    const env = { HTTP_PROXY: nobody, HTTPS_PROXY: "http://user:can%61ry@127.0.0.1:9" }
    const local = yield* check(yield* withProxies(user, env))
    deepStrictEqual([local.code, local.steps[1]?.name], [0, "name lookup"])
  })

  const lists = [
    ...["", "*", "other.example,*", "store.example", ".store.example", "*.store.example", "auth.store.example"],
    ...["AUTH.store.example:443", "auth.store.example:8443 other.example", "tore.example"],
    "auth.store.example:80, 10.0.0.0/8"
  ]

  test.live("is used exactly where undici uses one", function*() {
    const tunnels: Array<string> = []
    const server = Http.createServer().on("connect", ({ url }, socket) => {
      tunnels.push(url ?? "")
      socket.end("HTTP/1.1 403 Forbidden\r\n\r\n")
    })
    const { url: proxy } = yield* listen(server)
    const hosts = ["https://auth.store.example", "http://auth.store.example", "https://auth.store.example:8443"]
    for (const noProxy of lists) {
      let direct = 0
      const agent = new Undici.EnvHttpProxyAgent({
        httpProxy: proxy,
        httpsProxy: proxy,
        noProxy,
        connect: (_, callback) => {
          direct++
          callback(new Error("not connected"), null)
        }
      })
      for (const url of [...hosts, "http://10.0.0.1"]) {
        const before = tunnels.length + direct
        const directBefore = direct
        yield* Effect.ignore(Effect.tryPromise(() => Undici.request(url, { dispatcher: agent })))
        assert.strictEqual(tunnels.length + direct, before + 1)
        const environment = { HTTP_PROXY: proxy, HTTPS_PROXY: proxy, NO_PROXY: noProxy }
        const isDirect = proxyFor(new URL(url), environment) === undefined
        assert.strictEqual(direct > directBefore, isDirect, `${url} with NO_PROXY=${noProxy}`)
      }
      yield* Effect.promise(() => agent.destroy())
    }
  })
})
