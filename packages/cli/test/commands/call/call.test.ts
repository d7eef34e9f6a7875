import { readFileSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { assert, describe } from "@effect/vitest"
import { deepStrictEqual } from "@effect/vitest/utils"
import { type Emulator, Fault, Scenario } from "@store-api/emulator"
import { until } from "@store-api/testing/network"
import { test } from "@store-api/testing/test"
import { Effect, Fiber, TestClock } from "effect"
import { version } from "../../../src/Host.js"
import {
  frozenAt,
  onTerminal,
  prints,
  refuses,
  run,
  start,
  started,
  startedWith,
  tokenRequests,
  type User,
  withEnv
} from "../../support/cli.js"
import { endless, serving, tooMuch } from "../../support/servers.js"

const echo = (text: string) => JSON.parse(text) as Record<string, unknown>

const apiCalls = (emulator: Emulator.Service) =>
  Effect.map(emulator.requests, (requests) => requests.filter(({ kind }) => kind === "api"))

const at = (user: User, apiUrl: string): User => withEnv(user, { STORE_API_URL: apiUrl })

describe("store-api call", () => {
  test.live("prints the body as it came; --include what stands before it", function*() {
    const { user } = yield* started
    const [head = "", body = ""] = (yield* prints(user, "call /orders?page=2 --include"))
      .split(
        "\n\n"
      )
    assert.match(head, /^HTTP\/1\.1 200 OK\n[^]*content-type: application\/json/)
    assert.strictEqual(yield* prints(user, "call /orders?page=2"), body)
    deepStrictEqual(echo(body), {
      method: "GET",
      path: "/orders",
      query: "page=2",
      clientId: "demo-client"
    })
  })

  type Sent = readonly [
    method: string,
    body?: string,
    headers?: Readonly<Record<string, string>>
  ]
  const json = { "content-type": "application/json" }
  const twoHeaders = { ...json, "x-one": "1", "x-two": "2" }

  test.live.each<[line: string, ...Sent]>([
    ["call /orders", "GET"],
    ["call /orders -X delete", "DELETE"],
    [
      `call /orders --data {"of":"line"} -H X-One:1 --header X-Two:2`,
      "POST",
      `{"of":"line"}`,
      twoHeaders
    ],
    ["call --data=@order.json -X put /orders/7", "PUT", `{"of":"file"}`, {
      ...json,
      "content-length": "13"
    }],
    ["call --data @- /orders", "POST", "of standard input", json],
    ["call /orders -d a,b -H Content-Type:text/csv", "POST", "a,b", {
      "content-type": "text/csv"
    }]
  ])(
    "%s sends the method, the body and the headers, wherever the flags stand",
    function*([line, ...sent]) {
      const [method, body, headers = {}] = sent
      const { emulator, user } = yield* started
      writeFileSync(join(user.cwd, "order.json"), "{\"of\":\"file\"}")
      const printed = echo(yield* prints(user, line, { stdin: "of standard input" }))
      deepStrictEqual([printed["method"], printed["body"]], [method, body])
      const [call = assert.fail("no call")] = yield* apiCalls(emulator)
      if (body === undefined) assert.notProperty(call.headers, "content-type")
      for (const [name, value] of Object.entries(headers)) {
        assert.strictEqual(
          call.headers[name],
          value
        )
      }
      for (const { headers } of yield* emulator.requests) {
        assert.strictEqual(headers["user-agent"], `store-api/${version()}`)
        assert.doesNotHaveAnyKeys(headers, ["b3", "traceparent", "tracestate"])
      }
    }
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

  const object =
    `{"id":7,"price":1.5,"text":"a, {\\"b\\"}: [c]","empty":[ ],"items":[{"n":null},2]}`
  const indented = [
    "{",
    "  \"id\": 7,",
    "  \"price\": 1.5,",
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
  ]
  const long = JSON.stringify(["x".repeat(2e7)])
  const refusal =
    "store-api: The body is not text, and a terminal cannot show it. Use --output FILE, or a pipe."

  test.live.each<
    [what: string, type: string, body: string | Buffer, screen: string, code?: number]
  >([
    ["JSON is indented", "application/problem+json", object, indented.join("\r\n")],
    [
      "JSON of 20 MB is indented",
      "application/json",
      long,
      `[\r\n  ${long.slice(1, -1)}\r\n]\r\n`
    ],
    ["the last line is ended", "text/plain", "plain", "plain\r\n"],
    [
      "controls are shown",
      "",
      "\u001b]0;t\u0007\r\n\u009b2J\u202e",
      "^[]0;t^G\r\n<U+009b>2J<U+202e>\r\n"
    ],
    [
      "so they are in JSON",
      "application/json",
      "[\"\u001b[2J\u202e\"]",
      "[\"^[[2J<U+202e>\"]\r\n"
    ],
    [
      "a charset is read",
      "text/plain; charset=iso-8859-1",
      Buffer.from("caf\u00e9", "latin1"),
      "caf\u00e9\r\n"
    ],
    [
      "an unknown charset counts as UTF-8",
      "text/plain; charset=none",
      "caf\u00e9",
      "caf\u00e9\r\n"
    ],
    ["zeros are refused", "text/plain", "a\0b", `${refusal}\r\n`, 8],
    ["other bytes are refused", "image/png", Buffer.of(0x89, 0x50), `${refusal}\r\n`, 8]
  ])(
    "on a terminal, %s; a pipe and a file get each byte",
    function*([, type, body, screen, code = 0]) {
      const { user } = yield* started
      const url = yield* serving((_, response) =>
        response.setHeader("Content-Type", type).end(body)
      )
      const shown = yield* onTerminal(withEnv(at(user, url), { NO_COLOR: "1" }), ["call", "/"])
      deepStrictEqual([shown.code, shown.screen], [code, screen])
      assert.strictEqual(yield* prints(at(user, url), "call /"), body.toString())
      assert.strictEqual(yield* prints(at(user, url), "call / -o -"), body.toString())
      yield* prints(at(user, url), "call / -o body")
      deepStrictEqual(readFileSync(join(user.cwd, "body")), Buffer.from(body))
    }
  )

  test.live.each<[what: string, json: string]>([
    ["a large integer", `{"id": 12345678901234567890}`],
    ["the zeros of a decimal", `{"price": 1.50}`],
    ["the sign of zero", "[-0]"],
    ["a number beyond the range", "[1e999]"],
    ["a name that occurs twice", `{"a": 1, "a": 2}`],
    ["the order of names that look like numbers", `{"2": 1, "1": 2}`],
    ["text that is not JSON", `{"a": `]
  ])(
    "on a terminal, JSON is printed as it came, because indenting it would change %s",
    function*([, json]) {
      const { user } = yield* started
      const url = yield* serving((_, response) =>
        response.setHeader("Content-Type", "application/json").end(json)
      )
      const { screen } = yield* onTerminal(at(user, url), ["call", "/"])
      assert.strictEqual(screen, `${json}\r\n`)
    }
  )

  test.live("on a terminal, JSON with other escapes and white space in its strings is indented", function*() {
    const { user } = yield* started
    const json = `["caf\\u00e9 \\/  \\"x\\"" ]`
    const url = yield* serving((_, response) =>
      response.setHeader("Content-Type", "application/json").end(json)
    )
    const { screen } = yield* onTerminal(at(user, url), ["call", "/"])
    assert.strictEqual(screen, "[\r\n  \"café /  \\\"x\\\"\"\r\n]\r\n")
  })

  test.live("refuses a file of --output that it cannot write", function*() {
    yield* refuses(
      (yield* started).user,
      "call / -o .",
      8,
      "Cannot write ., the file of --output."
    )
  })
})

describe("store-api call exits", () => {
  test.live.each(
    [[299, 0, 0, ""], [300, 1, 7, "300 Multiple Choices"], [
      404,
      1,
      7,
      "404 Not Found"
    ]] as const
  )(
    "for status %i with code %i, and with --fail with %i; the body is printed in any case",
    function*([status, plain, failing, name]) {
      const body = "{\"message\":\"no such order\"}"
      const { user } = yield* startedWith(
        {},
        Fault.status(status, { on: "api", body, times: 3 })
      )
      const stderr = plain === 0 ? "" : `store-api: HTTP ${name}.\n`
      deepStrictEqual(yield* run(user, ["call", "/orders/7"]), {
        code: plain,
        stdout: body,
        stderr
      })
      deepStrictEqual(yield* run(user, ["call", "/orders/7", "-f"]), {
        code: failing,
        stdout: body,
        stderr
      })
      deepStrictEqual(yield* run(user, ["call", "/orders/7", "--output", "seven"]), {
        code: plain,
        stdout: "",
        stderr
      })
      assert.strictEqual(readFileSync(join(user.cwd, "seven"), "utf8"), body)
    }
  )

  const own: Readonly<Record<string, Fault.Script>> = {
    "304": Fault.status(304, { on: "api" }),
    "a redirect to /login": Fault.status(302, { headers: { Location: "/login" }, on: "api" })
  }

  test.live.each<[name: string, line: string, code: number, sentence: string]>([
    ["304", "call / -f", 0, ""],
    [
      "a redirect to /login",
      "call /",
      1,
      ". Use the path that call --include shows, because the token follows"
    ],
    ["api/401-once", "call /", 0, ""],
    ["api/redirect-307", "call /", 1, "307 Temporary Redirect to http://127.0.0.1:"],
    [
      "api/redirect-307",
      "call / -f",
      7,
      "Set STORE_API_URL to the API itself, because the token follows no redirect."
    ],
    ["api/401-once", "call / -d @order.json", 0, ""],
    [
      "api/401-once",
      "call / -d -",
      1,
      "A body from standard input can be sent only once, so the next run"
    ],
    [
      "api/401-always",
      "call /",
      1,
      "new token was rejected too: check that STORE_API_URL and STORE_API_AUTH_URL"
    ],
    [
      "api/missing-scope",
      "call /",
      1,
      "another token would not help, because the client may not do this."
    ],
    ["api/401-always", "call / -H Authorization:own", 1, "HTTP 401 Unauthorized.\n"]
  ])("after %s, %s with code %i, and says why: %s", function*([name, line, code, sentence]) {
    const { user } = yield* startedWith({}, own[name] ?? Scenario.get(name as Scenario.Name))
    writeFileSync(join(user.cwd, "order.json"), "{}")
    const outcome = yield* run(user, line.split(" "))
    assert.strictEqual(outcome.code, code)
    assert.include(outcome.stderr, sentence)
    assert.match(
      outcome.stderr,
      code === 0 ? /^$/ : /^store-api: HTTP (401 Unauthorized\.|30[27] .* to )[^\n]*\n$/
    )
  })

  test.live("with code 6 without a response, or with half of one", function*() {
    const { user } = yield* started
    const url = yield* serving((_, response) =>
      void response.write("half", () => response.destroy())
    )
    yield* refuses(
      at(user, "http://127.0.0.1:9"),
      "call /",
      6,
      /^store-api: Cannot .* API \(ECONNREFUSED\)\. .*\n$/
    )
    const half = yield* onTerminal(at(user, url), ["call", "/"], { columns: 300 })
    deepStrictEqual([
      half.code,
      /^half\r\nstore-api: \S*The response of the API broke/.test(half.screen)
    ], [6, true])
  })

  test.each([["500ms", 500], ["2.5s", 2500], ["2m", 120_000]] as const)(
    "with code 6 after %s, the time of --timeout",
    function*([timeout, millis]) {
      const start = Date.now()
      yield* TestClock.setTime(start)
      const { emulator, user } = yield* startedWith({}, Fault.hang({ on: "api" }))
      const running = yield* Effect.fork(run(user, ["call", "/orders", "--timeout", timeout]))
      yield* until(
        "the API is called",
        Effect.map(apiCalls(emulator), (calls) => calls.length > 0)
      )
      yield* TestClock.adjust(millis - 1)
      assert.include([...yield* TestClock.sleeps()], start + millis)
      yield* TestClock.adjust(1)
      const stderr =
        `store-api: The call took longer than ${timeout}, the time of --timeout.\n`
      deepStrictEqual(yield* Fiber.join(running), { code: 6, stdout: "", stderr })
    }
  )

  test.live.each<[code: number, sentence: RegExp, args: ReadonlyArray<string>]>([
    [2, /nothing was sent to http:\/\/127\.0\.0\.1:9\./, ["http://127.0.0.1:9/orders"]],
    [2, /--method must be one of/, ["-X", "FETCH", "/orders"]],
    [2, /A --header must be a name/, ["/orders", "--header", "canary"]],
    [2, /A --header must be a name/, ["/orders", "--header", "A: canary\r\nB: 1"]],
    [2, /Standard input cannot hold both/, ["/orders", "--data", "-", "--secret-file", "-"]],
    [3, /^store-api: Cannot read nothing, the file of --data\.\n$/, [
      "/orders",
      "--data",
      "@nothing"
    ]],
    [3, /^store-api: Cannot read \., the file of --data\.\n$/, ["/orders", "--data", "@."]]
  ])("with code %i and sends the API nothing: %s", function*([code, sentence, args]) {
    const { emulator, user } = yield* started
    assert.notInclude(yield* refuses(user, ["call", ...args], code, sentence), "canary")
    deepStrictEqual(yield* apiCalls(emulator), [])
  })
})

describe("a token that was revoked", () => {
  /** The cached token is revoked. */
  const revoked = Effect.gen(function*() {
    const { emulator, user } = yield* started
    yield* run(user, ["call", "/orders"])
    yield* emulator.revoke()
    return { emulator, user }
  })

  test.live("is replaced by calls at once with one token request, in the store too", function*() {
    const { emulator, user } = yield* revoked
    yield* Effect.all(Effect.replicate(prints(user, "call /orders --data {} --fail"), 6), {
      concurrency: "unbounded"
    })
    yield* prints(user, "call /orders --fail")
    assert.strictEqual(yield* tokenRequests(emulator), 2)
  })

  const rateLimit = Fault.status(429, { headers: { "Retry-After": "900" }, times: Infinity })

  test.live.each(["", " --include", " --fail"].flatMap((flags) =>
    [
      [
        flags,
        "429",
        rateLimit,
        5,
        /^store-api: The token endpoint .* Retry after \d{4}-.*Z\.\n$/
      ],
      [
        flags,
        "401",
        Fault.status(401),
        4,
        /^store-api: The token endpoint refused the request \(status 401\)/
      ]
    ] as const
  ))(
    "and cannot be replaced: call%s prints why, and not the API's 401; the token is removed: %s",
    function*(row) {
      const [flags, , fault, code, sentence] = row
      const { emulator, user } = yield* revoked
      yield* emulator.fail(fault)
      yield* refuses(user, `call /orders${flags}`, code, sentence)
      deepStrictEqual((yield* run(user, ["status"])).code, 5)
    }
  )

  test.live("does not repeat a streamed body, but the next run has another token", function*() {
    const { emulator, user } = yield* revoked
    const streamed = run(user, ["call", "/orders", "--data", "-", "--fail"], { stdin: "{}" })
    deepStrictEqual([
      (yield* streamed).code,
      yield* tokenRequests(emulator),
      (yield* streamed).code
    ], [7, 1, 0])
    assert.strictEqual(yield* tokenRequests(emulator), 2)
  })

  test.live("and that another run has replaced: the call is repeated with the new one", function*() {
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

  test.live("is replaced once by each run, however many earlier runs were rejected", function*() {
    const { emulator, user } = yield* startedWith(
      {},
      Fault.status(401, { on: "api", times: Infinity })
    )
    const requests = yield* Effect.replicateEffect(
      Effect.zipRight(run(user, ["call", "/orders", "--fail"]), tokenRequests(emulator)),
      7
    )
    deepStrictEqual(requests, [2, 4, 6, 8, 10, 12, 14])
  })
})
