import * as Http from "node:http"
import { gunzipSync } from "node:zlib"
import { assert, describe, it } from "@effect/vitest"
import { deepStrictEqual } from "@effect/vitest/utils"
import { Emulator, Fault } from "@store-api/emulator"
import { Clock, Effect, Exit, Fiber, Option, Redacted } from "effect"
import { askToken, callApi, connect, demoBody, demoSecret, getToken, json, send, tokenPath, until } from "./utils.js"

/** What arrives on a bare socket until there is so much of it. */
const arriving = (url: string, enough: number) =>
  Effect.flatMap(connect(url), (socket) =>
    Effect.async<string>((resume) => {
      let text = ""
      socket.on("data", (chunk: Buffer) => {
        text += chunk.toString("latin1")
        if (text.length >= enough) resume(Effect.succeed(text))
      })
      socket.write(`POST ${tokenPath} HTTP/1.1\r\nHost: localhost\r\nContent-Length: 0\r\n\r\n`)
    }))

describe("a body that does not end", () => {
  it.scopedLive("drips, until the client goes away", () =>
    Effect.gen(function*() {
      const { connections, fail, url } = yield* Emulator.make()
      yield* fail(Fault.drip("5 millis", { status: 503 }))
      const text = yield* Effect.scoped(arriving(url, 250))
      assert.match(text, /^HTTP\/1\.1 503 [\s\S]*\r\n\r\n(1\r\n \r\n){3,}/)
      yield* until(Effect.map(connections, (open) => open === 0))
    }))

  it.scopedLive("floods, as far as the client reads", () =>
    Effect.gen(function*() {
      const { connections, fail, requests, url } = yield* Emulator.make()
      yield* fail(Fault.flood(Infinity))
      const text = yield* Effect.scoped(arriving(url, 1_000_000))
      assert.include(text, "xxxxxxxx")
      yield* until(Effect.map(connections, (open) => open === 0))
      yield* until(Effect.map(requests, ([recorded]) => (recorded?.sentBytes ?? 0) >= 1_000_000))
      const [recorded] = yield* requests
      assert.isBelow(recorded?.sentBytes ?? Infinity, 64 * 1024 * 1024)
    }))

  it.scopedLive("may be as long as it is told", () =>
    Effect.gen(function*() {
      const { fail, requests, url } = yield* Emulator.make()
      yield* fail(Fault.flood(1_000_001, { status: 400 }))
      const answer = yield* askToken(url)
      deepStrictEqual([answer.status, answer.text.length], [400, 1_000_001])
      const [recorded] = yield* requests
      deepStrictEqual(recorded?.status, Option.some(400))
    }))

  it.scopedLive("may be a bomb", () =>
    Effect.gen(function*() {
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
    }))
})

describe("a refusal", () => {
  it.scopedLive("echoes what was sent", () =>
    Effect.gen(function*() {
      const { fail, url } = yield* Emulator.make()
      yield* fail(Fault.echo(400))
      const answer = yield* askToken(url)
      assert.strictEqual(answer.status, 400)
      assert.include(String(json(answer)["error_description"]), demoSecret)
    }))

  it.scopedLive("says when to come back, by the clock of the layer", () =>
    Effect.gen(function*() {
      const noon = Object.assign(Clock.make(), { currentTimeMillis: Effect.succeed(Date.UTC(2030, 0, 1, 12)) })
      const { fail, url } = yield* Effect.withClock(Emulator.make(), noon)
      yield* fail(Fault.retryDate(429, "90 seconds"))
      const answer = yield* askToken(url)
      deepStrictEqual([answer.status, answer.headers["retry-after"]], [429, "Tue, 01 Jan 2030 12:01:30 GMT"])
    }))
})

describe("a redirect", () => {
  it.scopedLive("points to where it says", () =>
    Effect.gen(function*() {
      const { elsewhere, fail, url } = yield* Emulator.make({ basePath: "/store" })
      const targets = ["elsewhere", "itself", "loop", {}, { location: "http://[" }, { location: "" }] as const
      yield* fail(targets.map((to) => Fault.redirect(307, to)))
      const answers = yield* Effect.forEach(targets, () => askToken(url))
      deepStrictEqual(answers.map(({ headers }) => headers.location), [
        `${elsewhere.url}/store${tokenPath}`,
        "/store/moved",
        `/store${tokenPath}`,
        undefined,
        "http://[",
        ""
      ])
      assert.isTrue(answers.every(({ status }) => status === 307))
      assert.lengthOf(yield* elsewhere.requests, 0)
    }))

  it.scopedLive("leads to another origin, which writes down who comes, and gives nothing away", () =>
    Effect.gen(function*() {
      const { elsewhere, tokens, url } = yield* Emulator.make()
      assert.notStrictEqual(new URL(elsewhere.url).origin, new URL(url).origin)
      const token = yield* getToken(url)
      yield* callApi(elsewhere.url, token)
      const answer = yield* send(elsewhere.url, { method: "POST", path: tokenPath, body: demoBody })
      assert.property(json(answer), "access_token")
      const [first, second] = yield* elsewhere.requests
      deepStrictEqual(
        Option.map(first?.authorization ?? Option.none(), Redacted.value),
        Option.some(`Bearer ${token}`)
      )
      assert.strictEqual(Redacted.value(second?.body ?? Redacted.make("")), demoBody)
      assert.notInclude(JSON.stringify(yield* elsewhere.requests), token)
      assert.lengthOf(yield* tokens, 1, "its tokens are none of the emulator's")
    }))
})

describe("a stale connection", () => {
  it.scopedLive("is reset when it is used again; new ones pass the step by", () =>
    Effect.gen(function*() {
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
    }))
})

describe("a step that cannot be", () => {
  const steps = {
    "TLS without TLS": Fault.tls("Expired"),
    "a drip without pause": Fault.drip(0),
    "a flood of less than nothing": Fault.flood(-1),
    "a flood of NaN": Fault.flood(NaN),
    "a redirect with 200": Fault.redirect(200, "loop"),
    "a redirect to two lines": Fault.redirect(302, { location: "/a\r\nX-B: c" }),
    "an echo with 99": Fault.echo(99),
    "half a time on a connection": Fault.reset("connection", { times: 0.5 })
  }
  for (const [name, step] of Object.entries(steps)) {
    it.scopedLive(`is a defect where it is written: ${name}`, () =>
      Effect.gen(function*() {
        const { fail, pendingFaults } = yield* Emulator.make()
        const exit = yield* Effect.exit(fail(step))
        assert.isTrue(Exit.isFailure(exit) && exit.cause._tag === "Die")
        assert.lengthOf(yield* pendingFaults, 0)
      }))
  }

  it.scopedLive("hangs no one when it is interrupted", () =>
    Effect.gen(function*() {
      const { connections, fail, url } = yield* Emulator.make()
      yield* fail(Fault.flood(Infinity))
      const asking = yield* Effect.fork(askToken(url))
      yield* until(Effect.map(connections, (open) => open === 1))
      yield* Fiber.interrupt(asking)
      yield* until(Effect.map(connections, (open) => open === 0))
    }))
})
