import * as Http from "node:http"
import { networkInterfaces } from "node:os"
import { assert } from "@effect/vitest"
import { deepStrictEqual } from "@effect/vitest/utils"
import { Emulator, EmulatorError, Fault } from "@store-api/emulator"
import { freePort } from "@store-api/testing/loopback"
import { test } from "@store-api/testing/test"
import {
  Duration,
  Effect,
  Exit,
  Fiber,
  Layer,
  Logger,
  LogLevel,
  Option,
  Scope,
  Tracer
} from "effect"
import {
  askToken,
  callApi,
  connect,
  demoBody,
  formType,
  getToken,
  makeEarlierTokens,
  receive,
  send,
  tokenPath,
  until
} from "./utils.js"

const useLayer = Effect.gen(function*() {
  const { url } = yield* Emulator.Emulator
  assert.strictEqual((yield* askToken(url)).status, 200)
  return url
}).pipe(Effect.provide(Layer.fresh(Emulator.layer())))

test.live("an emulator listens on a free port of 127.0.0.1", function*() {
  assert.match(yield* useLayer, /^http:\/\/127\.0\.0\.1:\d+$/)
})

test.live("an emulator without TLS has no certificate", function*() {
  deepStrictEqual((yield* Emulator.make()).ca, Option.none())
})

test.live("an emulator stops when the scope of its layer closes", function*() {
  assert.isTrue(Exit.isFailure(yield* Effect.exit(askToken(yield* useLayer))))
})

test.live("an emulator listens on the port of an emulator that has stopped", function*() {
  const port = yield* freePort
  const once = Effect.scoped(Effect.map(Emulator.make({ port }), ({ url }) => url))
  const url = `http://127.0.0.1:${port}`
  deepStrictEqual([yield* once, yield* once], [url, url])
})

test.live("an emulator listens on ::1 if the machine has this address", function*() {
  const hasIpv6 = Object.values(networkInterfaces()).flat().some((address) =>
    address?.address === "::1"
  )
  const exit = yield* Effect.exit(Emulator.make({ host: "::1" }))
  assert.strictEqual(Exit.isSuccess(exit), hasIpv6)
  if (Exit.isFailure(exit)) return
  assert.match(exit.value.url, /^http:\/\/\[::1\]:\d+$/)
  assert.strictEqual((yield* askToken(exit.value.url)).status, 200)
})

test.live("an emulator adds nothing to the telemetry of the application", function*() {
  const [spans, entries]: [Array<string>, Array<string>] = [[], []]
  const native = yield* Effect.tracer
  const tracer = Tracer.make({
    context: (f) => f(),
    span: (name, ...rest) => {
      spans.push(name)
      return native.span(name, ...rest)
    }
  })
  const logger = Logger.make(({ message }) => void entries.push(String(message)))
  yield* Effect.gen(function*() {
    const { connections, fail, requests, url } = yield* Emulator.make()
    yield* fail(Fault.hang())
    const hanging = yield* Effect.fork(askToken(url))
    yield* until(Effect.map(requests, ({ length }) => length === 1))
    yield* Fiber.interrupt(hanging)
    yield* until(Effect.map(connections, (open) => open === 0))
    yield* askToken(url, { body: "" })
    yield* Effect.withSpan(Effect.logTrace("control"), "control")
  }).pipe(
    Effect.withTracer(tracer),
    Effect.provide(Logger.replace(Logger.defaultLogger, logger)),
    Logger.withMinimumLogLevel(LogLevel.All)
  )
  deepStrictEqual([spans, entries], [["control"], ["control"]])
})

test.live("an emulator does not start on a port that is in use, for which its error suggests another one", function*() {
  const { url } = yield* Emulator.make()
  const port = Number(new URL(url).port)
  const failure = yield* Effect.flip(Emulator.make({ port }))
  assert.instanceOf(failure, EmulatorError.EmulatorError)
  deepStrictEqual([failure._tag, failure.reason, failure.option], [
    "EmulatorError",
    "PortInUse",
    "port"
  ])
  assert.match(failure.message, new RegExp(`${port}\\b.* another port`))
  assert.strictEqual((yield* askToken(url)).status, 200)
})

test.live("a connection is kept alive between requests", function*() {
  const { connections, url } = yield* Emulator.make()
  const agent = new Http.Agent({ keepAlive: true })
  const token = yield* getToken(url, { agent })
  for (let count = 0; count < 5; count++) yield* callApi(url, token, { agent })
  assert.strictEqual(yield* connections, 1)
  agent.destroy()
})

test.live("an idle connection is counted until it ends", function*() {
  const { connections, url } = yield* Emulator.make()
  assert.strictEqual(yield* connections, 0)
  yield* Effect.scoped(
    Effect.zipRight(connect(url), until(Effect.map(connections, (open) => open === 1)))
  )
  yield* until(Effect.map(connections, (open) => open === 0))
})

test.live("closing the scope ends keep-alive, half-sent, silent or hanging connections at once", function*() {
  const scope = yield* Scope.make()
  const { connections, fail, pendingFaults, url } = yield* Scope.extend(
    Emulator.make(),
    scope
  )
  yield* fail(Fault.silence("connection"))
  yield* connect(url)
  const agent = new Http.Agent({ keepAlive: true })
  yield* askToken(url, { agent })
  yield* fail([Fault.hang(), Fault.delay("1 hour"), Fault.hang({ on: "api" })])
  const hanging = yield* Effect.forEach(
    [askToken(url), askToken(url), send(url, { path: "/" })],
    (request) => Effect.fork(Effect.exit(request))
  )
  yield* until(Effect.map(pendingFaults, ({ length }) => length === 0))

  yield* connect(url)
  const half = yield* connect(url)
  half.write(
    "POST /v1/oauth/accesstoken HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100\r\n\r\ngrant"
  )
  yield* until(Effect.map(connections, (open) => open === 7))

  const [took] = yield* Effect.timed(Scope.close(scope, Exit.void))
  // A server that only waits for its clients keeps them for a minute or more.
  assert.isBelow(Duration.toMillis(took), 45_000)
  yield* until(Effect.map(connections, (open) => open === 0))
  for (const request of hanging) assert.isTrue(Exit.isFailure(yield* Fiber.join(request)))
  yield* until(Effect.sync(() => half.closed))
  agent.destroy()
})

test.live("a request with the whole URL in its first line is served as one with the path alone", function*() {
  const { url } = yield* Emulator.make()
  const request = `POST ${url}${tokenPath} HTTP/1.1\r\nHost: ${new URL(url).host}\r\n` +
    `Content-Type: ${formType}\r\nContent-Length: ${demoBody.length}\r\n\r\n${demoBody}`
  assert.match(yield* receive(url, 13, request), /^HTTP\/1\.1 200 /)
})

test.live.each([
  [400, "nonsense\r\n\r\n"],
  [417, "GET / HTTP/1.1\r\nHost: a\r\nExpect: wonders\r\n\r\n"],
  [431, `GET / HTTP/1.1\r\nHost: a\r\nX: ${"x".repeat(20_000)}\r\n\r\n`]
])(
  "the log has a line about a request to which Node responds by itself: %i",
  function*([status, text]) {
    const lines: Array<string> = []
    const { url } = yield* Effect.provideService(Emulator.make(), Emulator.Observer, {
      keep: 0,
      onLine: (line) => Effect.sync(() => void lines.push(line))
    })
    assert.match(yield* receive(url, 13, text), new RegExp(`^HTTP/1\\.1 ${status} `))
    yield* until(Effect.sync(() => lines.length > 0))
    assert.lengthOf(lines, 1)
    assert.match(lines[0] ?? "", new RegExp(` ← connection ${status} in 0 ms: `))
  }
)

test.live("an emulator starts with 200 000 tokens of an earlier one", function*() {
  const emulator = yield* Emulator.make({ tokens: makeEarlierTokens(200_000) })
  yield* askToken(emulator.url)
  assert.strictEqual((yield* emulator.tokens).at(-1)?.id, 200_001)
})
