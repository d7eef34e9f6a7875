import * as Http from "node:http"
import { gunzipSync } from "node:zlib"
import { assert, describe } from "@effect/vitest"
import { deepStrictEqual } from "@effect/vitest/utils"
import { Emulator, Fault } from "@store-api/emulator"
import { Clock, Effect, Exit, Fiber, Option, Redacted } from "effect"
import { test } from "../../core/test/support/test.js"
import { askToken, callApi, connect, demoBody, demoSecret, getToken, json, send, tokenPath, until } from "./utils.js"

/** Sends a token request on a plain socket, and returns the received text once it has this length. */
const receive = (url: string, length: number) =>
  Effect.flatMap(connect(url), (socket) =>
    Effect.async<string>((resume) => {
      let text = ""
      socket.on("data", (chunk: Buffer) => {
        text += chunk.toString("latin1")
        if (text.length >= length) resume(Effect.succeed(text))
      })
      socket.write(`POST ${tokenPath} HTTP/1.1\r\nHost: localhost\r\nContent-Length: 0\r\n\r\n`)
    }))

describe("a long body", () => {
  test.live("is sent one space at a time until the client disconnects", function*() {
    const { connections, fail, url } = yield* Emulator.make()
    yield* fail(Fault.drip("5 millis", { status: 503 }))
    const text = yield* Effect.scoped(receive(url, 250))
    assert.match(text, /^HTTP\/1\.1 503 [\s\S]*\r\n\r\n(1\r\n \r\n){3,}/)
    yield* until(Effect.map(connections, (open) => open === 0))
  })

  test.live("is sent only as far as the client reads it", function*() {
    const { connections, fail, requests, url } = yield* Emulator.make()
    yield* fail(Fault.flood(Infinity))
    const text = yield* Effect.scoped(receive(url, 1_000_000))
    assert.include(text, "xxxxxxxx")
    yield* until(Effect.map(connections, (open) => open === 0))
    yield* until(Effect.map(requests, ([recorded]) => (recorded?.sentBytes ?? 0) >= 1_000_000))
    const [recorded] = yield* requests
    assert.isBelow(recorded?.sentBytes ?? Infinity, 64 * 1024 * 1024)
  })

  test.live("has the given length", function*() {
    const { fail, requests, url } = yield* Emulator.make()
    yield* fail(Fault.flood(1_000_001, { status: 400 }))
    const response = yield* askToken(url)
    deepStrictEqual([response.status, response.text.length], [400, 1_000_001])
    const [recorded] = yield* requests
    deepStrictEqual(recorded?.status, Option.some(400))
  })

  test.live("can be a decompression bomb", function*() {
    const { fail, url } = yield* Emulator.make()
    yield* fail(Fault.bomb(3))
    const bytes = yield* Effect.promise(() =>
      new Promise<Buffer>((resolve) => {
        Http.request(url + tokenPath, { method: "POST" }, (response) => {
          const chunks: Array<Buffer> = []
          response.on("data", (chunk: Buffer) => chunks.push(chunk)).on("end", () => resolve(Buffer.concat(chunks)))
        }).end()
      })
    )
    assert.isBelow(bytes.length, 10_000)
    assert.isTrue(gunzipSync(bytes).equals(Buffer.alloc(3 * 1024 * 1024)))
  })

  test.live("ends when the client interrupts its request", function*() {
    const { connections, fail, url } = yield* Emulator.make()
    yield* fail(Fault.flood(Infinity))
    const fiber = yield* Effect.fork(askToken(url))
    yield* until(Effect.map(connections, (open) => open === 1))
    yield* Fiber.interrupt(fiber)
    yield* until(Effect.map(connections, (open) => open === 0))
  })
})

describe("an error response", () => {
  test.live("can repeat the body of the request", function*() {
    const { fail, url } = yield* Emulator.make()
    yield* fail(Fault.echo(400))
    const response = yield* askToken(url)
    assert.strictEqual(response.status, 400)
    assert.include(String(json(response)["error_description"]), demoSecret)
  })

  test.live("can have a date in Retry-After, by the emulator's clock", function*() {
    const noon = Object.assign(Clock.make(), { currentTimeMillis: Effect.succeed(Date.UTC(2030, 0, 1, 12)) })
    const { fail, url } = yield* Effect.withClock(Emulator.make(), noon)
    yield* fail(Fault.retryDate(429, "90 seconds"))
    const response = yield* askToken(url)
    deepStrictEqual([response.status, response.headers["retry-after"]], [429, "Tue, 01 Jan 2030 12:01:30 GMT"])
  })
})

describe("a redirect", () => {
  test.live("has the Location of its target", function*() {
    const { elsewhere, fail, url } = yield* Emulator.make({ basePath: "/store" })
    const targets = ["elsewhere", "itself", "loop", {}, { location: "http://[" }, { location: "" }] as const
    yield* fail(targets.map((to) => Fault.redirect(307, to)))
    const responses = yield* Effect.forEach(targets, () => askToken(url))
    deepStrictEqual(responses.map(({ headers }) => headers.location), [
      `${elsewhere.url}/store${tokenPath}`,
      "/store/moved",
      `/store${tokenPath}`,
      undefined,
      "http://[",
      ""
    ])
    assert.isTrue(responses.every(({ status }) => status === 307))
    assert.lengthOf(yield* elsewhere.requests, 0)
  })

  test.live("can point to another origin, which records requests and responds with a token of its own", function*() {
    const { elsewhere, tokens, url } = yield* Emulator.make()
    assert.notStrictEqual(new URL(elsewhere.url).origin, new URL(url).origin)
    const token = yield* getToken(url)
    yield* callApi(elsewhere.url, token)
    const response = yield* send(elsewhere.url, { method: "POST", path: tokenPath, body: demoBody })
    assert.property(json(response), "access_token")
    const [first, second] = yield* elsewhere.requests
    deepStrictEqual(
      Option.map(first?.authorization ?? Option.none(), Redacted.value),
      Option.some(`Bearer ${token}`)
    )
    assert.strictEqual(Redacted.value(second?.body ?? Redacted.make("")), demoBody)
    assert.notInclude(JSON.stringify(yield* elsewhere.requests), token)
    assert.lengthOf(yield* tokens, 1, "the emulator did not issue the other token")
  })
})

describe("a stale connection", () => {
  test.live("is reset by its next request; the step does not apply to new connections", function*() {
    const { fail, pendingFaults, url } = yield* Emulator.make()
    const agent = yield* Effect.acquireRelease(
      Effect.sync(() => new Http.Agent({ keepAlive: true, maxSockets: 1 })),
      (agent) => Effect.sync(() => agent.destroy())
    )
    yield* fail([Fault.stale(), Fault.status(503)])
    assert.strictEqual((yield* askToken(url, { agent })).status, 503)
    assert.lengthOf(yield* pendingFaults, 1)
    assert.isTrue(Exit.isFailure(yield* Effect.exit(askToken(url, { agent }))))
    assert.lengthOf(yield* pendingFaults, 0)
    assert.strictEqual((yield* askToken(url, { agent })).status, 200)
  })
})

describe("a step that cannot be performed", () => {
  const steps = {
    "a TLS flaw without TLS": Fault.tls("Expired"),
    "a drip with an interval of zero": Fault.drip(0),
    "a flood of -1 bytes": Fault.flood(-1),
    "a flood of NaN bytes": Fault.flood(NaN),
    "a redirect with status 200": Fault.redirect(200, "loop"),
    "a redirect to a location with a line break": Fault.redirect(302, { location: "/a\r\nX-B: c" }),
    "an echo with status 99": Fault.echo(99),
    "times 0.5 on a connection": Fault.reset("connection", { times: 0.5 })
  }
  for (const [name, step] of Object.entries(steps)) {
    test.live(`makes fail die: ${name}`, function*() {
      const { fail, pendingFaults } = yield* Emulator.make()
      const exit = yield* Effect.exit(fail(step))
      assert.isTrue(Exit.isFailure(exit) && exit.cause._tag === "Die")
      assert.lengthOf(yield* pendingFaults, 0)
    })
  }
})
