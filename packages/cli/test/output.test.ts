/** Runs each command as a user does, on a terminal and in a pipe, and compares the output. */
import { join } from "node:path"
import { assert } from "@effect/vitest"
import { deepStrictEqual } from "@effect/vitest/utils"
import { type Emulator, Fault } from "@store-api/emulator"
import { until } from "@store-api/testing/network"
import { test } from "@store-api/testing/test"
import { Effect, Exit, Fiber, TestClock } from "effect"
import {
  demoSecret,
  expectRefusal,
  hasColours,
  lastToken,
  linesOf,
  onTerminal,
  type Outcome,
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

const step = (word: "ok  " | "FAIL", name: string, message: string): RegExp =>
  new RegExp(`^${word} ${name.padEnd(17)} *\\d+ ms {3}${message}$`)

const connectionSteps = [
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
const refusedCase = {
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
  { name: "token that is refused", line: "token", ...refusedCase },
  { name: "call that gets no token", line: "call /orders", ...refusedCase },
  {
    name: "check",
    line: "check /orders",
    code: 0,
    lines: [
      ...connectionSteps,
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
      ...connectionSteps,
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
const matchLines = (text: string, expected: ReadonlyArray<RegExp>) => {
  const lines = text.split("\n").filter(Boolean)
  assert.lengthOf(lines, expected.length, text)
  for (const [index, line] of expected.entries()) assert.match(lines[index] ?? "", line)
}

/** Prints the name of a folder, which is the secret. */
const argsWithSecret = ({ cwd }: User) => ["status", "--cache-dir", join(cwd, demoSecret)]

/** The colours of a screen, by name if they have one. */
const coloursOf = (screen: string) =>
  [...new Set(screen.match(/\u001b\[[1-9][\d;]*m/g))].map((code) => colours[code] ?? code)
    .sort()

/** The arguments of a case, a user for it, and the token requests of that user. */
const prepare = ({ after, line, wrongSecret }: Case) =>
  Effect.gen(function*() {
    const { emulator, user } = yield* started
    if (after !== undefined) yield* run(user, [after], { shows: true })
    const wrong = { STORE_API_CLIENT_SECRET: "another-invented-secret-which-is-wrong" }
    return {
      args: line.split(" "),
      requests: tokenRequests(emulator),
      user: wrongSecret === true ? withEnv(user, wrong) : user
    }
  })

test.live.each(cases)("a pipe gets these lines without colours: $name", function*(row) {
  const { args, requests, user } = yield* prepare(row)
  const { code, stderr, stdout } = yield* run(user, args)
  assert.isFalse(hasColours(stdout + stderr))
  matchLines(stdout, row.lines)
  matchLines(stderr, row.note ?? [])
  deepStrictEqual([code, yield* requests], [row.code, row.requests])
})

test.live.each(cases)(
  "a terminal shows the lines of a pipe in colours: $name",
  function*(row) {
    const { args, requests, user } = yield* prepare(row)
    const { code, screen } = yield* onTerminal(user, args, { columns })
    matchLines(linesOf(screen).join("\n"), [...row.lines, ...row.note ?? []])
    deepStrictEqual(coloursOf(screen), row.colours ?? [])
    deepStrictEqual([code, yield* requests], [row.code, row.requests])
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

// Without this, all that was found clean above might not have been searched at all.
test.live.each<
  [
    what: string,
    runs: (user: User, args: ReadonlyArray<string>) => Effect.Effect<unknown>,
    argsOf: (user: User) => ReadonlyArray<string>,
    isClean: boolean
  ]
>([
  ["a token in a pipe fails", run, () => ["token"], false],
  ["a token on a terminal fails", onTerminal, () => ["token"], false],
  ["a secret in a pipe fails", run, argsWithSecret, false],
  ["a secret on a terminal fails", onTerminal, argsWithSecret, false],
  ["nothing private in a pipe succeeds", run, () => ["status"], true],
  ["nothing private on a terminal succeeds", onTerminal, () => ["status"], true]
])("a run of these tests that prints %s", function*([, runs, argsOf, isClean]) {
  const { user } = yield* started
  assert.strictEqual(Exit.isSuccess(yield* Effect.exit(runs(user, argsOf(user)))), isClean)
})

const commands = ["token", "call /orders", "check /orders"].map((line) => line.split(" "))

/** What a command says to do: the last line of standard error, or in a check the line below the step that failed. */
const adviceOf = ({ stderr, stdout }: Outcome) =>
  [...(stderr || stdout).matchAll(/^(?:store-api: | {5})(.*)$/gm)].at(-1)?.[1] ?? ""

/** Without numbers that each run counts. */
const plain = (advice: string) =>
  advice.replace(/[-\d]+T[\d:.]+Z/, "THEN").replace(/\d attempts?/, "N attempts")

const startFailing = (fault: Fault.Fault) => startedWith({}, fault)
const startWith = (env: Readonly<Record<string, string>>, options: Emulator.Options = {}) =>
  Effect.map(startedWith(options), ({ user }) => ({ user: withEnv(user, env) }))

const withoutSecret = Effect.map(
  started,
  ({ user }) => ({ user: without(user, "STORE_API_CLIENT_SECRET") })
)
const rateLimit = /\(status 429.*\): send fewer requests\. Retry after THEN\.$/

test.live.each(
  [
    ["a rate limit", startFailing(Fault.status(429)), 5, rateLimit],
    [
      "a wrong secret",
      startWith({ STORE_API_CLIENT_SECRET: "another+invented-secret" }),
      4,
      /^The .* refused .*\(status 401.*\): check the client id and secret, which .*, such as \+ or %, unless an application .* sends them\.$/
    ],
    ["a missing secret", withoutSecret, 3, /^STORE_API_CLIENT_SECRET is not set\./],
    ["an unusable URL", startWith({ STORE_API_AUTH_URL: "no" }), 3, /^STORE_API_AUTH_URL is/]
  ] as const
)("token, call and check give the same advice after %s", function*([, started, code, advice]) {
  const outcomes = yield* Effect.forEach(
    commands,
    (line) => Effect.flatMap(started, ({ user }) => run(user, line))
  )
  deepStrictEqual(outcomes.map(({ code }) => code), [code, code, code])
  const [first = "", ...moreAdvice] = outcomes.map((outcome) => plain(adviceOf(outcome)))
  assert.match(first, advice)
  deepStrictEqual(moreAdvice, [first, first])
})

test.each(
  [["token", "a token"], ["call /orders", "GET .*/orders"], [
    "check",
    "the step \"token request\""
  ]] as const
)("%s names on a terminal after 2 seconds what it waits for", function*([line, what]) {
  yield* TestClock.setTime(Date.now())
  const kind = line === "call /orders" ? "api" : "token"
  const { emulator, user } = yield* startedWith({}, Fault.hang({ on: kind }))
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

test.live("--verbose shows each request with its outcome", function*() {
  const { user } = yield* started
  const { stderr } = yield* run(user, ["token", "--verbose"], { shows: true })
  assert.match(
    stderr,
    /^store-api: POST http:.*\/v1\/oauth\/accesstoken: 200 \(\d+ ms\)\n$/
  )
})

test.live("--verbose shows no query of a request", function*() {
  const { emulator, user } = yield* started
  yield* run(user, ["token"], { shows: true })
  const { stderr } = yield* run(user, ["-v", "call", "/orders?secret=canary"])
  deepStrictEqual(
    stderr.replace(/\d+ ms/, ""),
    `store-api: GET ${emulator.url}/orders: 200 ()\n`
  )
})

test("--verbose shows a request that --timeout ends", function*() {
  yield* TestClock.setTime(Date.now())
  const { emulator, user } = yield* startedWith({}, Fault.hang({ on: "api" }))
  const message =
    /\nstore-api: GET http:.*\/orders: no response \(\d+ ms\)\nstore-api: The call took longer/
  const fiber = yield* Effect.fork(
    expectRefusal(user, "call /orders --verbose --timeout 1s", 6, message)
  )
  yield* until(
    "the fault is met",
    Effect.map(emulator.pendingFaults, ({ length }) => length === 0)
  )
  yield* TestClock.adjust("1 second")
  yield* Fiber.join(fiber)
})
