import * as Http from "node:http"
import * as Net from "node:net"
import { gunzipSync } from "node:zlib"
import { assert, describe } from "@effect/vitest"
import { deepStrictEqual } from "@effect/vitest/utils"
import { Emulator, Fault } from "@store-api/emulator"
import { Effect, Exit, type Scope } from "effect"
import { test } from "../../core/test/support/test.js"
import { askToken, callApi, connect, demoBody, formType, getToken, json, tokenPath, until } from "./utils.js"

interface Wire {
  readonly text: string
  readonly end: "Close" | "Reset" | "Silence"
}

/**
 * Sends a token request on a plain socket. Returns the received bytes and the end of the connection. It is "Silence" if
 * nothing ends the connection for 250 ms, counted from the first byte if the fault sends bytes.
 */
const requestOnSocket = (url: string, sendsBytes: boolean): Effect.Effect<Wire, never, Scope.Scope> =>
  Effect.gen(function*() {
    const socket = yield* Effect.acquireRelease(
      Effect.sync(() => Net.connect(Number(new URL(url).port), "127.0.0.1")),
      (socket) => Effect.sync(() => socket.destroy())
    )
    let text = ""
    const ended = Effect.async<Wire["end"]>((resume) => {
      socket.on("data", (chunk: Buffer) => {
        text += chunk.toString("latin1")
      })
      socket.on("error", () => resume(Effect.succeed("Reset")))
      socket.on("end", () => resume(Effect.succeed("Close")))
      socket.write(
        `POST ${tokenPath} HTTP/1.1\r\nHost: localhost\r\nContent-Type: ${formType}\r\n` +
          `Content-Length: ${demoBody.length}\r\n\r\n${demoBody}`
      )
    })
    const firstByte = Effect.async<void>((resume) => {
      socket.once("data", () => resume(Effect.void))
    })
    const silence = Effect.delay(Effect.succeed("Silence" as const), "250 millis")
    const end = yield* Effect.race(ended, sendsBytes ? Effect.zipRight(firstByte, silence) : silence)
    return { text, end }
  })

const observe = (fault: Fault.Fault, sendsBytes: boolean) =>
  Effect.gen(function*() {
    const emulator = yield* Emulator.make()
    yield* emulator.fail(fault)
    const wire = yield* Effect.scoped(requestOnSocket(emulator.url, sendsBytes))
    yield* until(Effect.map(emulator.connections, (open) => open === 0))
    assert.lengthOf(yield* emulator.pendingFaults, 0)
    assert.strictEqual((yield* askToken(emulator.url)).status, 200, "the next request succeeds")
    return wire
  })

const endings = { Reset: Fault.reset, Close: Fault.close, Silence: Fault.silence }

describe("a connection that the emulator breaks off", () => {
  for (const [ending, fault] of Object.entries(endings)) {
    for (const moment of ["connection", "answer", "headers", "body"] as const) {
      test.live(`on "${moment}" ends with ${ending}`, function*() {
        const sendsBytes = moment === "headers" || moment === "body"
        const { end, text } = yield* observe(fault(moment), sendsBytes)
        assert.strictEqual(end, ending)
        if (!sendsBytes) {
          assert.strictEqual(text, "")
          return
        }
        assert.match(text, /^HTTP\/1\.1 200 OK\r\nContent-Type/)
        assert.strictEqual(text.includes("\r\n\r\n"), moment === "body")
      })
    }
  }

  test.live("on \"connection\" is the next one that opens, whatever `on` names, `times` times", function*() {
    const { fail, pendingFaults, requests, url } = yield* Emulator.make()
    yield* fail([Fault.status(503), Fault.reset("connection", { times: 2, on: "api" })])
    assert.isTrue(Exit.isFailure(yield* Effect.exit(askToken(url))))
    assert.isTrue(Exit.isFailure(yield* Effect.exit(callApi(url, "a-token"))))
    assert.lengthOf(yield* requests, 0)
    deepStrictEqual((yield* pendingFaults).map(({ _tag }) => _tag), ["Answer"])
    assert.strictEqual((yield* askToken(url)).status, 503)
  })

  test.live("closes when the emulator stops, also if it is silent", function*() {
    const socket = yield* Effect.scoped(Effect.gen(function*() {
      const { connections, fail, url } = yield* Emulator.make()
      yield* fail(Fault.silence("connection"))
      const socket = yield* connect(url)
      yield* until(Effect.map(connections, (open) => open === 1))
      return socket
    }))
    yield* until(Effect.sync(() => socket.destroyed))
  })
})

describe("an invalid HTTP response", () => {
  const faults: Record<string, readonly [Fault.Fault, RegExp]> = {
    "bad chunks": [Fault.badChunks(), /Transfer-Encoding: chunked\r\n\r\nno-size\r\n/],
    "contradicting lengths": [Fault.contradictingLengths(), /Content-Length: (\d+)\r\nContent-Length: (?!\1\r)\d+\r\n/],
    "not HTTP": [Fault.notHttp(), /^220 .*\r\n$/],
    "huge headers": [Fault.hugeHeaders(), /\r\nX-Filler: x{1048576}\r\n/],
    "any bytes": [Fault.raw("HTTP/1.1 200 OK\r\n\r\n!"), /^HTTP\/1\.1 200 OK\r\n\r\n!$/]
  }
  for (const [name, [fault, expected]] of Object.entries(faults)) {
    test.live(`is sent byte for byte: ${name}`, function*() {
      const { end, text } = yield* observe(fault, true)
      assert.match(text, expected)
      assert.strictEqual(end, "Close")
    })
  }
})

describe("the normal response", () => {
  test.live("can have changed and omitted fields, and the API accepts its token", function*() {
    const { fail, url } = yield* Emulator.make()
    yield* fail(
      Fault.fields({ expires_in: "12", scope: undefined, more: null }, {
        headers: { "Transfer-Encoding": "chunked" }
      })
    )
    const response = yield* askToken(url)
    const fields = json(response)
    deepStrictEqual([fields["expires_in"], fields["more"], "scope" in fields], ["12", null, false])
    assert.strictEqual(response.headers["transfer-encoding"], "chunked")
    assert.strictEqual(response.headers["cache-control"], "no-store")
    assert.strictEqual((yield* callApi(url, String(fields["access_token"]))).status, 200)
  })

  test.live("can be compressed with gzip", function*() {
    const { fail, url } = yield* Emulator.make()
    yield* fail(Fault.gzip())
    const bytes = yield* Effect.promise(() =>
      new Promise<Buffer>((resolve) => {
        Http.request(url + tokenPath, { method: "POST", headers: { "Content-Type": formType } }, (response) => {
          const chunks: Array<Buffer> = []
          assert.strictEqual(response.headers["content-encoding"], "gzip")
          response.on("data", (chunk: Buffer) => chunks.push(chunk)).on("end", () => resolve(Buffer.concat(chunks)))
        }).end(demoBody)
      })
    )
    assert.property(JSON.parse(gunzipSync(bytes).toString()), "access_token")
  })

  test.live("can follow a 100 Continue that the client did not request", function*() {
    const { text } = yield* observe(Fault.unaskedContinue(), true)
    assert.match(text, /^HTTP\/1\.1 100 Continue\r\n\r\nHTTP\/1\.1 200 OK\r\n/)
    assert.include(text, "access_token")
  })

  test.live("is not changed if it is an error", function*() {
    const { fail, url } = yield* Emulator.make()
    yield* fail([Fault.fields({ error: "changed" }), Fault.gzip()])
    assert.strictEqual(json(yield* askToken(url, { body: "" }))["error"], "invalid_request")
    assert.strictEqual(json(yield* askToken(url, { body: "" }))["error"], "invalid_request")
  })

  test.live("is sent after Fault.revoke has revoked all tokens", function*() {
    const { fail, url } = yield* Emulator.make()
    const [one, other] = [yield* getToken(url), yield* getToken(url)]
    yield* fail(Fault.revoke({ on: "api" }))
    assert.strictEqual((yield* callApi(url, one)).status, 401)
    assert.strictEqual((yield* callApi(url, other)).status, 401)
    assert.strictEqual((yield* callApi(url, yield* getToken(url))).status, 200)
  })
})
