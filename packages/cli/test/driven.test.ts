/** Runs each command as a user does, on a terminal and in a pipe, against each server, and compares the output. */
import { join } from "node:path"
import { assert, describe } from "@effect/vitest"
import { deepStrictEqual } from "@effect/vitest/utils"
import { Effect, Exit } from "effect"
import { leaksIn } from "../../core/test/support/leaksIn.js"
import { test } from "../../core/test/support/test.js"
import { onTerminal, run, type User, withEnv, without } from "./support/cli.js"
import { hasColours, linesOf } from "./support/screen.js"
import { lastTokenOf, type Server, servers, userOfServer } from "./support/servers.js"

const places = ["a pipe", "a terminal", "a terminal without colours", "a terminal where the secret is typed"] as const

type Place = typeof places[number]

const isTerminal = (place: Place) => place !== "a pipe"

/** A line, or what it has to match. */
type Line = string | RegExp

interface Case {
  readonly name: string
  readonly places: ReadonlyArray<Place>
  readonly args: ReadonlyArray<string>
  /** The commands that run before. */
  readonly after?: ReadonlyArray<string>
  readonly wrongSecret?: true
  /** Whether the token is asked for. */
  readonly shows?: true
  readonly code: number
  readonly lines: (server: Server, token: string) => ReadonlyArray<Line>
  /** The content of standard error in a pipe, which a terminal shows after the lines. */
  readonly note?: string
  /** Whether a terminal shows the lines as indented JSON. */
  readonly indented?: true
  /** Of the two, in a pipe; the other is empty. */
  readonly to: "stdout" | "stderr"
  readonly colours?: ReadonlyArray<keyof typeof codes>
  /** How many tokens are asked for. */
  readonly requests: number
}

const wrongSecret = "another-invented-secret-which-is-wrong"

const withTypedSecret = "a terminal where the secret is typed"

const withoutTyping = places.filter((place) => place !== withTypedSecret)

/** For what has no colours to lose. */
const inColourOrNot = places.filter((place) => place !== "a terminal without colours")

const step = (word: "ok  " | "FAIL", name: string, said: string): RegExp =>
  new RegExp(`^${word} ${name.padEnd(17)} *\\d+ ms {3}${said}$`)

const reached = [
  step(
    "ok  ",
    "configuration",
    "(all from the environment|.* from the environment; client secret from the prompt); POST http://.*/v1/oauth/accesstoken"
  ),
  step("ok  ", "name lookup", "127\\.0\\.0\\.1 is an address"),
  step("ok  ", "connection", "127\\.0\\.0\\.1 port \\d+")
]

const clocks = step("ok  ", "clock", "agrees with the server's")

const refusal =
  /^store-api: The token endpoint refused the request \(status 401, invalid_client.*: check the client id and secret\.$/

const cases: ReadonlyArray<Case> = [
  {
    name: "token",
    places: ["a pipe"],
    args: ["token"],
    shows: true,
    code: 0,
    lines: (_, token) => [token],
    to: "stdout",
    requests: 1
  },
  {
    name: "token, with a warning",
    places: places.filter(isTerminal),
    args: ["token"],
    shows: true,
    code: 0,
    lines: (_, token) => [
      "store-api: warn: The token is on the screen, where other people may see it. A pipe is safer.",
      token
    ],
    to: "stdout",
    colours: ["yellow"],
    requests: 1
  },
  {
    name: "token that is refused",
    places: withoutTyping,
    args: ["token"],
    wrongSecret: true,
    code: 4,
    lines: () => [refusal],
    to: "stderr",
    colours: ["red"],
    requests: 1
  },
  {
    name: "call",
    places: inColourOrNot,
    args: ["call", "/orders", "--fail"],
    code: 0,
    lines: ({ orders }) => [orders],
    indented: true,
    to: "stdout",
    requests: 1
  },
  {
    name: "call with a stored token",
    places: ["a pipe", "a terminal"],
    after: ["token"],
    args: ["call", "/orders", "--fail"],
    code: 0,
    lines: ({ orders }) => [orders],
    indented: true,
    to: "stdout",
    requests: 1
  },
  {
    name: "call that gets no token",
    places: withoutTyping,
    args: ["call", "/orders"],
    wrongSecret: true,
    code: 4,
    lines: () => [refusal],
    to: "stderr",
    colours: ["red"],
    requests: 1
  },
  {
    name: "check",
    places,
    args: ["check", "/orders"],
    code: 0,
    lines: ({ life }) => [
      ...reached,
      step("ok  ", "token request", `a token valid for ${life}`),
      clocks,
      step("ok  ", "API call", "the API responded with 200")
    ],
    to: "stdout",
    colours: ["green"],
    requests: 1
  },
  {
    name: "check that fails",
    places: withoutTyping,
    args: ["check", "/orders"],
    wrongSecret: true,
    code: 4,
    lines: () => [
      ...reached,
      step("FAIL", "token request", "the client id or the secret is wrong \\(401\\)"),
      /^ {5}The token endpoint refused the request \(status 401, .*: check the client id and secret/,
      clocks
    ],
    to: "stdout",
    colours: ["red", "green"],
    requests: 1
  },
  {
    name: "status, with an empty cache",
    places: ["a pipe", "a terminal"],
    args: ["status"],
    code: 5,
    lines: () => [/^folder {3}\/.*tokens$/],
    note: "store-api: No valid token is cached for this service, client and secret.",
    to: "stdout",
    colours: ["red"],
    requests: 0
  },
  {
    name: "status",
    places: inColourOrNot,
    after: ["token"],
    args: ["status"],
    code: 0,
    lines: ({ life }) => [
      /^folder {3}\/.*tokens$/,
      new RegExp(`^token {4}valid for (\\d+ min \\d+ s|${life}), until \\d{4}-\\d\\d-\\d\\dT[\\d:.]+Z$`)
    ],
    to: "stdout",
    requests: 1
  }
]

const assertLines = (actual: ReadonlyArray<string>, expected: ReadonlyArray<Line>) => {
  const differs = expected.findIndex((line, n) =>
    typeof line === "string" ? line !== actual[n] : !line.test(actual[n] ?? "")
  )
  assert.isTrue(differs === -1, `${String(expected[differs])} is not line ${differs + 1} of\n${actual.join("\n")}`)
  assert.lengthOf(actual, expected.length, actual.join("\n"))
}

const codes = { red: "\u001b[31m", green: "\u001b[32m", yellow: "\u001b[33m" } as const

const assertColours = (text: string, expected: ReadonlyArray<keyof typeof codes>) => {
  const found = new Set(text.match(/\u001b\[[\d;]*m/g))
  found.delete("\u001b[0m")
  deepStrictEqual([...found].sort(), expected.map((colour) => codes[colour]).sort())
}

const prompt = "Client secret (not shown): "

/** So wide that no line wraps. */
const columns = 300

/** Runs a case, and returns its outcome and what the user saw, without the prompt. */
const drive = (server: Server, user: User, place: Place, { args, colours = [], to, ...one }: Case) =>
  Effect.gen(function*() {
    const shows = one.shows === true
    if (!isTerminal(place)) {
      const { code, ...printed } = yield* run(user, args, { shows })
      assert.strictEqual(printed[to === "stdout" ? "stderr" : "stdout"], one.note === undefined ? "" : `${one.note}\n`)
      assert.isFalse(hasColours(printed[to]))
      return { code, lines: printed[to].replace(/\n$/, "").split("\n") }
    }
    if (place !== withTypedSecret) {
      const { code, screen } = yield* onTerminal(user, args, { columns, shows })
      if (place === "a terminal") assertColours(screen, colours)
      else assert.isFalse(hasColours(screen))
      return { code, lines: linesOf(screen) }
    }
    const { code, screen } = yield* onTerminal(without(user, "STORE_API_CLIENT_SECRET"), args, {
      columns,
      shows,
      typed: `${server.clientSecret}\r`
    })
    // The typed secret never appears.
    assert.isTrue(screen.startsWith(`${prompt}\r\n`), screen)
    deepStrictEqual(leaksIn(screen, [server.clientSecret]), [])
    return { code, lines: linesOf(screen).slice(1) }
  })

for (const [serverName, startServer] of Object.entries(servers)) {
  for (const place of places) {
    // Colours do not depend on the server.
    if (serverName === "oidc-provider" && place === "a terminal without colours") continue
    describe(`store-api against ${serverName}, in ${place}`, () => {
      const started = Effect.gen(function*() {
        const server = yield* startServer
        const user = yield* userOfServer(server, place === "a terminal without colours" ? { NO_COLOR: "1" } : {})
        return { server, user }
      })

      for (const one of cases.filter(({ places }) => places.includes(place))) {
        test.live(one.name, function*() {
          const { server, user } = yield* started
          if (one.after !== undefined) yield* run(user, one.after, { shows: true })
          const wrong: User = {
            ...withEnv(user, { STORE_API_CLIENT_SECRET: wrongSecret }),
            secrets: Effect.map(user.secrets, (secrets) => [...secrets, wrongSecret])
          }
          const { code, lines } = yield* drive(server, one.wrongSecret === true ? wrong : user, place, one)
          const tokens = yield* server.tokens
          const expected = one.lines(server, tokens.at(-1) ?? "no token was given out")
          assertLines(
            lines,
            !isTerminal(place)
              ? expected
              : one.indented === true
              ? expected.flatMap((line) => JSON.stringify(JSON.parse(String(line)), null, 2).split("\n"))
              : [...expected, ...(one.note === undefined ? [] : [one.note])]
          )
          assert.strictEqual(code, one.code)
          assert.strictEqual(yield* server.tokenRequests, one.requests)
          assert.lengthOf(tokens, one.wrongSecret === true ? 0 : one.requests)
        })
      }

      // Without these, all that was found clean above might not have been searched at all.
      test.live("a token that was not asked for would be found, and a secret", function*() {
        const { server, user } = yield* started
        const print = (args: ReadonlyArray<string>) =>
          Effect.exit(isTerminal(place) ? Effect.asVoid(onTerminal(user, args)) : Effect.asVoid(run(user, args)))
        const withToken = yield* print(["token"])
        assert.isNotEmpty(yield* lastTokenOf(server))
        const withSecret = yield* print(["status", "--cache-dir", join(user.cwd, server.clientSecret)])
        const clean = yield* print(["status"])
        deepStrictEqual([withToken, withSecret, clean].map(Exit.isSuccess), [false, false, true])
      })
    })
  }
}
