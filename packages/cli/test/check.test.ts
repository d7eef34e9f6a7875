import * as Http from "node:http"
import * as Net from "node:net"
import { assert, describe, it } from "@effect/vitest"
import { deepStrictEqual } from "@effect/vitest/utils"
import { Fault } from "@store-api/emulator"
import { Deferred, Effect, Fiber, Option, TestClock } from "effect"
import { test } from "../../core/test/support/test.js"
import { check, type Expected, fails } from "./support/checking.js"
import { run, started, startedWith, startOnTerminal, type User, withEnv, withProxies } from "./support/cli.js"
import { listening } from "./support/listening.js"

/** A server that accepts connections and sends nothing; `asked` waits until something is sent to it. */
const silent = Effect.gen(function*() {
  const sockets = new Set<Net.Socket>()
  const asked = yield* Deferred.make<void>()
  const port = yield* listening(Net.createServer((socket) => {
    sockets.add(socket)
    socket.on("error", () => undefined)
    socket.once("data", () => Deferred.unsafeDone(asked, Effect.void))
  }))
  yield* Effect.addFinalizer(() => Effect.sync(() => sockets.forEach((socket) => socket.destroy())))
  return { at: `127.0.0.1:${port}`, asked: Deferred.await(asked) }
})

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
    const wrong = yield* json(withEnv(user, { STORE_API_AUTH_URL: "http://127.0.0.1:9" }))
    deepStrictEqual([wrong.code, wrong.ok], [5, false])
    const { detail, ok, remedy, step } = wrong.steps.at(-1) ?? {}
    deepStrictEqual([step, ok, detail, remedy], [
      "connection",
      false,
      "127.0.0.1:9 refused the connection (ECONNREFUSED)",
      "Check host and port in STORE_API_AUTH_URL, and whether the service runs there."
    ])
  })

  test.live("names the flag that gave a setting, and where the others come from", function*() {
    const { user } = yield* started
    const expected = [5, "connection", /ECONNREFUSED/, /Check host and port in --auth-url,/] as const
    const [configuration] = yield* fails(user, ["--auth-url", "http://127.0.0.1:9"], expected)
    assert.include(
      configuration?.said,
      "--auth-url; STORE_API_CLIENT_ID, STORE_API_URL and STORE_API_CLIENT_SECRET from the environment"
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

describe("store-api check names the cause", () => {
  it.scoped.each<[name: string, expected: Expected, url: (at: string) => Record<string, string>]>([
    ["a server", [5, "TLS", /the handshake does not complete/, /STORE_API_AUTH_URL/], (at) => ({
      STORE_API_AUTH_URL: `https://${at}`
    })],
    ["a proxy", [5, "proxy tunnel", /does not respond/, /HTTPS_PROXY/], (at) => ({
      STORE_API_AUTH_URL: "https://auth.store.example",
      HTTPS_PROXY: `http://${at}`
    })],
    ["an API", [6, "API call", /no response in time/, /STORE_API_URL/], (at) => ({ STORE_API_URL: `http://${at}` })]
  ])("%s that accepts and says nothing, after 10 seconds", ([, expected, variables]) =>
    Effect.gen(function*() {
      yield* TestClock.setTime(Date.now())
      const { asked, at } = yield* silent
      const user = yield* withProxies((yield* started).user, variables(at))
      const running = yield* Effect.fork(fails(user, ["/orders"], expected))
      yield* asked
      yield* TestClock.adjust("9999 millis")
      assert.isTrue(Option.isNone(yield* Fiber.poll(running)))
      yield* TestClock.adjust("1 millis")
      yield* Fiber.join(running)
    }))

  test("on a terminal names the step that takes 2 seconds", function*() {
    yield* TestClock.setTime(Date.now())
    const server = yield* silent
    const user = withEnv((yield* started).user, { STORE_API_AUTH_URL: `https://${server.at}` })
    const { stderr } = yield* startOnTerminal(user, ["check"])
    yield* server.asked
    yield* TestClock.adjust("1999 millis")
    assert.notInclude(stderr.text, "Waiting")
    yield* TestClock.adjust("1 millis")
    assert.include(stderr.text, "store-api: Waiting for the step \"TLS\". Press Ctrl+C to stop.\r\n")
  })

  // No name has more than 63 letters: the resolver rejects it without a query.
  const unknown = `https://${"x".repeat(64)}.example`
  const nobody = "http://127.0.0.1:9"

  it.live.each<[name: string, variable: string, url: (url: string) => string, expected: Expected]>([
    ["an unknown host", "STORE_API_AUTH_URL", () => unknown, [
      5,
      "name lookup",
      /is not known \(ENOTFOUND\)/,
      /Check the host in STORE_API_AUTH_URL/
    ]],
    ["a refused connection", "STORE_API_AUTH_URL", () => nobody, [
      5,
      "connection",
      /127\.0\.0\.1:9 refused the connection \(ECONNREFUSED\)/,
      /Check host and port in STORE_API_AUTH_URL/
    ]],
    ["a server without TLS", "STORE_API_AUTH_URL", (url) => url.replace("http:", "https:"), [
      5,
      "TLS",
      /does not speak TLS/,
      /Check scheme and port/
    ]],
    ["an unreachable API", "STORE_API_URL", () => nobody, [6, "API connection", /refused/, /STORE_API_URL/]]
  ])("%s", ([, variable, url, expected]) =>
    Effect.gen(function*() {
      const { emulator, user } = yield* started
      yield* fails(withEnv(user, { [variable]: url(emulator.url) }), ["/orders"], expected)
    }).pipe(Effect.scoped))

  test.live("a proxy: not there, wanting a password, refusing, or none at all; one that works is passed", function*() {
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
      socket.on("error", () => upstream.destroy())
    })
    const at = `127.0.0.1:${yield* listening(proxy)}`
    const closing = `127.0.0.1:${yield* listening(Net.createServer((socket) => socket.destroy()))}`
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
    const local = yield* check(yield* withProxies(user, { HTTP_PROXY: "http://127.0.0.1:9" }))
    deepStrictEqual([local.code, local.steps[1]?.name], [0, "name lookup"])
  })

  test.live("an authUrl that leads to an API: the check says where the request went, and which variable to change", function*() {
    const challenge = { "WWW-Authenticate": "Bearer realm=\"an API\"" }
    const { emulator, user } = yield* startedWith({}, Fault.status(401, { headers: challenge, times: Infinity }))
    const remedy = /STORE_API_AUTH_URL, which leads to a protected API/
    const withSlash = withEnv(user, { STORE_API_AUTH_URL: `${emulator.url}/` })
    const [configuration] = yield* fails(withSlash, [], [4, "token request", /\(401\)/, remedy])
    assert.include(configuration?.said ?? "", `POST ${emulator.url}/v1/oauth/accesstoken`)
  })

  const limited = Fault.status(429, { headers: { "Retry-After": "0" } })
  const api = { on: "api" } as const
  const html = { ...api, headers: { "Content-Type": "text/html" } }

  it.live.each<[name: string, script: Fault.Script, ...expected: Expected]>([
    ["a refusal after a rate limit", [limited, Fault.status(403)], 4, "token request", /\(403\), after 429$/, /403/],
    [
      "an outage",
      Fault.status(503, { times: Infinity }),
      5,
      "token request",
      /^the .* is not available \(503\)$/,
      /503/
    ],
    ["404 of the API", Fault.status(404, api), 7, "API call", /responded with 404/, /path/],
    ["429 of the API", Fault.status(429, api), 7, "API call", /responded with 429/, /Wait/],
    ["503 of the API", Fault.status(503, api), 7, "API call", /responded with 503/, /does not work/],
    ["a page of the API", Fault.body("<html>", html), 7, "API call", /web page, not JSON \(200\)/, /STORE_API_URL/]
  ])("%s", ([, script, ...expected]) =>
    Effect.gen(function*() {
      yield* fails((yield* startedWith({}, script)).user, ["/orders"], expected)
    }).pipe(Effect.scoped))

  test.live("what the endpoint's retries pass over, each once", function*() {
    const { user } = yield* startedWith({}, limited, Fault.status(503, { times: 2 }))
    const { code, failed, steps } = yield* check(user)
    deepStrictEqual([code, failed], [0, []])
    assert.match(steps.find(({ name }) => name === "token request")?.said ?? "", /, after 429 and 503$/)
  })

  const dateOf = (hours: number) => ({ headers: { Date: new Date(Date.now() + hours * 3_600_000).toUTCString() } })

  it.live.each<[how: string, hours: number, said: RegExp]>([
    ["ahead", -1, /1 h 0 min ahead of/],
    ["behind", 1, /59 min 5\d s behind|1 h 0 min behind/]
  ])("a clock that is an hour %s", ([, hours, said]) =>
    Effect.gen(function*() {
      const { user } = yield* startedWith({}, Fault.fields({}, dateOf(hours)))
      const steps = yield* fails(user, [], [3, "clock", said, /Set the system clock/])
      assert.isFalse(steps.find(({ name }) => name === "token request")?.failed)
    }).pipe(Effect.scoped))

  test.live("a clock that is an hour off is named beside a refusal", function*() {
    const { user } = yield* startedWith({}, Fault.status(400, dateOf(-1)))
    const { code, failed } = yield* check(user)
    deepStrictEqual([code, failed.map(({ name }) => name)], [4, ["token request", "clock"]])
  })
})
