import * as Http from "node:http"
import * as Net from "node:net"
import { gunzipSync } from "node:zlib"
import { assert, describe, it } from "@effect/vitest"
import { deepStrictEqual } from "@effect/vitest/utils"
import { Emulator, Fault } from "@store-api/emulator"
import { Effect, Exit, type Scope } from "effect"
import { askToken, callApi, connect, demoBody, formType, getToken, json, tokenPath, until } from "./utils.js"

interface Wire {
  readonly text: string
  readonly end: "Close" | "Reset" | "Silence"
}

/**
 * Sends a token request on a bare socket. Returns the bytes that came, and what became of the connection: silence counts
 * from the first byte, where there is one.
 */
const onTheWire = (url: string, sendsBytes: boolean): Effect.Effect<Wire, never, Scope.Scope> =>
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

const met = (fault: Fault.Fault, sendsBytes: boolean) =>
  Effect.gen(function*() {
    const emulator = yield* Emulator.make()
    yield* emulator.fail(fault)
    const wire = yield* Effect.scoped(onTheWire(emulator.url, sendsBytes))
    yield* until(Effect.map(emulator.connections, (open) => open === 0))
    assert.lengthOf(yield* emulator.pendingFaults, 0)
    assert.strictEqual((yield* askToken(emulator.url)).status, 200, "the next request is answered")
    return wire
  })

const endings = { Reset: Fault.reset, Close: Fault.close, Silence: Fault.silence }

describe("a connection that is broken off", () => {
  for (const [ending, fault] of Object.entries(endings)) {
    for (const moment of ["connection", "answer", "headers", "body"] as const) {
      it.scopedLive(`on "${moment}" ends with ${ending}`, () =>
        Effect.gen(function*() {
          const sendsBytes = moment === "headers" || moment === "body"
          const { end, text } = yield* met(fault(moment), sendsBytes)
          assert.strictEqual(end, ending)
          if (!sendsBytes) {
            assert.strictEqual(text, "")
            return
          }
          assert.match(text, /^HTTP\/1\.1 200 OK\r\nContent-Type/)
          assert.strictEqual(text.includes("\r\n\r\n"), moment === "body")
        }))
    }
  }

  it.scopedLive("on \"connection\" is met by the next that opens, whatever it is for, as often as it says", () =>
    Effect.gen(function*() {
      const { fail, pendingFaults, requests, url } = yield* Emulator.make()
      yield* fail([Fault.status(503), Fault.reset("connection", { times: 2, on: "api" })])
      assert.isTrue(Exit.isFailure(yield* Effect.exit(askToken(url))))
      assert.isTrue(Exit.isFailure(yield* Effect.exit(callApi(url, "a-token"))))
      assert.lengthOf(yield* requests, 0)
      deepStrictEqual((yield* pendingFaults).map(({ _tag }) => _tag), ["Answer"])
      assert.strictEqual((yield* askToken(url)).status, 503)
    }))

  it.scopedLive("ends with the emulator, however silent", () =>
    Effect.gen(function*() {
      const socket = yield* Effect.scoped(Effect.gen(function*() {
        const { connections, fail, url } = yield* Emulator.make()
        yield* fail(Fault.silence("connection"))
        const socket = yield* connect(url)
        yield* until(Effect.map(connections, (open) => open === 1))
        return socket
      }))
      yield* until(Effect.sync(() => socket.destroyed))
    }))
})

describe("an answer that no server would make", () => {
  const answers: Record<string, readonly [Fault.Fault, RegExp]> = {
    "bad chunks": [Fault.badChunks(), /Transfer-Encoding: chunked\r\n\r\nno-size\r\n/],
    "contradicting lengths": [Fault.contradictingLengths(), /Content-Length: (\d+)\r\nContent-Length: (?!\1\r)\d+\r\n/],
    "not HTTP": [Fault.notHttp(), /^220 .*\r\n$/],
    "huge headers": [Fault.hugeHeaders(), /\r\nX-Filler: x{1048576}\r\n/],
    "any bytes": [Fault.raw("HTTP/1.1 200 OK\r\n\r\n!"), /^HTTP\/1\.1 200 OK\r\n\r\n!$/]
  }
  for (const [name, [fault, expected]] of Object.entries(answers)) {
    it.scopedLive(name, () =>
      Effect.gen(function*() {
        const { end, text } = yield* met(fault, true)
        assert.match(text, expected)
        assert.strictEqual(end, "Close")
      }))
  }

  it.scopedLive("an unasked 100 Continue, with the token behind it", () =>
    Effect.gen(function*() {
      const { text } = yield* met(Fault.unaskedContinue(), true)
      assert.match(text, /^HTTP\/1\.1 100 Continue\r\n\r\nHTTP\/1\.1 200 OK\r\n/)
      assert.include(text, "access_token")
    }))
})

describe("the emulator's own answer", () => {
  it.scopedLive("with fields changed and left out is a token that the API takes", () =>
    Effect.gen(function*() {
      const { fail, url } = yield* Emulator.make()
      yield* fail(
        Fault.fields({ expires_in: "12", scope: undefined, more: null }, {
          headers: { "Transfer-Encoding": "chunked" }
        })
      )
      const answer = yield* askToken(url)
      const fields = json(answer)
      deepStrictEqual([fields["expires_in"], fields["more"], "scope" in fields], ["12", null, false])
      assert.strictEqual(answer.headers["transfer-encoding"], "chunked")
      assert.strictEqual(answer.headers["cache-control"], "no-store")
      assert.strictEqual((yield* callApi(url, String(fields["access_token"]))).status, 200)
    }))

  it.scopedLive("compressed is the same", () =>
    Effect.gen(function*() {
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
    }))

  it.scopedLive("that is a refusal is left as it is", () =>
    Effect.gen(function*() {
      const { fail, url } = yield* Emulator.make()
      yield* fail([Fault.fields({ error: "changed" }), Fault.gzip()])
      assert.strictEqual(json(yield* askToken(url, { body: "" }))["error"], "invalid_request")
      assert.strictEqual(json(yield* askToken(url, { body: "" }))["error"], "invalid_request")
    }))

  it.scopedLive("comes after all tokens were revoked", () =>
    Effect.gen(function*() {
      const { fail, url } = yield* Emulator.make()
      const [one, other] = [yield* getToken(url), yield* getToken(url)]
      yield* fail(Fault.revoke({ on: "api" }))
      assert.strictEqual((yield* callApi(url, one)).status, 401)
      assert.strictEqual((yield* callApi(url, other)).status, 401)
      assert.strictEqual((yield* callApi(url, yield* getToken(url))).status, 200)
    }))
})
