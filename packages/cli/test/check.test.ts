import * as Http from "node:http"
import * as Net from "node:net"
import { assert, describe } from "@effect/vitest"
import { deepStrictEqual } from "@effect/vitest/utils"
import { Fault, Scenario } from "@store-api/emulator"
import { Deferred, Effect, Fiber, Option, TestClock } from "effect"
import { test } from "../../core/test/support/test.js"
import { check, fails, startedWith } from "./support/checking.js"
import { run, startOnTerminal, type User, withEnv, withProxies } from "./support/cli.js"
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

/** The step fails after its limit of 10 seconds, and not before. */
const failsInTime = (
  asked: Effect.Effect<void>,
  user: User,
  args: ReadonlyArray<string>,
  expected: Parameters<typeof fails>[2]
) =>
  Effect.gen(function*() {
    const running = yield* Effect.fork(fails(user, args, expected))
    yield* asked
    yield* TestClock.adjust("9999 millis")
    assert.isTrue(Option.isNone(yield* Fiber.poll(running)))
    yield* TestClock.adjust("1 millis")
    yield* Fiber.join(running)
  })

describe("store-api check", () => {
  test.live("checks each step from the configuration to the API", function*() {
    const { user } = yield* startedWith()
    const { code, failed, steps } = yield* check(user, ["/orders"])
    deepStrictEqual(steps.map(({ name }) => name), [
      "configuration",
      "name lookup",
      "connection",
      "token request",
      "clock",
      "API call"
    ])
    deepStrictEqual([code, failed], [0, []])
  })

  test.live("--json prints one object with each step, also when one fails", function*() {
    const { user } = yield* startedWith()
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
    const { user } = yield* startedWith()
    const steps = yield* fails(user, ["--auth-url", "http://127.0.0.1:9"], {
      step: "connection",
      said: /ECONNREFUSED/,
      remedy: /Check host and port in --auth-url,/,
      code: 5
    })
    assert.include(
      steps[0]?.said,
      "--auth-url; STORE_API_CLIENT_ID, STORE_API_URL and STORE_API_CLIENT_SECRET from the environment"
    )
  })

  test.live("asks for a token of its own, which it does not keep", function*() {
    const { emulator, user } = yield* startedWith()
    yield* check(user)
    yield* check(user)
    assert.lengthOf(yield* emulator.requests, 2)
    deepStrictEqual((yield* run(user, ["status"])).code, 5)
  })
})

describe("store-api check names the cause", () => {
  test("a server, a proxy or an API that accepts and says nothing, after 10 seconds", function*() {
    yield* TestClock.setTime(Date.now())
    const { user } = yield* startedWith()
    const server = yield* silent
    const overTls = withEnv(user, { STORE_API_AUTH_URL: `https://${server.at}` })
    yield* failsInTime(server.asked, overTls, [], {
      step: "TLS",
      said: /the handshake does not complete/,
      remedy: /STORE_API_AUTH_URL/,
      code: 5
    })
    const proxy = yield* silent
    const proxied = yield* withProxies(withEnv(user, { STORE_API_AUTH_URL: "https://auth.store.example" }), {
      HTTPS_PROXY: `http://${proxy.at}`
    })
    yield* failsInTime(proxy.asked, proxied, [], {
      step: "proxy tunnel",
      said: /does not respond/,
      remedy: /HTTPS_PROXY/,
      code: 5
    })
    const api = yield* silent
    yield* failsInTime(api.asked, withEnv(user, { STORE_API_URL: `http://${api.at}` }), ["/orders"], {
      step: "API call",
      said: /no response in time/,
      remedy: /STORE_API_URL/,
      code: 6
    })
  })

  test("on a terminal names the step that takes 2 seconds", function*() {
    yield* TestClock.setTime(Date.now())
    const { user } = yield* startedWith()
    const server = yield* silent
    const { stderr } = yield* startOnTerminal(withEnv(user, { STORE_API_AUTH_URL: `https://${server.at}` }), [
      "check"
    ])
    yield* server.asked
    yield* TestClock.adjust("1999 millis")
    assert.notInclude(stderr.text, "Waiting")
    yield* TestClock.adjust("1 millis")
    assert.include(stderr.text, "store-api: Waiting for the step \"TLS\". Press Ctrl+C to stop.\r\n")
  })

  test.live("a wrong secret", function*() {
    const { user } = yield* startedWith()
    yield* fails(withEnv(user, { STORE_API_CLIENT_SECRET: "another-invented-secret" }), [], {
      step: "token request",
      said: /the client id or the secret is wrong \(401\)/,
      remedy: /^The token endpoint refused the request \(status 401, .*check the client id and secret/,
      code: 4
    })
  })

  test.live("an unknown host", function*() {
    const { user } = yield* startedWith()
    // No name is that long: the resolver rejects it without a query.
    const host = `${"x".repeat(64)}.example`
    yield* fails(withEnv(user, { STORE_API_AUTH_URL: `https://${host}` }), [], {
      step: "name lookup",
      said: /is not known \(ENOTFOUND\)/,
      remedy: /Check the host in STORE_API_AUTH_URL/,
      code: 5
    })
  })

  test.live("a refused connection", function*() {
    const { user } = yield* startedWith()
    yield* fails(withEnv(user, { STORE_API_AUTH_URL: "http://127.0.0.1:9" }), [], {
      step: "connection",
      said: /127\.0\.0\.1:9 refused the connection \(ECONNREFUSED\)/,
      remedy: /Check host and port in STORE_API_AUTH_URL/,
      code: 5
    })
  })

  test.live("a certificate of an unknown authority, and a server without TLS", function*() {
    const { user } = yield* startedWith({ tls: true })
    yield* fails(user, [], {
      step: "TLS",
      said: /an authority that this machine does not trust/,
      remedy: /NODE_EXTRA_CA_CERTS/,
      code: 4
    })
    const { emulator: plain } = yield* startedWith()
    yield* fails(withEnv(user, { STORE_API_AUTH_URL: plain.url.replace("http:", "https:") }), [], {
      step: "TLS",
      said: /does not speak TLS/,
      remedy: /Check scheme and port/,
      code: 5
    })
  })

  test.live("a proxy: not there, wanting a password, refusing, or none at all; one that works is passed", function*() {
    const { emulator, user } = yield* startedWith()
    // Names of other machines go through the proxy, which leads them all to the emulator.
    const named = withEnv(user, {
      STORE_API_AUTH_URL: "http://auth.store.example",
      STORE_API_CLIENT_ID: "demo-client"
    })
    const through = (port: number, credentials = "") =>
      withProxies(named, { HTTP_PROXY: `http://${credentials}127.0.0.1:${port}` })
    const insecure = ["--allow-insecure"]
    yield* fails(yield* through(9), insecure, {
      step: "proxy connection",
      said: /refused the connection/,
      remedy: /HTTP_PROXY/,
      code: 5
    })
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
    const port = yield* listening(proxy)
    yield* fails(yield* through(port), insecure, {
      step: "proxy tunnel",
      said: /needs a user name and a password \(407\)/,
      remedy: /HTTP_PROXY/,
      code: 5
    })
    // As in the HTTP client, a star within a list has no effect, and a user without a password is not sent.
    const starred = { HTTP_PROXY: `http://127.0.0.1:${port}`, NO_PROXY: "other.store.example,*" }
    for (const almost of [through(port, "user@"), withProxies(named, starred)]) {
      yield* fails(yield* almost, insecure, { step: "proxy tunnel", said: /\(407\)/, remedy: /HTTP_PROXY/, code: 5 })
    }
    yield* fails(
      withEnv(yield* through(port, "user:invented@"), { STORE_API_AUTH_URL: "http://other.store.example" }),
      insecure,
      {
        step: "proxy tunnel",
        said: /refuses a tunnel to other\.store\.example:80 \(403\)/,
        remedy: /NO_PROXY/,
        code: 5
      }
    )
    const closing = yield* listening(Net.createServer((socket) => socket.destroy()))
    yield* fails(yield* through(closing), insecure, {
      step: "proxy tunnel",
      said: /closed the connection/,
      remedy: /Check that HTTP_PROXY names a proxy/,
      code: 5
    })
    const good = yield* check(yield* through(port, "user:invented@"), insecure)
    deepStrictEqual([good.code, good.failed], [0, []])
    deepStrictEqual(good.steps.map(({ name }) => name).slice(1, 4), [
      "proxy name lookup",
      "proxy connection",
      "proxy tunnel"
    ])
    // This machine goes through none, whatever the environment says.
    const local = yield* check(yield* withProxies(user, { HTTP_PROXY: "http://127.0.0.1:9" }))
    deepStrictEqual([local.code, local.steps[1]?.name], [0, "name lookup"])
  })

  test.live("the URL of an API in place of the service's: where the request goes, and what to check", function*() {
    const challenge = { "WWW-Authenticate": "Bearer realm=\"an API\"" }
    const { emulator, user } = yield* startedWith({}, Fault.status(401, { headers: challenge, times: Infinity }))
    const steps = yield* fails(withEnv(user, { STORE_API_AUTH_URL: `${emulator.url}/` }), [], {
      step: "token request",
      said: /\(401\)/,
      remedy: /STORE_API_AUTH_URL, which leads to a protected API/,
      code: 4
    })
    assert.include(steps[0]?.said ?? "", `POST ${emulator.url}/v1/oauth/accesstoken`)
  })

  test.live("a redirect, and where to", function*() {
    const { emulator, user } = yield* startedWith({}, Scenario.get("token/redirect-302"))
    const origin = emulator.elsewhere.url.replaceAll(".", "\\.")
    yield* fails(user, [], {
      step: "token request",
      said: new RegExp(`redirected to ${origin}$`),
      remedy: /credentials are not sent to another URL: .*STORE_API_AUTH_URL/,
      code: 4
    })
    deepStrictEqual(yield* emulator.elsewhere.requests, [])
  })

  test.live("a rate limit, and until when", function*() {
    const { user } = yield* startedWith(
      {},
      Fault.status(429, { headers: { "Retry-After": "900" }, times: Infinity })
    )
    yield* fails(user, [], {
      step: "token request",
      said: /the endpoint limits the rate of requests \(429\)/,
      remedy: /Retry after \d{4}-.*Z\.$/,
      code: 5
    })
  })

  test.live("what the endpoint's retries pass over", function*() {
    const limited = Fault.status(429, { headers: { "Retry-After": "0" } })
    const passed: ReadonlyArray<readonly [ReadonlyArray<Fault.Script>, RegExp]> = [
      [[], /^a token valid for [\d hmins]+$/],
      [[limited], /[ns], after 429$/],
      [
        [limited, Fault.status(503, { times: 2 })],
        /, after 429 and 503$/
      ],
      [[Fault.reset("answer")], /[ns], after no response$/],
      [[Fault.close("body")], /, after a response that broke off$/]
    ]
    for (const [script, said] of passed) {
      const { code, failed, steps } = yield* check((yield* startedWith({}, ...script)).user)
      deepStrictEqual([code, failed], [0, []])
      assert.match(steps.find(({ name }) => name === "token request")?.said ?? "", said)
    }
    const { user } = yield* startedWith({}, limited, Fault.status(403))
    yield* fails(user, [], { step: "token request", said: /\(403\), after 429$/, remedy: /403/, code: 4 })
    const { user: refused } = yield* startedWith({}, Fault.status(503, { times: Infinity }))
    yield* fails(refused, [], {
      step: "token request",
      said: /^the endpoint is not available \(503\)$/,
      remedy: /503/,
      code: 5
    })
  })

  test.live("a request that the endpoint does not understand, and another error", function*() {
    const causes = [[400, /^the endpoint does not understand the request \(400\)$/], [
      403,
      /^the endpoint responded with an error \(403\)$/
    ]] as const
    for (const [status, said] of causes) {
      const { user } = yield* startedWith({}, Fault.status(status))
      yield* fails(user, [], { step: "token request", said, remedy: /STORE_API_AUTH_URL/, code: 4 })
    }
  })

  test.live("a web page in place of JSON, whatever its status", function*() {
    for (const name of ["token/body-html", "token/404", "token/403-html"] as const) {
      const { user } = yield* startedWith({}, Scenario.get(name))
      yield* fails(user, [], {
        step: "token request",
        said: /a web page, not JSON \((200|404|403)\)/,
        remedy: /Check STORE_API_AUTH_URL: it leads to a web site/,
        code: 4
      })
    }
  })

  test.live("a refusal that is a web page, which says nothing of the secret", function*() {
    const { user } = yield* startedWith({}, Scenario.get("token/401-html"))
    yield* fails(user, [], {
      step: "token request",
      said: /^a web page refuses access without a reason \(401\)$/,
      remedy:
        /^Check that STORE_API_AUTH_URL leads to .*login page.* If it does, the client id or the secret is wrong\.$/,
      code: 4
    })
  })

  for (
    const [said, shift] of [["1 h 0 min ahead of", -3_600_000], [
      "59 min 5\\d s behind|1 h 0 min behind",
      3_600_000
    ]] as const
  ) {
    test.live(`a clock that is an hour off: ${shift < 0 ? "ahead" : "behind"}`, function*() {
      const date = new Date(Date.now() + shift).toUTCString()
      const { user } = yield* startedWith({}, Fault.fields({}, { headers: { Date: date } }))
      const expected = { step: "clock", said: new RegExp(said), remedy: /Set the system clock/, code: 3 }
      const steps = yield* fails(user, [], expected)
      assert.isFalse(steps.find(({ name }) => name === "token request")?.failed)
    })
  }

  test.live("a clock that is an hour off is named beside a refusal", function*() {
    const date = new Date(Date.now() - 3_600_000).toUTCString()
    const { user } = yield* startedWith({}, Fault.status(400, { headers: { Date: date } }))
    const { code, failed } = yield* check(user)
    deepStrictEqual([code, failed.map(({ name }) => name)], [4, ["token request", "clock"]])
  })

  test.live("of the API: each status, a redirect, a page, an unreachable server", function*() {
    const html = { on: "api", headers: { "Content-Type": "text/html" }, body: "<html></html>" } as const
    const faults: ReadonlyArray<readonly [Fault.Script, RegExp, RegExp]> = [
      [Fault.status(401, { on: "api" }), /responded with 401/, /same environment/],
      [Scenario.get("api/403"), /responded with 403/, /what the client may do/],
      [Fault.status(404, { on: "api" }), /responded with 404/, /path/],
      [Fault.status(429, { on: "api" }), /responded with 429/, /Wait/],
      [Fault.status(503, { on: "api" }), /responded with 503/, /does not work/],
      [Scenario.get("api/redirect-302"), /redirected \(302\)/, /STORE_API_URL/],
      [Fault.body("<html></html>", html), /web page, not JSON \(200\)/, /STORE_API_URL/]
    ]
    const { emulator, user } = yield* startedWith()
    for (const [script, said, remedy] of faults) {
      yield* emulator.fail(script)
      yield* fails(user, ["/orders"], { step: "API call", said, remedy, code: 7 })
      yield* emulator.clearFaults
    }
    yield* fails(withEnv(user, { STORE_API_URL: "http://127.0.0.1:9" }), ["/orders"], {
      step: "API connection",
      said: /refused/,
      remedy: /STORE_API_URL/,
      code: 6
    })
  })
})
