import { readFileSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { assert } from "@effect/vitest"
import { deepStrictEqual } from "@effect/vitest/utils"
import { type Emulator, Fault, Scenario } from "@store-api/emulator"
import { until } from "@store-api/testing/network"
import { test } from "@store-api/testing/test"
import { Effect, Fiber, TestClock } from "effect"
import { version } from "../../../src/Host.js"
import {
  expectRefusal,
  expectSuccess,
  frozenAt,
  onTerminal,
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

test.live("call prints the body of a response as it came", function*() {
  const { user } = yield* started
  deepStrictEqual(echo(yield* expectSuccess(user, "call /orders?page=2")), {
    method: "GET",
    path: "/orders",
    query: "page=2",
    clientId: "demo-client"
  })
})

test.live("call --include prints the status and headers before the body", function*() {
  const { user } = yield* started
  const body = yield* expectSuccess(user, "call /orders")
  const whole = yield* expectSuccess(user, "call /orders --include")
  assert.match(whole, /^HTTP\/1\.1 200 OK\n[^]*content-type: application\/json/)
  assert.isTrue(whole.endsWith(`\n\n${body}`))
})

test.live("call --include prints each cookie in a line", function*() {
  const cookies = [
    "a=1; Expires=Wed, 21 Oct 2026 07:28:00 GMT; Path=/",
    "a=2; Path=/orders",
    "b=%20\"x\"; Path=/; Unknown"
  ]
  const { user } = yield* startedWith({
    responses: [{
      path: "/cookies",
      status: 200,
      headers: { "set-cookie": cookies },
      body: {}
    }]
  })
  const head = yield* expectSuccess(user, "call /cookies --include")
  deepStrictEqual(
    head.match(/^set-cookie: .*$/gm),
    cookies.map((cookie) => `set-cookie: ${cookie}`)
  )
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
  "%s sends the method, body and headers that its flags name, wherever they stand",
  function*([line, ...sent]) {
    const [method, body, headers = {}] = sent
    const { emulator, user } = yield* started
    writeFileSync(join(user.cwd, "order.json"), "{\"of\":\"file\"}")
    const request = echo(yield* expectSuccess(user, line, { stdin: "of standard input" }))
    deepStrictEqual([request["method"], request["body"]], [method, body])
    const [call = assert.fail("no call")] = yield* apiCalls(emulator)
    if (body === undefined) assert.notProperty(call.headers, "content-type")
    for (const [name, value] of Object.entries(headers)) {
      assert.strictEqual(
        call.headers[name],
        value
      )
    }
  }
)

/** The headers of the token request and of the API request. */
const sentHeaders = Effect.gen(function*() {
  const { emulator, user } = yield* started
  yield* expectSuccess(user, "call /orders")
  const requests = yield* emulator.requests
  deepStrictEqual(requests.map(({ kind }) => kind), ["token", "api"])
  return requests.map(({ headers }) => headers)
})

test.live("both requests of a call have the User-Agent of the command", function*() {
  deepStrictEqual(
    (yield* sentHeaders).map((headers) => headers["user-agent"]),
    [`store-api/${version()}`, `store-api/${version()}`]
  )
})

test.live("no request of a call has trace headers", function*() {
  for (const headers of yield* sentHeaders) {
    assert.doesNotHaveAnyKeys(headers, ["b3", "traceparent", "tracestate"])
  }
})

test.live("call streams both bodies: each part arrives before the next one is sent", function*() {
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
    // The client sends the next part only after this response.
    yield* shows(new RegExp(`got ${part}`))
  }
  stdin.end()
  deepStrictEqual(yield* end, { code: 0, stderr: "", stdout: "got onegot twogot threeend" })
  deepStrictEqual(parts, ["one", "two", "three"])
})

test.live("a slow reader of standard output slows the server down", function*() {
  const { user } = yield* started
  const { beyond, stalled, url } = yield* endless()
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
/** A user of an API that responds with this body. */
const userOfBody = (type: string, body: string | Buffer) =>
  Effect.gen(function*() {
    const url = yield* serving((_, response) =>
      response.setHeader("Content-Type", type).end(body)
    )
    return at((yield* started).user, url)
  })

const long = JSON.stringify(["x".repeat(2e6)])
const refusal =
  "store-api: The body is not text, and a terminal cannot show it. Use --output FILE, or a pipe."

test.live.each<
  [what: string, type: string, body: string | Buffer, screen: string, code?: number]
>([
  [
    "JSON is indented on a terminal",
    "application/problem+json",
    object,
    indented.join("\r\n")
  ],
  [
    "JSON of 2 MB is indented on a terminal",
    "application/json",
    long,
    `[\r\n  ${long.slice(1, -1)}\r\n]\r\n`
  ],
  ["a last line without an end is ended on a terminal", "text/plain", "plain", "plain\r\n"],
  [
    "control characters are shown on a terminal in a harmless form",
    "",
    "\u001b]0;t\u0007\r\n\u009b2J\u202e",
    "^[]0;t^G\r\n<U+009b>2J<U+202e>\r\n"
  ],
  [
    "control characters in JSON are shown on a terminal in a harmless form",
    "application/json",
    "[\"\u001b[2J\u202e\"]",
    "[\"^[[2J<U+202e>\"]\r\n"
  ],
  [
    "a body in another charset is decoded for a terminal",
    "text/plain; charset=iso-8859-1",
    Buffer.from("caf\u00e9", "latin1"),
    "caf\u00e9\r\n"
  ],
  [
    "a body in an unknown charset is decoded as UTF-8 for a terminal",
    "text/plain; charset=none",
    "caf\u00e9",
    "caf\u00e9\r\n"
  ],
  [
    "text with zero bytes is not shown on a terminal",
    "text/plain",
    "a\0b",
    `${refusal}\r\n`,
    8
  ],
  [
    "a body that is not text is not shown on a terminal",
    "image/png",
    Buffer.of(0x89, 0x50),
    `${refusal}\r\n`,
    8
  ]
])(
  "%s",
  function*([, type, body, screen, code = 0]) {
    const user = yield* userOfBody(type, body)
    const shown = yield* onTerminal(withEnv(user, { NO_COLOR: "1" }), ["call", "/"])
    deepStrictEqual([shown.code, shown.screen], [code, screen])
  }
)

const bodies: ReadonlyArray<readonly [what: string, type: string, body: Buffer]> = [
  ["JSON", "application/json", Buffer.from(object)],
  ["text with control characters", "text/plain", Buffer.from("\u001b]0;t\u0007\u009b2J")],
  ["text with zero bytes", "text/plain", Buffer.from("a\0b")]
]

test.live.each(bodies)("a pipe gets each byte of a body: %s", function*([, type, body]) {
  const user = yield* userOfBody(type, body)
  for (const line of ["call /", "call / -o -"]) {
    assert.strictEqual(yield* expectSuccess(user, line), body.toString())
  }
})

test.live.each(
  [
    ...bodies,
    ["an image", "image/png", Buffer.of(0x89, 0x50)]
  ] as const
)("a file of --output gets each byte of a body: %s", function*([, type, body]) {
  const user = yield* userOfBody(type, body)
  yield* expectSuccess(user, "call / -o body")
  deepStrictEqual(readFileSync(join(user.cwd, "body")), body)
})

test.live.each<[what: string, json: string]>([
  ["a large integer", `{"id": 12345678901234567890}`],
  ["the zeros of a decimal", `{"price": 1.50}`],
  ["the sign of zero", "[-0]"],
  ["a number beyond the range", "[1e999]"],
  ["a name that occurs twice", `{"a": 1, "a": 2}`],
  ["the order of names that look like numbers", `{"2": 1, "1": 2}`],
  ["text that is not JSON", `{"a": `]
])(
  "a terminal shows JSON as it came if indenting it would change %s",
  function*([, json]) {
    const user = yield* userOfBody("application/json", json)
    const { screen } = yield* onTerminal(user, ["call", "/"])
    assert.strictEqual(screen, `${json}\r\n`)
  }
)

test.live("a terminal shows JSON indented, although its strings contain escapes or white space", function*() {
  const user = yield* userOfBody("application/json", `["caf\\u00e9 \\/  \\"x\\"" ]`)
  const { screen } = yield* onTerminal(user, ["call", "/"])
  assert.strictEqual(screen, "[\r\n  \"café /  \\\"x\\\"\"\r\n]\r\n")
})

test.live("call fails with code 8 if the file of --output cannot be written", function*() {
  yield* expectRefusal(
    (yield* started).user,
    "call / -o .",
    8,
    "Cannot write ., the file of --output."
  )
})

const body = "{\"message\":\"no such order\"}"
const userOfStatus = (status: number) =>
  Effect.map(
    startedWith({}, Fault.status(status, { on: "api", body })),
    ({ user }) => user
  )

test.live.each([
  [299, 0, ""],
  [300, 1, "store-api: HTTP 300 Multiple Choices.\n"],
  [404, 1, "store-api: HTTP 404 Not Found.\n"]
])("call exits for status %i with code %i", function*([status, code, stderr]) {
  const user = yield* userOfStatus(status)
  deepStrictEqual(yield* run(user, ["call", "/orders/7"]), { code, stdout: body, stderr })
})

test.live.each([[299, 0], [300, 7], [404, 7]])(
  "call --fail exits for status %i with code %i",
  function*([status, code]) {
    const outcome = yield* run(yield* userOfStatus(status), ["call", "/orders/7", "-f"])
    deepStrictEqual([outcome.code, outcome.stdout], [code, body])
  }
)

test.live("call --output writes the body of an error response to the file", function*() {
  const user = yield* userOfStatus(404)
  const { code, stdout } = yield* run(user, ["call", "/orders/7", "--output", "seven"])
  deepStrictEqual([code, stdout], [1, ""])
  assert.strictEqual(readFileSync(join(user.cwd, "seven"), "utf8"), body)
})

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
])(
  "after %s, %s exits with code %i because of the reason that it prints: %s",
  function*([name, line, code, sentence]) {
    const { user } = yield* startedWith({}, own[name] ?? Scenario.get(name as Scenario.Name))
    writeFileSync(join(user.cwd, "order.json"), "{}")
    const outcome = yield* run(user, line.split(" "))
    assert.strictEqual(outcome.code, code)
    assert.include(outcome.stderr, sentence)
    assert.match(
      outcome.stderr,
      code === 0 ? /^$/ : /^store-api: HTTP (401 Unauthorized\.|30[27] .* to )[^\n]*\n$/
    )
  }
)

test.live("call exits with code 6 if the API cannot be reached", function*() {
  yield* expectRefusal(
    at((yield* started).user, "http://127.0.0.1:9"),
    "call /",
    6,
    /^store-api: Cannot .* API \(ECONNREFUSED\)\. .*\n$/
  )
})

test.live("call exits with code 6 if the response breaks off", function*() {
  const url = yield* serving((_, response) =>
    void response.write("half", () => response.destroy())
  )
  const half = yield* run(at((yield* started).user, url), ["call", "/"])
  deepStrictEqual([half.code, half.stdout], [6, "half"])
  assert.match(half.stderr, /^store-api: The response of the API broke off/)
})

test.each([["500ms", 500], ["2.5s", 2500], ["2m", 120_000]] as const)(
  "call exits with code 6 after %s, the time of --timeout",
  function*([timeout, millis]) {
    const start = Date.now()
    yield* TestClock.setTime(start)
    const { emulator, user } = yield* startedWith({}, Fault.hang({ on: "api" }))
    const fiber = yield* Effect.fork(run(user, ["call", "/orders", "--timeout", timeout]))
    yield* until(
      "the API is called",
      Effect.map(apiCalls(emulator), (calls) => calls.length > 0)
    )
    yield* TestClock.adjust(millis - 1)
    assert.include([...yield* TestClock.sleeps()], start + millis)
    yield* TestClock.adjust(1)
    const stderr = `store-api: The call took longer than ${timeout}, the time of --timeout.\n`
    deepStrictEqual(yield* Fiber.join(fiber), { code: 6, stdout: "", stderr })
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
])(
  "call exits with code %i before it sends the API anything: %s",
  function*([code, sentence, args]) {
    const { emulator, user } = yield* started
    assert.notInclude(yield* expectRefusal(user, ["call", ...args], code, sentence), "canary")
    deepStrictEqual(yield* apiCalls(emulator), [])
  }
)

/** The cached token is revoked. */
const afterRevocation = Effect.gen(function*() {
  const { emulator, user } = yield* started
  yield* run(user, ["call", "/orders"])
  yield* emulator.revoke()
  return { emulator, user }
})

test.live("six calls at once replace a revoked token with one token request", function*() {
  const { emulator, user } = yield* afterRevocation
  yield* Effect.all(
    Effect.replicate(expectSuccess(user, "call /orders --data {} --fail"), 6),
    {
      concurrency: "unbounded"
    }
  )
  yield* expectSuccess(user, "call /orders --fail")
  assert.strictEqual(yield* tokenRequests(emulator), 2)
})

const rateLimit = Fault.status(429, { headers: { "Retry-After": "900" }, times: Infinity })
const refusals = [
  ["429", rateLimit, 5, /^store-api: The token endpoint .* Retry after \d{4}-.*Z\.\n$/],
  [
    "401",
    Fault.status(401),
    4,
    /^store-api: The token endpoint refused the request \(status 401\)/
  ]
] as const

test.live.each(
  refusals.flatMap((row) =>
    ["", " --include", " --fail"].map((flags) => [...row, flags] as const)
  )
)(
  "call prints why a revoked token was not replaced, not the API's 401: %s",
  function*([, fault, code, sentence, flags]) {
    const { emulator, user } = yield* afterRevocation
    yield* emulator.fail(fault)
    yield* expectRefusal(user, `call /orders${flags}`, code, sentence)
  }
)

test.live.each(refusals)(
  "a revoked token that was not replaced is removed from the cache: %s",
  function*([, fault]) {
    const { emulator, user } = yield* afterRevocation
    yield* emulator.fail(fault)
    yield* run(user, ["call", "/orders"])
    deepStrictEqual((yield* run(user, ["status"])).code, 5)
  }
)

test.live("a run whose streamed body cannot be repeated leaves another token to the next run", function*() {
  const { emulator, user } = yield* afterRevocation
  const callWithStream = run(user, ["call", "/orders", "--data", "-", "--fail"], {
    stdin: "{}"
  })
  deepStrictEqual([
    (yield* callWithStream).code,
    yield* tokenRequests(emulator),
    (yield* callWithStream).code
  ], [7, 1, 0])
  assert.strictEqual(yield* tokenRequests(emulator), 2)
})

test.live("call repeats a request with the token by which another run has replaced a revoked one", function*() {
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
  yield* until("the API is called", Effect.sync(() => respond.length > 0))
  deepStrictEqual((yield* call).code, 0)
  respond.forEach((end) => end())
  deepStrictEqual((yield* Fiber.join(slow)).code, 0)
  assert.strictEqual(yield* tokenRequests(emulator), 2)
})

test.live("each run replaces a rejected token once, however many earlier runs were rejected", function*() {
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
