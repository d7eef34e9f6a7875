/** What a client receives from a fault: broken connections, invalid responses, long bodies and redirects. */
import * as Http from "node:http"
import * as Net from "node:net"
import { gunzipSync } from "node:zlib"
import { assert } from "@effect/vitest"
import { deepStrictEqual } from "@effect/vitest/utils"
import { Emulator, Fault } from "@store-api/emulator"
import { test } from "@store-api/testing/test"
import { Clock, Effect, Exit, Fiber, Option, Record, Redacted } from "effect"
import {
  askToken,
  callApi,
  demoBody,
  demoSecret,
  failing,
  formType,
  getToken,
  json,
  receive,
  send,
  tokenPath,
  until
} from "./utils.js"

type End = "Close" | "Reset" | "Silence"

/**
 * Sends a token request on a plain socket. Returns the received bytes and the end of the connection. It is "Silence" if
 * nothing ends the connection for 250 ms after `isSilent`, which gets the bytes.
 */
const requestOnSocket = (url: string, isSilent: (text: string) => Effect.Effect<boolean>) =>
  Effect.gen(function*() {
    const socket = yield* Effect.acquireRelease(
      Effect.sync(() => Net.connect(Number(new URL(url).port), "127.0.0.1")),
      (socket) => Effect.sync(() => socket.destroy())
    )
    let text = ""
    const ended = Effect.async<End>((resume) => {
      socket.on("data", (chunk: Buffer) => (text += chunk.toString("latin1")))
      socket.on("error", () => resume(Effect.succeed("Reset")))
      socket.on("end", () => resume(Effect.succeed("Close")))
      socket.write(
        `POST ${tokenPath} HTTP/1.1\r\nHost: localhost\r\nContent-Type: ${formType}\r\n` +
          `Content-Length: ${demoBody.length}\r\n\r\n${demoBody}`
      )
    })
    const silence = Effect.zipRight(
      until(Effect.suspend(() => isSilent(text))),
      Effect.sleep("250 millis")
    )
    const end: End = yield* Effect.race(ended, Effect.as(silence, "Silence" as const))
    return { end, text }
  })

const observe = (fault: Fault.Fault, end: End = "Close", sends = true) =>
  Effect.gen(function*() {
    const emulator = yield* Emulator.make()
    yield* emulator.fail(fault)
    const isSilent = (text: string) =>
      Effect.map(
        emulator.pendingFaults,
        ({ length }) => end === "Silence" && length === 0 && sends === (text !== "")
      )
    const wire = yield* Effect.scoped(requestOnSocket(emulator.url, isSilent))
    yield* until(Effect.map(emulator.connections, (open) => open === 0))
    assert.lengthOf(yield* emulator.pendingFaults, 0)
    assert.strictEqual(
      (yield* askToken(emulator.url)).status,
      200,
      "the next request succeeds"
    )
    return wire
  })

/** The bytes of a body, which may be compressed, and its encoding. */
const bytesOf = (url: string) =>
  Effect.promise(() =>
    new Promise<readonly [Buffer, encoding?: string | undefined]>((resolve) => {
      Http.request(
        url + tokenPath,
        { method: "POST", headers: { "Content-Type": formType } },
        (response) => {
          const chunks: Array<Buffer> = []
          response.on("data", (chunk: Buffer) => chunks.push(chunk))
            .on(
              "end",
              () => resolve([Buffer.concat(chunks), response.headers["content-encoding"]])
            )
        }
      ).end(demoBody)
    })
  )

const keptAlive = Effect.acquireRelease(
  Effect.sync(() => new Http.Agent({ keepAlive: true, maxSockets: 1 })),
  (agent) => Effect.sync(() => agent.destroy())
)

const endings = { Reset: Fault.reset, Close: Fault.close, Silence: Fault.silence }
const moments = ["connection", "answer", "headers", "body"] as const

test.live.each(
  moments.flatMap((moment) =>
    Record.toEntries(endings).map(([ending, fault]) => [moment, ending, fault] as const)
  )
)("on \"%s\" ends with %s", function*([moment, ending, fault]) {
  const sendsBytes = moment === "headers" || moment === "body"
  const { end, text } = yield* observe(fault(moment), ending, sendsBytes)
  assert.strictEqual(end, ending)
  assert.match(text, sendsBytes ? /^HTTP\/1\.1 200 OK\r\nContent-Type/ : /^$/)
  assert.strictEqual(text.includes("\r\n\r\n"), moment === "body")
})

test.live("a connection fault applies to the next connections that open, whatever `on` names", function*() {
  const { pendingFaults, requests, url } = yield* failing(
    Fault.status(503),
    Fault.reset("connection", { times: 2, on: "api" })
  )
  assert.isTrue(Exit.isFailure(yield* Effect.exit(askToken(url))))
  assert.isTrue(Exit.isFailure(yield* Effect.exit(callApi(url, "a-token"))))
  assert.lengthOf(yield* requests, 0)
  deepStrictEqual((yield* pendingFaults).map(({ _tag }) => _tag), ["Answer"])
  assert.strictEqual((yield* askToken(url)).status, 503)
})

test.live("a stale connection is reset by its second request, not by the first one", function*() {
  const { fail, pendingFaults, url } = yield* Emulator.make()
  const agent = yield* keptAlive
  yield* fail([Fault.stale(), Fault.status(503)])
  assert.strictEqual((yield* askToken(url, { agent })).status, 503)
  assert.lengthOf(yield* pendingFaults, 1)
  assert.isTrue(Exit.isFailure(yield* Effect.exit(askToken(url, { agent }))))
  assert.lengthOf(yield* pendingFaults, 0)
  assert.strictEqual((yield* askToken(url, { agent })).status, 200)
})

test.live.each<[name: string, Fault.Fault, RegExp]>([
  ["bad chunks", Fault.badChunks(), /Transfer-Encoding: chunked\r\n\r\nno-size\r\n/],
  [
    "contradicting lengths",
    Fault.contradictingLengths(),
    /Content-Length: (\d+)\r\nContent-Length: (?!\1\r)\d+\r\n/
  ],
  ["not HTTP", Fault.notHttp(), /^220 .*\r\n$/],
  ["huge headers", Fault.hugeHeaders(), /\r\nX-Filler: x{1048576}\r\n/],
  ["any bytes", Fault.raw("HTTP/1.1 200 OK\r\n\r\n!"), /^HTTP\/1\.1 200 OK\r\n\r\n!$/]
])("an invalid HTTP response is sent byte for byte: %s", function*([, fault, expected]) {
  const { end, text } = yield* observe(fault)
  assert.match(text, expected)
  assert.strictEqual(end, "Close")
})

test.live("Fault.fields changes the normal response", function*() {
  const { url } = yield* failing(Fault.fields(
    { expires_in: "12", scope: undefined, more: null },
    { headers: { "Transfer-Encoding": "chunked" } }
  ))
  const response = yield* askToken(url)
  const fields = json(response)
  deepStrictEqual([fields["expires_in"], fields["more"], "scope" in fields], [
    "12",
    null,
    false
  ])
  assert.strictEqual(response.headers["transfer-encoding"], "chunked")
  assert.strictEqual(response.headers["cache-control"], "no-store")
})

test.live("the API accepts the token of a response with other fields", function*() {
  const { url } = yield* failing(Fault.fields({ scope: undefined }))
  assert.strictEqual((yield* callApi(url, yield* getToken(url))).status, 200)
})

test.live("the normal response can be compressed with gzip", function*() {
  const { url } = yield* failing(Fault.gzip())
  const [bytes, encoding] = yield* bytesOf(url)
  assert.strictEqual(encoding, "gzip")
  assert.property(JSON.parse(gunzipSync(bytes).toString()), "access_token")
})

test.live("the normal response can follow a 100 Continue that the client did not request", function*() {
  const { text } = yield* observe(Fault.unaskedContinue(), "Silence")
  assert.match(text, /^HTTP\/1\.1 100 Continue\r\n\r\nHTTP\/1\.1 200 OK\r\n/)
  assert.include(text, "access_token")
})

test.live("a normal response that is an error is not changed", function*() {
  const { url } = yield* failing(Fault.fields({ error: "changed" }), Fault.gzip())
  assert.strictEqual(json(yield* askToken(url, { body: "" }))["error"], "invalid_request")
  assert.strictEqual(json(yield* askToken(url, { body: "" }))["error"], "invalid_request")
})

test.live("the normal response is sent after Fault.revoke has revoked all tokens", function*() {
  const { fail, url } = yield* Emulator.make()
  const [one, other] = [yield* getToken(url), yield* getToken(url)]
  yield* fail(Fault.revoke({ on: "api" }))
  deepStrictEqual([(yield* callApi(url, one)).status, (yield* callApi(url, other)).status], [
    401,
    401
  ])
  assert.strictEqual((yield* callApi(url, yield* getToken(url))).status, 200)
})

test.live("a dripping body is sent one space at a time until the client disconnects", function*() {
  const { connections, url } = yield* failing(Fault.drip("5 millis", { status: 503 }))
  assert.match(
    yield* Effect.scoped(receive(url, 250)),
    /^HTTP\/1\.1 503 [\s\S]*\r\n\r\n(1\r\n \r\n){3,}/
  )
  yield* until(Effect.map(connections, (open) => open === 0))
})

test.live("a long body is sent only as far as the client reads it", function*() {
  const { connections, requests, url } = yield* failing(Fault.flood(Infinity, { times: 2 }))
  const text = yield* Effect.scoped(receive(url, 1_000_000))
  assert.include(text, "xxxxxxxx")
  yield* until(Effect.map(connections, (open) => open === 0))
  yield* until(Effect.map(requests, ([recorded]) => (recorded?.sentBytes ?? 0) >= 1_000_000))
  const [recorded] = yield* requests
  assert.isBelow(recorded?.sentBytes ?? Infinity, 64 * 1024 * 1024)
  // It also ends when a client interrupts its request.
  const fiber = yield* Effect.fork(askToken(url))
  yield* until(Effect.map(connections, (open) => open === 1))
  yield* Fiber.interrupt(fiber)
  yield* until(Effect.map(connections, (open) => open === 0))
})

test.live("a flood has the given length", function*() {
  const { requests, url } = yield* failing(Fault.flood(1_000_001, { status: 400 }))
  const { status, text } = yield* askToken(url)
  deepStrictEqual([status, text.length], [400, 1_000_001])
  deepStrictEqual((yield* requests)[0]?.status, Option.some(400))
})

test.live("a bomb becomes longer when it is decompressed", function*() {
  const { url } = yield* failing(Fault.bomb(3))
  const [bytes] = yield* bytesOf(url)
  assert.isBelow(bytes.length, 10_000)
  assert.isTrue(gunzipSync(bytes).equals(Buffer.alloc(3 * 1024 * 1024)))
})

test.live("an error response can repeat the body of the request", function*() {
  const { url } = yield* failing(Fault.echo(400))
  const response = yield* askToken(url)
  assert.strictEqual(response.status, 400)
  assert.include(String(json(response)["error_description"]), demoSecret)
})

test.live("an error response can have a date in Retry-After, by the emulator's clock", function*() {
  const noon = Object.assign(Clock.make(), {
    currentTimeMillis: Effect.succeed(Date.UTC(2030, 0, 1, 12))
  })
  const { fail, url } = yield* Effect.withClock(Emulator.make(), noon)
  yield* fail(Fault.retryDate(429, "90 seconds"))
  const response = yield* askToken(url)
  deepStrictEqual([response.status, response.headers["retry-after"]], [
    429,
    "Tue, 01 Jan 2030 12:01:30 GMT"
  ])
})

test.live("a redirect has the Location of its target", function*() {
  const { elsewhere, fail, url } = yield* Emulator.make({ basePath: "/store" })
  const targets = ["elsewhere", "itself", "loop", {}, { location: "http://[" }, {
    location: ""
  }] as const
  yield* fail(targets.map((to) => Fault.redirect(307, to)))
  const responses = yield* Effect.forEach(targets, () => askToken(url))
  const locations = [
    `${elsewhere.url}/store${tokenPath}`,
    "/store/moved",
    `/store${tokenPath}`,
    undefined,
    "http://[",
    ""
  ]
  deepStrictEqual(responses.map(({ headers }) => headers.location), locations)
  assert.isTrue(responses.every(({ status }) => status === 307))
  assert.lengthOf(yield* elsewhere.requests, 0)
})

test.live("a redirect can point to another origin that responds with its own token", function*() {
  const { elsewhere, tokens, url } = yield* Emulator.make()
  assert.notStrictEqual(new URL(elsewhere.url).origin, new URL(url).origin)
  const token = yield* getToken(url)
  yield* callApi(elsewhere.url, token)
  const response = yield* send(elsewhere.url, {
    method: "POST",
    path: tokenPath,
    body: demoBody
  })
  assert.property(json(response), "access_token")
  const [first = assert.fail(), second = assert.fail()] = yield* elsewhere.requests
  deepStrictEqual(
    Option.map(first.authorization, Redacted.value),
    Option.some(`Bearer ${token}`)
  )
  assert.strictEqual(Redacted.value(second.body), demoBody)
  assert.notInclude(JSON.stringify(yield* elsewhere.requests), token)
  assert.lengthOf(yield* tokens, 1, "the emulator did not issue the other token")
})
