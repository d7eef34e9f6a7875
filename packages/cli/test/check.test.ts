import { once } from "node:events"
import * as Http from "node:http"
import * as Net from "node:net"
import { assert, beforeAll, describe, it } from "@effect/vitest"
import { deepStrictEqual } from "@effect/vitest/utils"
import type { Emulator } from "@store-api/emulator"
import { Fault, Scenario } from "@store-api/emulator"
import { Effect, Option } from "effect"
import { check, fails, startedWith, withEnv } from "./support/checking.js"
import { build, processTimeout, run, start, userOf } from "./support/cli.js"

beforeAll(build, 120_000)

const listening = (server: Net.Server) =>
  Effect.map(
    Effect.acquireRelease(
      Effect.async<Net.Server>((resume) => {
        server.listen(0, "127.0.0.1", () => resume(Effect.succeed(server)))
      }),
      () => Effect.sync(() => server.close())
    ),
    () => (server.address() as Net.AddressInfo).port
  )

/** The port of a server that accepts, and says nothing. */
const silent = Effect.gen(function*() {
  const sockets = new Set<Net.Socket>()
  const port = yield* listening(Net.createServer((socket) => {
    sockets.add(socket)
    socket.on("error", () => undefined)
  }))
  yield* Effect.addFinalizer(() => Effect.sync(() => sockets.forEach((socket) => socket.destroy())))
  return port
})

describe("store-api check", { timeout: processTimeout }, () => {
  it.scopedLive("walks from the configuration to the API, over http and over TLS", () =>
    Effect.gen(function*() {
      const { user } = yield* startedWith()
      const plain = yield* check(user, ["/orders"])
      deepStrictEqual(plain.steps.map(({ name }) => name), [
        "configuration",
        "name lookup",
        "connection",
        "token request",
        "clock",
        "API call"
      ])
      deepStrictEqual([plain.code, plain.failed], [0, []])
      const { emulator } = yield* startedWith({ tls: true })
      const { caFile } = yield* certificateFile(emulator)
      const tls = yield* userOf(emulator, { NODE_EXTRA_CA_CERTS: caFile })
      const overTls = yield* check(tls)
      deepStrictEqual(overTls.steps.map(({ name }) => name), [
        "configuration",
        "name lookup",
        "connection",
        "TLS",
        "token request",
        "clock"
      ])
      deepStrictEqual([overTls.code, overTls.failed], [0, []])
    }))

  it.scopedLive("asks for a token of its own, which it does not keep", () =>
    Effect.gen(function*() {
      const { emulator, user } = yield* startedWith()
      yield* check(user)
      yield* check(user)
      assert.lengthOf(yield* emulator.requests, 2)
      assert.include((yield* run(user, ["status"])).stdout, "none is stored")
    }))
})

/** The certificate of an emulator in a file of the user's. */
const certificateFile = (emulator: Emulator.Service) =>
  Effect.gen(function*() {
    const { writeFileSync } = yield* Effect.promise(() => import("node:fs"))
    const { cwd } = yield* userOf(emulator)
    const caFile = `${cwd}/ca.pem`
    writeFileSync(caFile, Option.getOrThrow(emulator.ca))
    return { caFile }
  })

describe("store-api check names the cause", { timeout: processTimeout }, () => {
  it.scopedLive("a server or a proxy that accepts and says nothing, within the limit", () =>
    Effect.gen(function*() {
      const { user } = yield* startedWith()
      const port = yield* silent
      const server = withEnv(user, { STORE_API_AUTH_URL: `https://127.0.0.1:${port}` })
      const proxy = withEnv(user, {
        STORE_API_AUTH_URL: "https://auth.store.example",
        HTTPS_PROXY: `http://127.0.0.1:${port}`
      })
      const startedAt = Date.now()
      yield* Effect.all([
        fails(server, [], { step: "TLS", said: /the handshake does not end/, remedy: /STORE_API_AUTH_URL/, code: 5 }),
        fails(proxy, [], { step: "proxy tunnel", said: /does not answer/, remedy: /HTTPS_PROXY/, code: 5 })
      ], { concurrency: "unbounded" })
      assert.isAtLeast(Date.now() - startedAt, 10_000)
    }))

  for (const [signal, code] of [["SIGINT", 130], ["SIGTERM", 143]] as const) {
    it.scopedLive(`${signal} ends it while a server says nothing`, () =>
      Effect.gen(function*() {
        const { user } = yield* startedWith()
        const silentUser = withEnv(user, { STORE_API_AUTH_URL: `https://127.0.0.1:${yield* silent}` })
        const { child, end, stdout } = yield* start(silentUser, ["check"])
        while (!stdout().includes("connection")) yield* Effect.promise(() => once(child.stdout, "data"))
        child.kill(signal)
        const outcome = yield* end
        deepStrictEqual([outcome.code, outcome.stderr], [code, ""])
        // It was the signal that ended it, not the limit.
        assert.notInclude(outcome.stdout, "FAIL")
      }))
  }

  it.scopedLive("a wrong secret", () =>
    Effect.gen(function*() {
      const { user } = yield* startedWith()
      yield* fails(withEnv(user, { STORE_API_CLIENT_SECRET: "another-invented-secret" }), [], {
        step: "token request",
        said: /the client id or the secret is wrong \(401\)/,
        remedy: /Check STORE_API_CLIENT_ID and the secret/,
        code: 4
      })
    }))

  it.scopedLive("an unknown host", () =>
    Effect.gen(function*() {
      const { user } = yield* startedWith()
      // No name is that long: the resolver knows it without asking anybody.
      const host = `${"x".repeat(64)}.example`
      yield* fails(withEnv(user, { STORE_API_AUTH_URL: `https://${host}` }), [], {
        step: "name lookup",
        said: /is not known \(ENOTFOUND\)/,
        remedy: /Check the host in STORE_API_AUTH_URL/,
        code: 5
      })
    }))

  it.scopedLive("a refused connection", () =>
    Effect.gen(function*() {
      const { user } = yield* startedWith()
      yield* fails(withEnv(user, { STORE_API_AUTH_URL: "http://127.0.0.1:9" }), [], {
        step: "connection",
        said: /127\.0\.0\.1:9 refused the connection \(ECONNREFUSED\)/,
        remedy: /Check host and port in STORE_API_AUTH_URL/,
        code: 5
      })
    }))

  it.scopedLive("a certificate: of an unknown authority, of another host, expired; no TLS at all", () =>
    Effect.gen(function*() {
      const { emulator, user } = yield* startedWith({ tls: true })
      yield* fails(user, [], {
        step: "TLS",
        said: /an authority that this machine does not trust/,
        remedy: /NODE_EXTRA_CA_CERTS/,
        code: 4
      })
      const { caFile } = yield* certificateFile(emulator)
      const trusting = withEnv(user, { NODE_EXTRA_CA_CERTS: caFile })
      yield* emulator.fail(Scenario.get("token/tls-wrong-host"))
      yield* fails(trusting, [], { step: "TLS", said: /the certificate is not of/, remedy: /Check the host/, code: 4 })
      yield* emulator.clearFaults
      yield* emulator.fail(Scenario.get("token/tls-expired"))
      yield* fails(trusting, [], { step: "TLS", said: /has expired/, remedy: /renew.*clock/, code: 4 })
      const { emulator: plain } = yield* startedWith()
      yield* fails(withEnv(user, { STORE_API_AUTH_URL: plain.url.replace("http:", "https:") }), [], {
        step: "TLS",
        said: /does not speak TLS/,
        remedy: /Check scheme and port/,
        code: 5
      })
    }))

  it.scopedLive("a proxy: not there, wanting a password, refusing, or none at all; one that works is passed", () =>
    Effect.gen(function*() {
      const { emulator, user } = yield* startedWith()
      // Names of other machines go through the proxy, which leads them all to the emulator.
      const named = withEnv(user, {
        STORE_API_AUTH_URL: "http://auth.store.example",
        STORE_API_CLIENT_ID: "demo-client"
      })
      const through = (port: number, credentials = "") =>
        withEnv(named, { HTTP_PROXY: `http://${credentials}127.0.0.1:${port}` })
      const insecure = ["--allow-insecure"]
      yield* fails(through(9), insecure, {
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
      yield* fails(through(port), insecure, {
        step: "proxy tunnel",
        said: /wants a user name and a password \(407\)/,
        remedy: /HTTP_PROXY/,
        code: 5
      })
      // A list with a star is no star, and a user without a password is not sent: as with the HTTP client.
      for (const almost of [through(port, "user@"), withEnv(through(port), { NO_PROXY: "other.store.example,*" })]) {
        yield* fails(almost, insecure, { step: "proxy tunnel", said: /\(407\)/, remedy: /HTTP_PROXY/, code: 5 })
      }
      yield* fails(
        withEnv(through(port, "user:invented@"), { STORE_API_AUTH_URL: "http://other.store.example" }),
        insecure,
        {
          step: "proxy tunnel",
          said: /makes no tunnel to other\.store\.example:80 \(403\)/,
          remedy: /NO_PROXY/,
          code: 5
        }
      )
      const silent = yield* listening(Net.createServer((socket) => socket.destroy()))
      yield* fails(through(silent), insecure, {
        step: "proxy tunnel",
        said: /broke off/,
        remedy: /Check that HTTP_PROXY names a proxy/,
        code: 5
      })
      const good = yield* check(through(port, "user:invented@"), insecure)
      deepStrictEqual([good.code, good.failed], [0, []])
      deepStrictEqual(good.steps.map(({ name }) => name).slice(1, 4), [
        "proxy name lookup",
        "proxy connection",
        "proxy tunnel"
      ])
      // This machine goes through none, whatever the environment says.
      const local = yield* check(withEnv(user, { HTTP_PROXY: "http://127.0.0.1:9" }))
      deepStrictEqual([local.code, local.steps[1]?.name], [0, "name lookup"])
    }))

  it.scopedLive("a redirect, and where to", () =>
    Effect.gen(function*() {
      const { emulator, user } = yield* startedWith({}, Scenario.get("token/redirect-302"))
      const origin = emulator.elsewhere.url.replaceAll(".", "\\.")
      yield* fails(user, [], {
        step: "token request",
        said: new RegExp(`redirected to ${origin}$`),
        remedy: /Set STORE_API_AUTH_URL/,
        code: 4
      })
      deepStrictEqual(yield* emulator.elsewhere.requests, [])
    }))

  it.scopedLive("a rate limit, and until when", () =>
    Effect.gen(function*() {
      const { user } = yield* startedWith(
        {},
        Fault.status(429, { headers: { "Retry-After": "900" }, times: Infinity })
      )
      yield* fails(user, [], {
        step: "token request",
        said: /too many tokens were asked for \(429\)/,
        remedy: /^Wait until \d{4}-.*Z;/,
        code: 5
      })
    }))

  it.scopedLive("what the endpoint's retries pass over", () =>
    Effect.gen(function*() {
      const passed: ReadonlyArray<readonly [ReadonlyArray<Fault.Script>, RegExp]> = [
        [[], /^a token that is good for [\d hmins]+$/],
        [[Fault.status(429)], /[ns], after 429$/],
        [
          [Fault.status(429), Fault.status(503, { times: 2 })],
          /, after 429 and 503$/
        ],
        [[Fault.reset("answer")], /[ns], after no answer$/],
        [[Fault.close("body")], /, after an answer that broke off$/]
      ]
      for (const [script, said] of passed) {
        const { code, failed, steps } = yield* check((yield* startedWith({}, ...script)).user)
        deepStrictEqual([code, failed], [0, []])
        assert.match(steps.find(({ name }) => name === "token request")?.said ?? "", said)
      }
      const { user } = yield* startedWith({}, Fault.status(429), Fault.status(403))
      yield* fails(user, [], { step: "token request", said: /\(403\), after 429$/, remedy: /403/, code: 4 })
      const { user: refused } = yield* startedWith({}, Fault.status(503, { times: Infinity }))
      yield* fails(refused, [], { step: "token request", said: /refused \(503\)$/, remedy: /503/, code: 5 })
    }))

  it.scopedLive("a web page in place of JSON, whatever its status", () =>
    Effect.gen(function*() {
      for (const name of ["token/body-html", "token/404", "token/403-html"] as const) {
        const { user } = yield* startedWith({}, Scenario.get(name))
        yield* fails(user, [], {
          step: "token request",
          said: /a web page, not JSON \((200|404|403)\)/,
          remedy: /Check STORE_API_AUTH_URL: it leads to a web site/,
          code: 4
        })
      }
    }))

  it.scopedLive("a refusal that is a web page, which says nothing of the secret", () =>
    Effect.gen(function*() {
      const { user } = yield* startedWith({}, Scenario.get("token/401-html"))
      yield* fails(user, [], {
        step: "token request",
        said: /^a web page refuses access, and does not say why \(401\)$/,
        remedy:
          /^Check that STORE_API_AUTH_URL leads to .*login page.*; if it does, the client id or the secret is wrong\.$/,
        code: 4
      })
    }))

  for (
    const [said, shift] of [["1 h 0 min ahead of", -3_600_000], [
      "59 min 5\\d s behind|1 h 0 min behind",
      3_600_000
    ]] as const
  ) {
    it.scopedLive(`a clock that is an hour off: ${shift < 0 ? "ahead" : "behind"}`, () =>
      Effect.gen(function*() {
        const date = new Date(Date.now() + shift).toUTCString()
        const { user } = yield* startedWith({}, Fault.fields({}, { headers: { Date: date } }))
        const expected = { step: "clock", said: new RegExp(said), remedy: /Set the clock of this machine/, code: 3 }
        const steps = yield* fails(user, [], expected)
        assert.isFalse(steps.find(({ name }) => name === "token request")?.failed)
      }))
  }

  it.scopedLive("a clock that is an hour off is named beside a refusal", () =>
    Effect.gen(function*() {
      const date = new Date(Date.now() - 3_600_000).toUTCString()
      const { user } = yield* startedWith({}, Fault.status(400, { headers: { Date: date } }))
      const { code, failed } = yield* check(user)
      deepStrictEqual([code, failed.map(({ name }) => name)], [4, ["token request", "clock"]])
    }))

  it.scopedLive("an API that says nothing, within the limit", () =>
    Effect.gen(function*() {
      const { user } = yield* startedWith({}, Fault.hang({ on: "api" }))
      yield* fails(user, ["/orders"], { step: "API call", said: /no answer in time/, remedy: /STORE_API_URL/, code: 6 })
    }))

  it.scopedLive("of the API: each status, a redirect, a page, nobody there", () =>
    Effect.gen(function*() {
      const html = { on: "api", headers: { "Content-Type": "text/html" }, body: "<html></html>" } as const
      const faults: ReadonlyArray<readonly [Fault.Script, RegExp, RegExp]> = [
        [Fault.status(401, { on: "api" }), /answered 401/, /same environment/],
        [Scenario.get("api/403"), /answered 403/, /what the client may do/],
        [Fault.status(404, { on: "api" }), /answered 404/, /path/],
        [Fault.status(429, { on: "api" }), /answered 429/, /Wait/],
        [Fault.status(503, { on: "api" }), /answered 503/, /out of order/],
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
        step: "connection",
        said: /refused/,
        remedy: /STORE_API_URL/,
        code: 5
      })
    }))
})
