import * as Http from "node:http"
import { networkInterfaces } from "node:os"
import { assert, describe } from "@effect/vitest"
import { deepStrictEqual } from "@effect/vitest/utils"
import { Emulator, EmulatorError, Fault } from "@store-api/emulator"
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
import { askToken, callApi, connect, getToken, send, until } from "./utils.js"

describe("the layer", () => {
  test.live("starts an emulator on a free port of 127.0.0.1 for each scope, and stops it when its scope closes", function*() {
    const layer = Layer.fresh(Emulator.layer())
    const use = Effect.gen(function*() {
      const { ca, url } = yield* Emulator.Emulator
      deepStrictEqual(ca, Option.none())
      assert.match(url, /^http:\/\/127\.0\.0\.1:\d+$/)
      assert.strictEqual((yield* askToken(url)).status, 200)
      return url
    }).pipe(Effect.provide(layer))
    for (const url of [yield* use, yield* use]) {
      assert.isTrue(Exit.isFailure(yield* Effect.exit(askToken(url))))
    }
  })

  test.live("listens on the given port, also again after an emulator on it has stopped", function*() {
    const once = (port: number) =>
      Effect.scoped(
        Effect.map(Emulator.make({ port }), ({ url }) => Number(new URL(url).port))
      )
    const port = yield* once(0)
    deepStrictEqual([yield* once(port), yield* once(port)], [port, port])
  })

  test.live("listens on ::1 if the machine has this address", function*() {
    const hasIpv6 = Object.values(networkInterfaces()).flat().some((address) =>
      address?.address === "::1"
    )
    const exit = yield* Effect.exit(Emulator.make({ host: "::1" }))
    assert.strictEqual(Exit.isSuccess(exit), hasIpv6)
    if (Exit.isFailure(exit)) return
    assert.match(exit.value.url, /^http:\/\/\[::1\]:\d+$/)
    assert.strictEqual((yield* askToken(exit.value.url)).status, 200)
  })

  test.live("adds nothing to the traces and the logs of the application", function*() {
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
})

describe("an emulator does not start", () => {
  test.live("on a port that is in use, and the error suggests another port", function*() {
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
})

describe("connections", () => {
  test.live("are kept alive between requests, and counted while they are open, including idle ones", function*() {
    const { connections, url } = yield* Emulator.make()
    assert.strictEqual(yield* connections, 0)
    const agent = new Http.Agent({ keepAlive: true })
    const token = yield* getToken(url, { agent })
    for (let count = 0; count < 5; count++) yield* callApi(url, token, { agent })
    assert.strictEqual(yield* connections, 1)
    yield* Effect.scoped(
      Effect.zipRight(connect(url), until(Effect.map(connections, (open) => open === 2)))
    )
    yield* until(Effect.map(connections, (open) => open === 1))
    agent.destroy()
    yield* until(Effect.map(connections, (open) => open === 0))
  })
})

describe("closing the scope", () => {
  test.live("closes keep-alive, half-sent, silent and hanging connections at once", function*() {
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
    assert.isBelow(Duration.toMillis(took), 15_000)
    yield* until(Effect.map(connections, (open) => open === 0))
    for (const request of hanging) assert.isTrue(Exit.isFailure(yield* Fiber.join(request)))
    yield* until(Effect.sync(() => half.closed))
    agent.destroy()
  })
})
