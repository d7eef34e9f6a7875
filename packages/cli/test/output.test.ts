/** Runs each command as a user does, on a terminal and in a pipe, and compares the output. */
import { join } from "node:path"
import { assert, describe } from "@effect/vitest"
import { deepStrictEqual } from "@effect/vitest/utils"
import { type Emulator, Fault } from "@store-api/emulator"
import { until } from "@store-api/testing/network"
import { test } from "@store-api/testing/test"
import { Effect, Exit, Fiber, TestClock } from "effect"
import {
  demoSecret,
  hasColours,
  lastToken,
  linesOf,
  onTerminal,
  type Outcome,
  refuses,
  run,
  start,
  started,
  startedWith,
  tokenRequests,
  type User,
  withEnv,
  without
} from "./support/cli.js"

const colours: Readonly<Record<string, string>> = {
  "\u001b[31m": "red",
  "\u001b[32m": "green",
  "\u001b[33m": "yellow"
}
/** So wide that no line wraps. */
const columns = 300

interface Case {
  readonly name: string
  readonly line: string
  /** The command that runs before. */
  readonly after?: string
  readonly wrongSecret?: true
  readonly code: number
  /** The lines of standard output, or what they match. */
  readonly lines: ReadonlyArray<RegExp>
  /** The content of standard error in a pipe, which a terminal shows after the lines. */
  readonly note?: ReadonlyArray<RegExp>
  /** The number of token requests. */
  readonly requests: number
  readonly colours?: ReadonlyArray<string>
}

const step = (word: "ok  " | "FAIL", name: string, said: string): RegExp =>
  new RegExp(`^${word} ${name.padEnd(17)} *\\d+ ms {3}${said}$`)

const reached = [
  step(
    "ok  ",
    "configuration",
    "all from the environment; POST http://.*/v1/oauth/accesstoken"
  ),
  step("ok  ", "name lookup", "127\\.0\\.0\\.1"),
  step("ok  ", "connection", "127\\.0\\.0\\.1 port \\d+")
]
const clocks = step("ok  ", "clock", "agrees with the server's")
const refusal =
  /^store-api: The token endpoint refused the request \(status 401, invalid_client.*: check the client id and secret\.$/
const refused = {
  wrongSecret: true,
  code: 4,
  lines: [],
  note: [refusal],
  colours: ["red"],
  requests: 1
} as const
const empty = /^folder {3}\/.*tokens$/
const none = /^store-api: No valid token is cached for this service, client and secret\.$/

const cases: ReadonlyArray<Case> = [
  { name: "token that is refused", line: "token", ...refused },
  { name: "call that gets no token", line: "call /orders", ...refused },
  {
    name: "check",
    line: "check /orders",
    code: 0,
    lines: [
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
    line: "check /orders",
    wrongSecret: true,
    code: 4,
    lines: [
      ...reached,
      step("FAIL", "token request", "the endpoint responded with 401"),
      /^ {5}The token endpoint refused the request \(status 401, .*: check the client id and secret/,
      clocks
    ],
    colours: ["green", "red"],
    requests: 1
  },
  {
    name: "status, without a token",
    line: "status",
    code: 5,
    lines: [empty],
    note: [none],
    colours: ["red"],
    requests: 0
  },
  {
    name: "status",
    after: "token",
    line: "status",
    code: 0,
    lines: [
      empty,
      /^token {4}valid for (59 min \d+ s|1 h 0 min), until \d{4}-\d\d-\d\dT[\d:.]+Z$/
    ],
    requests: 1
  }
]

/** Whether each line of a text is as expected. */
const matches = (text: string, expected: ReadonlyArray<RegExp>) => {
  const lines = text.split("\n").filter(Boolean)
  assert.lengthOf(lines, expected.length, text)
  for (const [index, line] of expected.entries()) assert.match(lines[index] ?? "", line)
}

/** The colours of a screen, by name if they have one. */
const coloursOf = (screen: string) =>
  [...new Set(screen.match(/\u001b\[[1-9][\d;]*m/g))].map((code) => colours[code] ?? code)
    .sort()

describe("store-api", () => {
  test.live.each(cases)(
    "$name: a terminal shows the lines of a pipe, in colours",
    function*(one) {
      const args = one.line.split(" ")
      const prepared = Effect.gen(function*() {
        const { emulator, user } = yield* started
        if (one.after !== undefined) yield* run(user, [one.after], { shows: true })
        const wrong = withEnv(user, {
          STORE_API_CLIENT_SECRET: "another-invented-secret-which-is-wrong"
        })
        return {
          requests: tokenRequests(emulator),
          user: one.wrongSecret === true ? wrong : user
        }
      })
      const inPipe = yield* prepared
      const { code, stderr, stdout } = yield* run(inPipe.user, args)
      assert.isFalse(hasColours(stdout + stderr))
      matches(stdout, one.lines)
      matches(stderr, one.note ?? [])
      const onScreen = yield* prepared
      const shown = yield* onTerminal(onScreen.user, args, { columns })
      matches(linesOf(shown.screen).join("\n"), [...one.lines, ...one.note ?? []])
      deepStrictEqual(coloursOf(shown.screen), one.colours ?? [])
      deepStrictEqual([code, shown.code], [one.code, one.code])
      deepStrictEqual([yield* inPipe.requests, yield* onScreen.requests], [
        one.requests,
        one.requests
      ])
    }
  )

  test.live("token warns on a terminal, in yellow", function*() {
    const { emulator, user } = yield* started
    const { screen } = yield* onTerminal(user, ["token"], { columns, shows: true })
    const warning =
      "store-api: warn: The token is on the screen, where other people may see it. A pipe is safer."
    deepStrictEqual(linesOf(screen), [warning, yield* lastToken(emulator)])
    deepStrictEqual(coloursOf(screen), ["yellow"])
  })
})

// Without this, all that was found clean above might not have been searched at all.
test.live.each<
  [place: string, runs: (user: User, args: ReadonlyArray<string>) => Effect.Effect<unknown>]
>([
  ["a pipe", run],
  ["a terminal", onTerminal]
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
  const plain = (advice: string) =>
    advice.replace(/[-\d]+T[\d:.]+Z/, "THEN").replace(/\d attempts?/, "N attempts")

  const failing = (fault: Fault.Fault) => startedWith({}, fault)
  const setting = (env: Readonly<Record<string, string>>, options: Emulator.Options = {}) =>
    Effect.map(startedWith(options), ({ user }) => ({ user: withEnv(user, env) }))

  const withoutSecret = Effect.map(
    started,
    ({ user }) => ({ user: without(user, "STORE_API_CLIENT_SECRET") })
  )
  const limited = /\(status 429.*\): send fewer requests\. Retry after THEN\.$/

  test.live.each(
    [
      ["a rate limit", failing(Fault.status(429)), 5, limited],
      [
        "a wrong secret",
        setting({ STORE_API_CLIENT_SECRET: "another+invented-secret" }),
        4,
        /^The .* refused .*\(status 401.*\): check the client id and secret, which .*, such as \+ or %, unless an application .* sends them\.$/
      ],
      ["a missing secret", withoutSecret, 3, /^STORE_API_CLIENT_SECRET is not set\./],
      ["an unusable URL", setting({ STORE_API_AUTH_URL: "no" }), 3, /^STORE_API_AUTH_URL is/]
    ] as const
  )("give the same advice after %s", function*([, started, code, advice]) {
    const outcomes = yield* Effect.forEach(
      commands,
      (line) => Effect.flatMap(started, ({ user }) => run(user, line))
    )
    deepStrictEqual(outcomes.map(({ code }) => code), [code, code, code])
    const [first = "", ...others] = outcomes.map((outcome) => plain(adviceOf(outcome)))
    assert.match(first, advice)
    deepStrictEqual(others, [first, first])
  })

  test.each(
    [["token", "a token"], ["call /orders", "GET .*/orders"], [
      "check",
      "the step \"token request\""
    ]] as const
  )("on a terminal, %s names after 2 seconds what it waits for", function*([line, what]) {
    yield* TestClock.setTime(Date.now())
    const on = line === "call /orders" ? "api" : "token"
    const { emulator, user } = yield* startedWith({}, Fault.hang({ on }))
    const { stderr } = yield* start(user, line.split(" "), { screen: {} })
    yield* until(
      "the fault is met",
      Effect.map(emulator.pendingFaults, ({ length }) => length === 0)
    )
    yield* TestClock.adjust("1999 millis")
    assert.notInclude(stderr.text, "Waiting")
    yield* TestClock.adjust("1 millis")
    assert.match(
      stderr.text,
      new RegExp(`(^|\\n)store-api: Waiting for ${what}\\. Press Ctrl\\+C to stop\\.\\r\\n$`)
    )
  })

  test("with --verbose show each request with its outcome, and without secrets", function*() {
    yield* TestClock.setTime(Date.now())
    const { emulator, user } = yield* started
    const verbose = yield* run(user, ["token", "--verbose"], { shows: true })
    assert.match(
      verbose.stderr,
      /^store-api: POST http:.*\/v1\/oauth\/accesstoken: 200 \(\d+ ms\)\n$/
    )
    const call = yield* run(user, ["-v", "call", "/orders?secret=canary"])
    deepStrictEqual(
      call.stderr.replace(/\d+ ms/, ""),
      `store-api: GET ${emulator.url}/orders: 200 ()\n`
    )
    yield* emulator.fail(Fault.hang({ on: "api" }))
    const timedOut =
      /\nstore-api: GET http:.*\/orders: no response \(\d+ ms\)\nstore-api: The call took longer/
    yield* TestClock.adjust("1 second")
    const late = yield* Effect.fork(
      refuses(user, "call /orders --verbose --force-refresh --timeout 1s", 6, timedOut)
    )
    yield* until(
      "the fault is met",
      Effect.map(emulator.pendingFaults, ({ length }) => length === 0)
    )
    yield* TestClock.adjust("1 second")
    yield* Fiber.join(late)
  })
})
