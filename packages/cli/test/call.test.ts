import { writeFileSync } from "node:fs"
import { join } from "node:path"
import { assert, describe, it } from "@effect/vitest"
import { deepStrictEqual } from "@effect/vitest/utils"
import { type Emulator, Fault } from "@store-api/emulator"
import { Effect, Fiber, TestClock, TestServices } from "effect"
import { test } from "../../core/test/support/test.js"
import {
  frozenAt,
  onTerminal,
  prints,
  refuses,
  run,
  start,
  started,
  startedWith,
  startOnTerminal,
  tokenRequests,
  type User,
  withEnv
} from "./support/cli.js"
import { endless, serving, tooMuch } from "./support/listening.js"

const echo = (text: string) => JSON.parse(text) as Record<string, unknown>

const apiCalls = (emulator: Emulator.Service) =>
  Effect.map(emulator.requests, (requests) => requests.filter(({ kind }) => kind === "api"))

type Sent = { readonly method: string } & Partial<Record<"body" | "type" | "length" | "x-one" | "x-two", string>>

const at = (user: User, apiUrl: string): User => withEnv(user, { STORE_API_URL: apiUrl })

describe("store-api call", () => {
  test.live("prints the body as it came; --include what stands before it", function*() {
    const { user } = yield* started
    deepStrictEqual(echo(yield* prints(user, "call /orders?page=2")), {
      method: "GET",
      path: "/orders",
      query: "page=2",
      clientId: "demo-client"
    })
    const [head = "", body = ""] = (yield* prints(user, "call /orders --include")).split("\n\n")
    assert.match(head, /^HTTP\/1\.1 200 OK\n[^]*content-type: application\/json/)
    assert.strictEqual(echo(body)["path"], "/orders")
  })

  const json = "application/json"

  it.live.each<[string, Sent]>([
    ["call /orders", { method: "GET" }],
    ["call /orders -X delete", { method: "DELETE" }],
    [`call /orders --data {"of":"line"} -H X-One:1 --header X-Two:2`, {
      ...{ method: "POST", type: json, body: `{"of":"line"}`, "x-one": "1", "x-two": "2" }
    }],
    ["call --data=@order.json -X put /orders/7", {
      method: "PUT",
      type: json,
      body: "{\"of\":\"file\"}",
      length: "13"
    }],
    ["call --data @- /orders", { method: "POST", type: json, body: "of standard input" }],
    ["call /orders -d a,b -H Content-Type:text/csv", { method: "POST", type: "text/csv", body: "a,b" }]
  ])(
    "%s sends the method, the body and the headers, wherever the flags stand",
    ([line, { body, method, ...sent }]) =>
      Effect.gen(function*() {
        const { emulator, user } = yield* started
        writeFileSync(join(user.cwd, "order.json"), "{\"of\":\"file\"}")
        const printed = echo(yield* prints(user, line, { stdin: "of standard input" }))
        deepStrictEqual([printed["method"], printed["body"]], [method, body])
        const [call] = yield* apiCalls(emulator)
        const headers = call?.headers ?? {}
        const { type, length = headers["content-length"], ...others } = sent
        deepStrictEqual([headers["content-type"], headers["content-length"]], [type, length])
        for (const [name, value] of Object.entries(others)) assert.strictEqual(headers[name], value)
      }).pipe(Effect.scoped)
  )

  test.live("streams both ways: each part arrives while the next is not there yet", function*() {
    const { user } = yield* started
    const parts: Array<string> = []
    const url = yield* serving((request, response) => {
      request.on("data", (chunk: Buffer) => {
        parts.push(chunk.toString())
        response.write(`got ${chunk.toString()}`)
      })
      request.on("end", () => response.end("end"))
    })
    const { end, shows, stdin } = yield* start(at(user, url), ["call", "/", "--data", "-"])
    for (const part of ["one", "two", "three"]) {
      stdin.write(part)
      // The client sends the next part only after this response. Without it, the test fails at its timeout.
      assert.isTrue(yield* shows(`got ${part}`))
    }
    stdin.end()
    deepStrictEqual(yield* end, { code: 0, stderr: "", stdout: "got onegot twogot threeend" })
    deepStrictEqual(parts, ["one", "two", "three"])
  })

  test.live("a reader that is slow slows the server down", function*() {
    const { user } = yield* started
    const { beyond, stalled, url } = yield* endless
    const { stdout } = yield* start(at(user, url), ["call", "/"])
    stdout.cork()
    assert.isBelow(yield* stalled, tooMuch)
    // It was the reader: once it reads, that much comes.
    stdout.uncork()
    yield* beyond(tooMuch)
  })

  /** The cached token is revoked. */
  const revoked = Effect.gen(function*() {
    const { emulator, user } = yield* started
    yield* run(user, ["call", "/orders"])
    yield* emulator.revoke()
    return { emulator, user }
  })

  test.live("a token that was revoked is replaced, in the store too", function*() {
    const { emulator, user } = yield* revoked
    yield* prints(user, "call /orders --data {} --fail")
    yield* prints(user, "call /orders --fail")
    assert.strictEqual(yield* tokenRequests(emulator), 2)
  })

  const rateLimit = Fault.status(429, { headers: { "Retry-After": "900" }, times: Infinity })

  it.live.each(
    ["", " --include", " --fail"].flatMap((flags) =>
      [
        [flags, "429", rateLimit, 5, /^store-api: The token endpoint .* Retry after \d{4}-.*Z\.\n$/],
        [flags, "401", Fault.status(401), 4, /^store-api: The token endpoint refused the request \(status 401\)/]
      ] as const
    )
  )(
    "a revoked token that cannot be replaced: call%s prints why, and not the API's 401; the token is removed: %s",
    ([flags, , fault, code, sentence]) =>
      Effect.gen(function*() {
        const { emulator, user } = yield* revoked
        yield* emulator.fail(fault)
        yield* refuses(user, `call /orders${flags}`, code, sentence)
        deepStrictEqual((yield* run(user, ["status"])).code, 5)
      }).pipe(Effect.scoped)
  )

  test.live("a streamed body is not repeated after a 401, and the next run has another token", function*() {
    const { emulator, user } = yield* revoked
    const streamed = run(user, ["call", "/orders", "--data", "-", "--fail"], { stdin: "{}" })
    assert.strictEqual((yield* streamed).code, 7)
    assert.strictEqual(yield* tokenRequests(emulator), 1)
    assert.strictEqual((yield* streamed).code, 0)
    assert.strictEqual(yield* tokenRequests(emulator), 2)
  })

  test.live("calls at once replace a revoked token with one token request", function*() {
    const { emulator, user } = yield* revoked
    const calls = Effect.replicate(run(user, ["call", "/orders", "--fail"]), 6)
    const outcomes = yield* Effect.all(calls, { concurrency: "unbounded" })
    deepStrictEqual(outcomes.map(({ code }) => code), [0, 0, 0, 0, 0, 0])
    assert.strictEqual(yield* tokenRequests(emulator), 2)
  })

  test.live("a call whose token another run has replaced is repeated with the new one", function*() {
    const { emulator, user } = yield* started
    const respond: Array<() => void> = []
    let requests = 0
    const url = yield* serving((_, response) => {
      requests++
      const status = requests < 3 ? 401 : 200
      const end = () => void response.writeHead(status).end()
      if (requests === 1) respond.push(end)
      else end()
    })
    const now = Date.now()
    yield* frozenAt(now - 60_000)(run(user, ["call", "/orders"]))
    const call = frozenAt(now)(run(at(user, url), ["call", "/", "--fail"]))
    const slow = yield* Effect.fork(call)
    while (respond.length === 0) yield* Effect.sleep("10 millis")
    deepStrictEqual((yield* call).code, 0)
    respond.forEach((end) => end())
    deepStrictEqual((yield* Fiber.join(slow)).code, 0)
    assert.strictEqual(yield* tokenRequests(emulator), 2)
  })

  test.live("a route that always answers 401 costs a loop of runs at most 20 token requests in 10 minutes", function*() {
    const { emulator, user } = yield* startedWith({}, Fault.status(401, { on: "api", times: Infinity }))
    const now = Date.now()
    /** A run at each of these seconds, and the token requests so far: 8 in a minute, then 1 per minute. */
    const runs = [
      ...[[0, 2], [0.9, 2], [1.1, 3], [3, 3], [3.2, 4], [7.1, 4], [7.3, 5], [15.2, 5], [15.4, 6], [31.3, 6]],
      ...[[31.5, 7], [63.4, 7], [63.6, 8], [123.5, 8], [123.7, 9], [183.6, 9], [183.8, 10]],
      // After the interval and a minute without a rejection, it is 1 second again.
      ...[[303.9, 11], [304.8, 11], [305, 12]]
    ]
    for (const [seconds = 0, requests] of runs) {
      const { code } = yield* frozenAt(now + seconds * 1000)(run(user, ["call", "/orders", "--fail"]))
      deepStrictEqual([seconds, code, yield* tokenRequests(emulator)], [seconds, 7, requests])
    }
  })

  test.live("exits with code 7 for a status of 400 or more with --fail; the body is printed in any case", function*() {
    const body = "{\"message\":\"no such order\"}"
    const { user } = yield* startedWith({}, Fault.status(404, { on: "api", body, times: 2 }))
    assert.strictEqual(yield* prints(user, "call /orders/7"), body)
    deepStrictEqual(yield* run(user, ["call", "/orders/7", "-f"]), {
      code: 7,
      stdout: body,
      stderr: "store-api: The API responded with 404 Not Found.\n"
    })
  })

  test.live("exits with code 6 without a response, or with half of one", function*() {
    const { user } = yield* startedWith({}, Fault.reset("body", { on: "api" }))
    const sentence = /^store-api: Cannot reach the API \(ECONNREFUSED\)\. .*\n$/
    yield* refuses(at(user, "http://127.0.0.1:9"), "call /orders", 6, sentence)
    const half = yield* run(user, ["call", "/orders"])
    assert.strictEqual(half.code, 6)
    assert.match(half.stderr, /^store-api: The response of the API broke off.*\n$/)
  })

  it.live.each<[code: number, sentence: RegExp, args: ReadonlyArray<string>]>([
    [2, /nothing was sent to http:\/\/127\.0\.0\.1:9\./, ["http://127.0.0.1:9/orders"]],
    [2, /--method must be one of/, ["-X", "FETCH", "/orders"]],
    [2, /A --header must be a name/, ["/orders", "--header", "canary"]],
    [2, /A --header must be a name/, ["/orders", "--header", "A: canary\r\nB: 1"]],
    [2, /Standard input cannot hold both/, ["/orders", "--data", "-", "--secret-file", "-"]],
    [3, /^store-api: Cannot read nothing, the file of --data\.\n$/, ["/orders", "--data", "@nothing"]],
    [3, /^store-api: --data @\. is a folder: name a file\.\n$/, ["/orders", "--data", "@."]]
  ])("exits with code %i and sends the API nothing: %s", ([code, sentence, args]) =>
    Effect.gen(function*() {
      const { emulator, user } = yield* started
      assert.notInclude(yield* refuses(user, ["call", ...args], code, sentence), "canary")
      deepStrictEqual(yield* apiCalls(emulator), [])
    }).pipe(Effect.scoped))

  test.live("on a terminal indents JSON without changing its values, and ends the last line of other bodies", function*() {
    const { user } = yield* started
    const json =
      `{"id":12345678901234567890,"price":1.50,"text":"a, {\\"b\\"}: [c]","empty":[ ],"items":[{"n":null},2]}`
    const url = yield* serving((request, response) => {
      const isJson = request.url === "/json"
      response.setHeader("Content-Type", isJson ? "application/problem+json" : "text/plain").end(
        isJson ? json : "plain"
      )
    })
    const pretty = yield* onTerminal(at(user, url), ["call", "/json"])
    deepStrictEqual(pretty.screen.split("\r\n"), [
      "{",
      "  \"id\": 12345678901234567890,",
      "  \"price\": 1.50,",
      "  \"text\": \"a, {\\\"b\\\"}: [c]\",",
      "  \"empty\": [],",
      "  \"items\": [",
      "    {",
      "      \"n\": null",
      "    },",
      "    2",
      "  ]",
      "}",
      ""
    ])
    assert.strictEqual(yield* prints(at(user, url), "call /json"), json)
    assert.strictEqual((yield* onTerminal(at(user, url), ["call", "/text"])).screen, "plain\r\n")
    assert.strictEqual(yield* prints(at(user, url), "call /text"), "plain")
  })

  test("on a terminal names a request that takes 2 seconds; --timeout ends the call with code 6", function*() {
    yield* TestClock.setTime(Date.now())
    const { emulator, user } = yield* startedWith({}, Fault.hang({ on: "api", times: Infinity }))
    const { end, stderr } = yield* startOnTerminal(user, ["call", "/orders", "--timeout", "10s"])
    while ((yield* apiCalls(emulator)).length === 0) yield* TestServices.provideLive(Effect.sleep("10 millis"))
    yield* TestClock.adjust("1999 millis")
    assert.strictEqual(stderr.text, "")
    yield* TestClock.adjust("1 millis")
    assert.strictEqual(stderr.text, `store-api: Waiting for GET ${emulator.url}/orders. Press Ctrl+C to stop.\r\n`)
    yield* TestClock.adjust("8 seconds")
    const { code } = yield* end
    assert.strictEqual(code, 6)
    assert.include(stderr.text, "The call took longer than 10s, the time of --timeout.")
  })

  test.live("sends the token in the header", function*() {
    const { user } = yield* started
    const token = yield* prints(user, "token")
    const url = yield* serving((request, response) => response.end(request.headers.authorization))
    assert.strictEqual(`${yield* prints(at(user, url), "call /", { shows: true })}\n`, `Bearer ${token}`)
  })
})
