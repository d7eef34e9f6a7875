import * as Https from "node:https"
import * as Net from "node:net"
import * as Tls from "node:tls"
import { assert } from "@effect/vitest"
import { Emulator, Fault } from "@store-api/emulator"
import { test } from "@store-api/testing/test"
import { Effect, Option } from "effect"
import { connect, demoBody, formType, tokenPath, until } from "./utils.js"

const emulator = Effect.map(
  Emulator.make({ tls: true }),
  (all) => ({ ...all, ca: Option.getOrThrow(all.ca) })
)

/** Sends a token request. Returns the status, or the error code of the connection. */
const requestStatus = (url: string, options: Https.RequestOptions) =>
  Effect.async<number | string>((resume) => {
    Https.request(url + tokenPath, {
      ...options,
      agent: false,
      method: "POST",
      headers: { "Content-Type": formType, "Content-Length": demoBody.length }
    }, (response) => {
      response.resume()
        .on("end", () => resume(Effect.succeed(response.statusCode ?? 0)))
        .on("error", ({ message }) => resume(Effect.succeed(message)))
    }).on(
      "error",
      (error: NodeJS.ErrnoException) => resume(Effect.succeed(error.code ?? error.message))
    ).end(demoBody)
  })

test.live("an emulator with TLS is trusted only by clients that trust its authority", function*() {
  const { ca, connections, requests, url } = yield* emulator
  assert.match(url, /^https:\/\/127\.0\.0\.1:\d+$/)
  const port = Number(new URL(url).port)
  assert.strictEqual(yield* requestStatus(url, { ca }), 200)
  assert.strictEqual(yield* requestStatus(`https://localhost:${port}`, { ca }), 200)
  assert.lengthOf(yield* requests, 2)
  assert.notStrictEqual(yield* requestStatus(url, {}), 200)
  assert.notStrictEqual(yield* requestStatus(url, { ca: (yield* emulator).ca }), 200)
  assert.lengthOf(yield* requests, 2)
  yield* until(Effect.map(connections, (open) => open === 0))
})

test.live("an emulator with TLS closes a connection with plain HTTP", function*() {
  const { connections, requests, url } = yield* emulator
  const socket = yield* connect(url)
  socket.write("GET / HTTP/1.1\r\n\r\n")
  yield* until(Effect.map(connections, (open) => open === 0))
  assert.lengthOf(yield* requests, 0)
})

test.live("closing the scope closes connections of TLS, also during a handshake", function*() {
  const sockets = yield* Effect.scoped(Effect.gen(function*() {
    const { ca, connections, fail, url } = yield* emulator
    const port = Number(new URL(url).port)
    yield* fail(Fault.unfinishedHandshake())
    const half = Tls.connect({ port, host: "127.0.0.1", ca })
    yield* until(Effect.map(connections, (open) => open === 1))
    const whole = Tls.connect({ port, host: "127.0.0.1", ca })
    const bare = Net.connect(port, "127.0.0.1")
    const sockets = [half, whole, bare]
    for (const socket of sockets) socket.on("error", () => undefined)
    yield* until(Effect.sync(() => whole.authorized))
    assert.isFalse(half.authorized)
    return sockets
  }))
  yield* until(Effect.sync(() => sockets.every(({ destroyed }) => destroyed)))
})

test.live.each(
  [
    ["SelfSigned", "DEPTH_ZERO_SELF_SIGNED_CERT"],
    ["Expired", "CERT_HAS_EXPIRED"],
    ["WrongHost", "ERR_TLS_CERT_ALTNAME_INVALID"],
    ["Tls1.1", "ERR_SSL_TLSV1_ALERT_PROTOCOL_VERSION", "EPROTO"]
  ] as const
)("fails one handshake because of the flaw %s", function*([flaw, ...codes]) {
  const { ca, connections, fail, requests, url } = yield* emulator
  yield* fail(Fault.tls(flaw))
  assert.include<string | number>(codes, yield* requestStatus(url, { ca }))
  assert.lengthOf(yield* requests, 0)
  yield* until(Effect.map(connections, (open) => open === 0))
  assert.strictEqual(yield* requestStatus(url, { ca }), 200)
})

test.live("an emulator can speak TLS 1.1 with a client that accepts it", function*() {
  const { ca, fail, url } = yield* emulator
  yield* fail(Fault.tls("Tls1.1"))
  assert.strictEqual(
    yield* requestStatus(url, { ca, minVersion: "TLSv1.1", ciphers: "DEFAULT:@SECLEVEL=0" }),
    200
  )
})
