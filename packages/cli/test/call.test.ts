import { writeFileSync } from "node:fs"
import { join } from "node:path"
import { assert, describe } from "@effect/vitest"
import { deepStrictEqual } from "@effect/vitest/utils"
import { Emulator, Fault } from "@store-api/emulator"
import { Effect, Fiber, Redacted, TestClock, TestServices } from "effect"
import { test } from "../../core/test/support/test.js"
import { frozenAt, onTerminal, run, start, startOnTerminal, type User, userOf, withEnv } from "./support/cli.js"
import { endless, serving, tooMuch } from "./support/listening.js"

const started = Effect.gen(function*() {
  const emulator = yield* Emulator.make()
  return { emulator, user: yield* userOf(emulator) }
})

const echo = (text: string) => JSON.parse(text) as Record<string, unknown>

const apiCalls = (emulator: Emulator.Service) =>
  Effect.map(emulator.requests, (requests) => requests.filter(({ kind }) => kind === "api"))

const tokenRequests = (emulator: Emulator.Service) =>
  Effect.map(emulator.requests, (requests) => requests.filter(({ kind }) => kind === "token").length)

const at = (user: User, apiUrl: string): User => withEnv(user, { STORE_API_URL: apiUrl })

describe("store-api call", () => {
  test.live("prints the body as it came; --include what stands before it", function*() {
    const { emulator, user } = yield* started
    const plain = yield* run(user, ["call", "/orders?page=2"])
    deepStrictEqual([plain.code, plain.stderr], [0, ""])
    deepStrictEqual(echo(plain.stdout), { method: "GET", path: "/orders", query: "page=2", clientId: "demo-client" })
    const whole = yield* run(user, ["call", "/orders", "--include"])
    const [head = "", body = ""] = whole.stdout.split("\n\n")
    assert.match(head, /^HTTP\/1\.1 200 OK\n/)
    assert.include(head, "\ncontent-type: application/json")
    assert.strictEqual(echo(body)["path"], "/orders")
    assert.strictEqual(yield* tokenRequests(emulator), 1)
  })

  test.live("sends a body from the line, from a file, from standard input, with headers, wherever the flags stand", function*() {
    const { emulator, user } = yield* started
    writeFileSync(join(user.cwd, "order.json"), "{\"from\":\"file\"}")
    const bodies = [
      yield* run(user, [
        "call",
        "/orders",
        "--data",
        "{\"from\":\"line\"}",
        "-H",
        "X-One: 1",
        "--header",
        "X-Two: 2"
      ]),
      yield* run(user, ["call", "--data=@order.json", "-X", "put", "/orders/7"]),
      yield* run(user, ["call", "--data", "@-", "/orders"], { stdin: "{\"from\":\"stdin\"}" }),
      yield* run(user, ["call", "/orders", "-d", "a,b", "-H", "Content-Type: text/csv"])
    ]
    deepStrictEqual(bodies.map(({ stdout }) => echo(stdout)["body"]), [
      "{\"from\":\"line\"}",
      "{\"from\":\"file\"}",
      "{\"from\":\"stdin\"}",
      "a,b"
    ])
    const calls = yield* apiCalls(emulator)
    deepStrictEqual(calls.map(({ headers }) => headers["content-type"]), [
      ...Array.from({ length: 3 }, () => "application/json"),
      "text/csv"
    ])
    deepStrictEqual([calls[0]?.headers["x-one"], calls[0]?.headers["x-two"]], ["1", "2"])
    assert.strictEqual(calls[1]?.headers["content-length"], "15")
  })

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
    const after = yield* run(user, ["call", "/orders", "--data", "{}", "--fail"])
    deepStrictEqual([after.code, after.stderr], [0, ""])
    yield* run(user, ["call", "/orders", "--fail"])
    assert.strictEqual(yield* tokenRequests(emulator), 2)
  })

  test.live("a revoked token that cannot be replaced: prints why on standard error, and not the API's 401", function*() {
    for (
      const [fault, code, sentence] of [
        [
          { status: 429, headers: { "Retry-After": "900" } },
          5,
          /^store-api: The token endpoint .* Retry after \d{4}-.*Z\.\n$/
        ],
        [{ status: 401 }, 4, /^store-api: The token endpoint refused the request \(status 401\)/]
      ] as const
    ) {
      for (const flags of [[], ["--include"], ["--fail"]]) {
        const { emulator, user } = yield* revoked
        yield* emulator.fail(Fault.status(fault.status, { ...fault, times: Infinity }))
        const call = yield* run(user, ["call", "/orders", ...flags])
        deepStrictEqual([call.code, call.stdout], [code, ""])
        assert.match(call.stderr, sentence)
      }
    }
  })

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
    const { emulator, user } = yield* started
    yield* emulator.fail(Fault.status(401, { on: "api", times: Infinity }))
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
    const { emulator, user } = yield* started
    const no = Fault.status(404, { on: "api", body: "{\"message\":\"no such order\"}" })
    yield* emulator.fail([no, no])
    const plain = yield* run(user, ["call", "/orders/7"])
    deepStrictEqual([plain.code, plain.stdout, plain.stderr], [0, "{\"message\":\"no such order\"}", ""])
    const failing = yield* run(user, ["call", "/orders/7", "-f"])
    deepStrictEqual([failing.code, failing.stdout], [7, plain.stdout])
    assert.strictEqual(failing.stderr, "store-api: The API responded with 404 Not Found.\n")
  })

  test.live("exits with code 6 without a response, or with half of one", function*() {
    const { emulator, user } = yield* started
    const refused = yield* run(at(user, "http://127.0.0.1:9"), ["call", "/orders"])
    deepStrictEqual([refused.code, refused.stdout], [6, ""])
    assert.match(refused.stderr, /^store-api: Cannot reach the API \(ECONNREFUSED\)\. .*\n$/)
    yield* emulator.fail(Fault.reset("body", { on: "api" }))
    const half = yield* run(user, ["call", "/orders"])
    assert.strictEqual(half.code, 6)
    assert.match(half.stderr, /^store-api: The response of the API broke off.*\n$/)
  })

  test.live("sends the token to no other origin, and rejects lines that are not requests", function*() {
    const { emulator, user } = yield* started
    const faults: ReadonlyArray<readonly [RegExp, ReadonlyArray<string>]> = [
      [/nothing was sent to http:\/\/127\.0\.0\.1:9\./, ["http://127.0.0.1:9/orders"]],
      [/--method must be one of/, ["-X", "FETCH", "/orders"]],
      [/A --header must be a name/, ["/orders", "--header", "canary"]],
      [/A --header must be a name/, ["/orders", "--header", "A: canary\r\nB: 1"]],
      [/Standard input cannot hold both/, ["/orders", "--data", "-", "--secret-file", "-"]]
    ]
    for (const [sentence, args] of faults) {
      const { code, stderr, stdout } = yield* run(user, ["call", ...args])
      deepStrictEqual([code, stdout], [2, ""])
      assert.match(stderr, sentence)
      assert.notInclude(stderr, "canary")
    }
    deepStrictEqual(yield* apiCalls(emulator), [])
    const missing = yield* run(user, ["call", "/orders", "--data", "@nothing"])
    deepStrictEqual([missing.code, missing.stderr], [
      3,
      "store-api: Cannot read nothing, the file of --data.\n"
    ])
  })

  test.live("uses GET, POST with a body, or the method of -X", function*() {
    const { emulator, user } = yield* started
    for (const args of [[], ["-d", "{}"], ["-X", "delete"]]) yield* run(user, ["call", "/orders", ...args])
    deepStrictEqual((yield* apiCalls(emulator)).map(({ method }) => method), ["GET", "POST", "DELETE"])
  })

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
    deepStrictEqual((yield* run(at(user, url), ["call", "/json"])).stdout, json)
    deepStrictEqual((yield* onTerminal(at(user, url), ["call", "/text"])).screen, "plain\r\n")
    deepStrictEqual((yield* run(at(user, url), ["call", "/text"])).stdout, "plain")
  })

  test("on a terminal names a request that takes 2 seconds; --timeout ends the call with code 6", function*() {
    yield* TestClock.setTime(Date.now())
    const { emulator, user } = yield* started
    yield* emulator.fail(Fault.hang({ on: "api", times: Infinity }))
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

  test.live("the token goes in the header, and stays out of what is printed", function*() {
    const { emulator, user } = yield* started
    // The user's search for private values looks at each run above; this is what it would have found.
    const echoed = yield* serving((request, response) => response.end(request.headers.authorization))
    const caught = yield* Effect.exit(run(at(user, echoed), ["call", "/"]))
    assert.strictEqual(caught._tag, "Failure")
    const [token] = yield* emulator.tokens
    const asked = yield* run(at(user, echoed), ["call", "/"], { shows: true })
    assert.strictEqual(asked.stdout, `Bearer ${token === undefined ? "" : Redacted.value(token.value)}`)
  })
})
