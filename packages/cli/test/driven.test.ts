/** Runs each command as a user does, on a terminal and in a pipe, and compares the output. */
import { join } from "node:path"
import { assert, describe } from "@effect/vitest"
import { deepStrictEqual } from "@effect/vitest/utils"
import { type Emulator, Fault } from "@store-api/emulator"
import { test } from "@store-api/testing/test"
import { Effect, Exit, Redacted, TestClock, TestServices } from "effect"
import { demoSecret, hasColours, linesOf, onTerminal, type Outcome, refuses, run, start } from "./support/cli.js"
import { started, startedWith, tokenRequests, type User, withEnv, without } from "./support/cli.js"

const pipe = "a pipe"
const terminal = "a terminal"

type Place = typeof pipe | typeof terminal

interface Case {
  readonly name: string
  readonly places: ReadonlyArray<Place>
  readonly line: string
  /** The command that runs before. */
  readonly after?: string
  readonly wrongSecret?: true
  readonly code: number
  /** The lines, or what they match. */
  readonly lines: (token: string) => ReadonlyArray<string | RegExp>
  /** The content of standard error in a pipe, which a terminal shows after the lines. */
  readonly note?: string
  /** Whether a terminal shows the lines as indented JSON. */
  readonly indented?: true
  /** Of the two, in a pipe; the other is empty. */
  readonly to?: "stderr"
  readonly colours?: ReadonlyArray<keyof typeof codes>
  /** How many tokens are asked for. */
  readonly requests: number
}

const step = (word: "ok  " | "FAIL", name: string, said: string): RegExp =>
  new RegExp(`^${word} ${name.padEnd(17)} *\\d+ ms {3}${said}$`)

const reached = [
  step("ok  ", "configuration", "all from the environment; POST http://.*/v1/oauth/accesstoken"),
  step("ok  ", "name lookup", "127\\.0\\.0\\.1 is an address"),
  step("ok  ", "connection", "127\\.0\\.0\\.1 port \\d+")
]
const clocks = step("ok  ", "clock", "agrees with the server's")

const refusal =
  /^store-api: The token endpoint refused the request \(status 401, invalid_client.*: check the client id and secret\.$/
const warning = "store-api: warn: The token is on the screen, where other people may see it. A pipe is safer."

const refused = {
  wrongSecret: true,
  code: 4,
  lines: () => [refusal],
  to: "stderr",
  colours: ["red"],
  requests: 1
} as const
const body = JSON.stringify({ method: "GET", path: "/orders", query: "", clientId: "demo-client" })
const orders = {
  line: "call /orders --fail",
  code: 0,
  lines: () => [body],
  indented: true,
  requests: 1
} as const
const empty = /^folder {3}\/.*tokens$/

const cases: ReadonlyArray<Case> = [
  { name: "token", places: [pipe], line: "token", code: 0, lines: (token) => [token], requests: 1 },
  {
    name: "token, with a warning",
    places: [terminal],
    line: "token",
    code: 0,
    lines: (token) => [warning, token],
    colours: ["yellow"],
    requests: 1
  },
  { name: "token that is refused", places: [pipe, terminal], line: "token", ...refused },
  { name: "call", places: [pipe, terminal], ...orders },
  { name: "call with a stored token", places: [pipe, terminal], after: "token", ...orders },
  { name: "call that gets no token", places: [pipe, terminal], line: "call /orders", ...refused },
  {
    name: "check",
    places: [pipe, terminal],
    line: "check /orders",
    code: 0,
    lines: () => [
      ...reached,
      step("ok  ", "token request", "a token valid for 1 h 0 min"),
      clocks,
      step("ok  ", "API call", "the API responded with 200")
    ],
    colours: ["green"],
    requests: 1
  },
  {
    name: "check that fails",
    places: [pipe, terminal],
    line: "check /orders",
    wrongSecret: true,
    code: 4,
    lines: () => [
      ...reached,
      step("FAIL", "token request", "the client id or the secret is wrong \\(401\\)"),
      /^ {5}The token endpoint refused the request \(status 401, .*: check the client id and secret/,
      clocks
    ],
    colours: ["red", "green"],
    requests: 1
  },
  {
    name: "status, with an empty cache",
    places: [pipe, terminal],
    line: "status",
    code: 5,
    lines: () => [empty],
    note: "store-api: No valid token is cached for this service, client and secret.",
    colours: ["red"],
    requests: 0
  },
  {
    name: "status",
    places: [pipe, terminal],
    after: "token",
    line: "status",
    code: 0,
    lines: () => [empty, /^token {4}valid for (59 min \d+ s|1 h 0 min), until \d{4}-\d\d-\d\dT[\d:.]+Z$/],
    requests: 1
  }
]

const codes = { red: "\u001b[31m", green: "\u001b[32m", yellow: "\u001b[33m" } as const
/** So wide that no line wraps. */
const columns = 300

/** Runs a case, and returns its exit code and the lines that the user saw. */
const drive = (user: User, place: Place, { colours = [], line, note, to }: Case) =>
  Effect.gen(function*() {
    const args = line.split(" ")
    const shows = line === "token"
    if (place === pipe) {
      const { code, stderr, stdout } = yield* run(user, args, { shows })
      const [printed, other] = to === undefined ? [stdout, stderr] : [stderr, stdout]
      assert.strictEqual(other, note === undefined ? "" : `${note}\n`)
      assert.isFalse(hasColours(printed))
      return { code, lines: printed.replace(/\n$/, "").split("\n") }
    }
    const { code, screen } = yield* onTerminal(user, args, { columns, shows })
    const found = new Set(screen.match(/\u001b\[[\d;]*m/g))
    found.delete("\u001b[0m")
    deepStrictEqual([...found].sort(), colours.map((colour) => codes[colour]).sort())
    return { code, lines: linesOf(screen) }
  })

describe.each([pipe, terminal] as const)("store-api in %s", (place) => {
  test.live.each(cases.filter(({ places }) => places.includes(place)))("$name", function*(one) {
    const { emulator, user } = yield* started
    if (one.after !== undefined) yield* run(user, [one.after], { shows: true })
    const wrong = withEnv(user, { STORE_API_CLIENT_SECRET: "another-invented-secret-which-is-wrong" })
    const { code, lines } = yield* drive(one.wrongSecret === true ? wrong : user, place, one)
    const tokens = (yield* emulator.tokens).map(({ value }) => Redacted.value(value))
    const plain = one.lines(tokens.at(-1) ?? "no token was given out")
    const expected = place === pipe
      ? plain
      : one.indented === true
      ? plain.flatMap((line) => JSON.stringify(JSON.parse(String(line)), null, 2).split("\n"))
      : [...plain, ...(one.note === undefined ? [] : [one.note])]
    const differs = expected.find((line, n) =>
      typeof line === "string" ? line !== lines[n] : !line.test(lines[n] ?? "")
    )
    assert.isUndefined(differs, `${String(differs)} is not in its place in\n${lines.join("\n")}`)
    assert.lengthOf(lines, expected.length)
    assert.strictEqual(code, one.code)
    assert.strictEqual(yield* tokenRequests(emulator), one.requests)
    assert.lengthOf(tokens, one.wrongSecret === true ? 0 : one.requests)
  })
})

// Without this, all that was found clean above might not have been searched at all.
test.live.each<[place: Place, runs: (user: User, args: ReadonlyArray<string>) => Effect.Effect<unknown>]>([
  [pipe, run],
  [terminal, onTerminal]
])("a token that was not asked for would be found in %s, and a secret", function*([, runs]) {
  const { emulator, user } = yield* started
  const print = (args: ReadonlyArray<string>) => Effect.exit(runs(user, args))
  const withToken = yield* print(["token"])
  assert.isNotEmpty(yield* emulator.tokens)
  const withSecret = yield* print(["status", "--cache-dir", join(user.cwd, demoSecret)])
  const clean = yield* print(["status"])
  deepStrictEqual([withToken, withSecret, clean].map(Exit.isSuccess), [false, false, true])
})

describe("token, call and check", () => {
  const commands = ["token", "call /orders", "check /orders"].map((line) => line.split(" "))

  /** What a command says to do: the last line of standard error, or in a check the line below the step that failed. */
  const adviceOf = ({ stderr, stdout }: Outcome) =>
    [...(stderr || stdout).matchAll(/^(?:store-api: | {5})(.*)$/gm)].at(-1)?.[1] ?? ""

  /** Without numbers that each run counts. */
  const plain = (advice: string) => advice.replace(/[-\d]+T[\d:.]+Z/, "THEN").replace(/\d attempts?/, "N attempts")

  const failing = (fault: Fault.Fault) => startedWith({}, fault)
  const setting = (env: Readonly<Record<string, string>>, options: Emulator.Options = {}) =>
    Effect.map(startedWith(options), ({ user }) => ({ user: withEnv(user, env) }))

  const withoutSecret = Effect.map(started, ({ user }) => ({ user: without(user, "STORE_API_CLIENT_SECRET") }))
  const limited = /\(status 429.*\): send fewer requests\. Retry after THEN\.$/

  test.live.each(
    [
      ["a rate limit", failing(Fault.status(429)), 5, limited],
      [
        "a wrong secret",
        setting({ STORE_API_CLIENT_SECRET: "another-invented-secret" }),
        4,
        /^The .* refused .*\(status 401.*\): check the client id and secret/
      ],
      ["a missing secret", withoutSecret, 3, /^STORE_API_CLIENT_SECRET is not set\./],
      ["an unusable URL", setting({ STORE_API_AUTH_URL: "no" }), 3, /^STORE_API_AUTH_URL is/]
    ] as const
  )("give the same advice after %s", function*([, started, code, advice]) {
    const outcomes = yield* Effect.forEach(commands, (line) => Effect.flatMap(started, ({ user }) => run(user, line)))
    deepStrictEqual(outcomes.map(({ code }) => code), [code, code, code])
    const [first = "", ...others] = outcomes.map((outcome) => plain(adviceOf(outcome)))
    assert.match(first, advice)
    deepStrictEqual(others, [first, first])
  })

  test.each(
    [["token", "a token"], ["call /orders", "GET .*/orders"], ["check", "the step \"token request\""]] as const
  )("on a terminal, %s names after 2 seconds what it waits for", function*([line, what]) {
    yield* TestClock.setTime(Date.now())
    const on = line === "call /orders" ? "api" : "token"
    const { emulator, user } = yield* startedWith({}, Fault.hang({ on }))
    const { stderr } = yield* start(user, line.split(" "), { screen: {} })
    const waits = Effect.map(emulator.requests, (requests) => requests.some(({ kind }) => kind === on))
    yield* TestServices.provideLive(Effect.repeat(Effect.delay(waits, "10 millis"), { until: (waits) => waits }))
    yield* TestClock.adjust("1999 millis")
    assert.notInclude(stderr.text, "Waiting")
    yield* TestClock.adjust("1 millis")
    assert.match(stderr.text, new RegExp(`(^|\\n)store-api: Waiting for ${what}\\. Press Ctrl\\+C to stop\\.\\r\\n$`))
  })

  test.live("with --verbose show each request with its outcome, and without secrets", function*() {
    const { emulator, user } = yield* started
    const verbose = yield* run(user, ["token", "--verbose"], { shows: true })
    assert.match(verbose.stderr, /^store-api: POST http:.*\/v1\/oauth\/accesstoken: 200 \(\d+ ms\)\n$/)
    const call = yield* run(user, ["-v", "call", "/orders?secret=canary"])
    deepStrictEqual(call.stderr.replace(/\d+ ms/, ""), `store-api: GET ${emulator.url}/orders: 200 ()\n`)
    yield* emulator.fail(Fault.hang({ on: "api" }))
    const timedOut = /\nstore-api: GET http:.*\/orders: no response \(\d+ ms\)\nstore-api: The call took longer/
    yield* refuses(user, "call /orders --verbose --force-refresh --timeout 1s", 6, timedOut)
  })
})
