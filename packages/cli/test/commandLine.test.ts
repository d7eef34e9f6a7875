import { assert, describe } from "@effect/vitest"
import { deepStrictEqual } from "@effect/vitest/utils"
import { Scenario } from "@store-api/emulator"
import { test } from "@store-api/testing/test"
import { Effect } from "effect"
import { exitCodes } from "../src/CommandError.js"
import {
  demoSecret,
  hasColours,
  newUser,
  onTerminal,
  prints,
  refuses,
  run,
  started,
  type User,
  withEnv
} from "./support/cli.js"

/** Lines that are wrong, and the message for each. */
const refused: ReadonlyArray<readonly [line: string, message: string]> = [
  [
    "token --Profile books",
    "Unknown option '--Profile'. Did you mean --profile? See store-api token --help."
  ],
  ["token --Client-Id=canary", "Unknown option '--Client-Id'. See store-api token --help."],
  [
    "token --no-cach",
    "Unknown option '--no-cach'. Did you mean --no-cache? See store-api token --help."
  ],
  ["token -x", "Unknown option '-x'. See store-api token --help."],
  ["token --constructor", "Unknown option '--constructor'. See store-api token --help."],
  [
    "call /orders -X DELETE --dry-run",
    "Unknown option '--dry-run'. See store-api call --help."
  ],
  [
    "call --includ /orders",
    "Unknown option '--includ'. Did you mean --include? See store-api call --help."
  ],
  [
    "token --client-id",
    "Option '--client-id <ID>' argument missing. See store-api token --help."
  ],
  [
    "token --client-id --no-cache",
    "--client-id needs a value: --client-id ID. See store-api token --help."
  ],
  [
    "token --client-id one --client-id two",
    "--client-id is given twice. See store-api token --help."
  ],
  [
    "--client-id one token --client-id two",
    "--client-id is given twice. See store-api token --help."
  ],
  [
    "call -d --include /orders",
    "--data needs a value: --data DATA. See store-api call --help."
  ],
  [
    "token --format xml",
    "--format must be one of token, header, json. See store-api token --help."
  ],
  [
    "token something",
    "Too many arguments for 'token'. Expected 0 arguments but got 1. See store-api token --help."
  ],
  ["call", "Missing required argument 'path'. See store-api call --help."],
  [
    "call /orders /more",
    "Too many arguments for 'call'. Expected 1 argument but got 2. See store-api call --help."
  ],
  ["call /orders --timeout soon", "--timeout must be a time such as 500ms, 30s or 2m."],
  [
    "call /orders#first",
    "The path must not contain a #, because a fragment is not sent. In a path, write %23."
  ],
  [
    "check /#",
    "The path must not contain a #, because a fragment is not sent. In a path, write %23."
  ],
  [
    "--profile books emulator",
    "--profile is not a flag of emulator. See store-api emulator --help."
  ],
  ["run", "Missing required argument 'command'. See store-api run --help."],
  [
    "run --no-cach -- sh",
    "Unknown option '--no-cach'. Did you mean --no-cache? See store-api run --help."
  ],
  ["--no-cache token", "Unknown option '--no-cache'. See store-api --help."],
  ["tokens", "Unknown command 'tokens'. Did you mean token? See store-api --help."],
  ["emulator fial x", "Unknown command 'fial'. See store-api emulator --help."],
  ["profile ad", "Unknown command 'ad'. Did you mean add? See store-api profile --help."],
  ["help tokn", "Unknown command 'tokn'. Did you mean token? See store-api --help."],
  ["help profile ad", "Unknown command 'ad'. Did you mean add? See store-api profile --help."],
  ["help constructor", "Unknown command 'constructor'. See store-api --help."],
  ["completion tcsh", "The shell must be one of bash, zsh, fish."]
]

describe("a line that cannot be used", () => {
  test.live.each(refused)(
    "%s: fails with a line that says what to do, and sends nothing",
    function*([line, message]) {
      const { emulator, user } = yield* started
      yield* refuses(user, line, 2, message)
      deepStrictEqual(yield* emulator.requests, [])
    }
  )

  test.live("common flags may stand before the command, with a space or with =", function*() {
    const { emulator, user } = yield* started
    const nowhere = withEnv(user, { STORE_API_AUTH_URL: "http://127.0.0.1:9" })
    for (
      const line of [`--auth-url ${emulator.url} token`, `token --auth-url=${emulator.url}`]
    ) {
      yield* prints(nowhere, line)
    }
  })
})

const commands = [
  "token",
  "call",
  "check",
  "run",
  "status",
  "logout",
  "profile",
  "profile add",
  "profile show",
  "profile list",
  "profile remove",
  "emulator",
  "completion"
]

const widest = (lines: ReadonlyArray<string>) => Math.max(...lines.map((line) => line.length))

describe("help", () => {
  test.live("lists the commands and the exit codes, in 80 columns", function*() {
    const user = yield* newUser({})
    const whole = yield* prints(user, "--help")
    for (const args of [[], ["help"], ["-h"]]) {
      assert.strictEqual(yield* prints(user, args), whole)
    }
    for (const command of commands) {
      if (!command.includes(" ")) assert.match(whole, new RegExp(`^ {2}${command} `, "m"))
    }
    for (const { code, text } of Object.values(exitCodes)) {
      assert.include(whole, `${code}  ${text}\n`)
    }
    assert.isAtMost(widest(whole.split("\n")), 80)
  })

  test.live.each(commands)(
    "of %s has a usage line, one line per flag in 80 columns and two examples, and fits into 60 columns",
    function*(command) {
      const user = yield* newUser({})
      const words = command.split(" ")
      const help = yield* prints(user, [...words, "--help"])
      const lines = help.split("\n")
      assert.isTrue(lines[0]?.startsWith(`Usage: store-api ${command} `))
      assert.lengthOf(lines.filter((line) => line.startsWith("  $ store-api ")), 2)
      assert.isAtMost(widest(lines), 80)
      // zsh and fish would look for files.
      const examples = lines.filter((line) => line.startsWith("  $ ")).join(" ")
      assert.notMatch(examples.replace(/'[^']*'/g, ""), /[?*[\]^#()]/)
      const [, options = ""] = /\nOptions:\n(.*?)\n\n/s.exec(help) ?? []
      for (const line of options.split("\n")) {
        assert.match(line, /^ {2}(-\w, )?--[\w-]+( <\w+>)? {2,}\S/)
      }
      assert.isFalse(hasColours(help))
      const again = /^(profile|emulator)$/.test(command)
        ? [command, "help"]
        : ["help", ...words, "/more"]
      for (const args of [["help", ...words], again]) {
        assert.strictEqual(yield* prints(user, args), help)
      }
      const { screen } = yield* onTerminal(user, [...words, "--help"], { columns: 60 })
      assert.isAtMost(
        widest(screen.split("\r\n").filter((line) => !line.startsWith("  $ "))),
        60,
        screen
      )
    }
  )

  test.live("--version prints the version", function*() {
    assert.match(yield* prints(yield* newUser({}), "--version"), /^\d+\.\d+\.\d+\n$/)
  })
})

/** `shells.slow.test.ts` drives the scripts in each shell. */
describe("completion", () => {
  const offered: ReadonlyArray<
    readonly [words: ReadonlyArray<string>, offers: ReadonlyArray<string>]
  > = [
    [["profile", ""], ["add", "show", "list", "remove"]],
    [["help", "profile", ""], ["add", "show", "list", "remove"]],
    [["token", "--profile", ""], ["books"]],
    [["token", "--profile", "=", "b"], ["books"]],
    [["token", "--profile=b"], ["--profile=books"]],
    [["profile", "remove", ""], ["books"]],
    [["emulator", "--scenario", "token/4"], Scenario.names],
    [["emulator", "fail", "token/4"], Scenario.names],
    [["emulator", ""], ["fail", "clear", "revoke", "requests", "tokens"]],
    [["token", "--format", ""], ["token", "header", "json"]],
    [["completion", ""], ["bash", "zsh", "fish"]],
    // Paths are for the shell to complete.
    [["token", "--secret-file", ""], []],
    [["call", ""], []]
  ]

  test.live("offers commands, their flags, profiles, scenarios and formats, and leaves paths to the shell", function*() {
    const user = yield* newUser({ STORE_API_CLIENT_SECRET: "an-invented-secret" })
    yield* run(
      user,
      [
        "profile",
        "add",
        "books",
        "--auth-url",
        "https://auth.example",
        "--client-id",
        "me",
        "--no-verify"
      ]
    )
    const rows = (...words: ReadonlyArray<string>) =>
      Effect.map(
        prints(user, ["__complete", ...words]),
        (text) => text.split("\n").slice(0, -1)
      )
    const completed = (...words: ReadonlyArray<string>) =>
      Effect.map(rows(...words), (rows) => rows.map((row) => row.replace(/\t.+/, "")))
    assert.include(yield* rows(""), "token\tPrint an access token for another program")
    assert.include(
      yield* rows("call", "-"),
      "--fail\tExit with code 7 for a status of 300 or more"
    )
    assert.match((yield* rows("emulator", "--scenario", ""))[0] ?? "", /^[\w/-]+\t.+/)
    for (const [words, offers] of offered) {
      deepStrictEqual(yield* completed(...words), [...offers], words.join(" "))
    }
    assert.includeMembers(yield* completed(""), [
      "token",
      "call",
      "profile",
      "completion",
      "help"
    ])
    assert.include(yield* completed("--profile", "books", ""), "token")
    assert.include(yield* completed("help", "to"), "token")
    const ofCall = yield* completed("call", "/orders", "-")
    assert.includeMembers(ofCall, ["--include", "--profile", "--help"])
    assert.notInclude(ofCall, "--scenario")
  })
})

test.live("40 columns suffice for the steps of check, and 60 for status, which are indented from their second line", function*() {
  const { user } = yield* started
  const narrow = (user: User, line: string, columns: number) =>
    Effect.map(
      onTerminal(withEnv(user, { NO_COLOR: "1" }), [line], { columns }),
      ({ screen }) => screen.trimEnd().split("\r\n")
    )
  for (const secret of [demoSecret, "another-invented-secret"]) {
    const who = withEnv(user, { STORE_API_CLIENT_SECRET: secret })
    const lines = yield* narrow(who, "check", 40)
    const { stdout } = yield* run(who, ["check"])
    assert.isAtMost(
      widest(lines.filter((line) => !/^ +http/.test(line))),
      40,
      lines.join("\n")
    )
    const steps = lines.filter((line) => !/^ {5}\S/.test(line))
    for (const line of steps) assert.match(line, /^(ok {2}|FAIL) \w/)
    assert.isBelow(steps.length, lines.length)
    const words = (text: string) => text.replace(/\d+ ms/g, "").split(/\s+/).filter(Boolean)
    deepStrictEqual(words(lines.join("\n")), words(stdout))
    // A pipe gets each step and each remedy on one line, for grep.
    assert.lengthOf(stdout.split("\n"), steps.length + (secret === demoSecret ? 1 : 2))
  }
  yield* run(user, ["token"], { shows: true })
  assert.match((yield* narrow(user, "status", 60))[1] ?? "", /^token {4}valid for .{1,48}$/)
})

test.live("colours are for a terminal that has them, and not for CI", function*() {
  const user = yield* newUser({})
  const seen = (env: User["env"]) =>
    Effect.map(onTerminal(withEnv(user, env), ["check"]), ({ screen }) => hasColours(screen))
  deepStrictEqual(
    yield* Effect.forEach([{}, { NO_COLOR: "1" }, { TERM: "dumb" }, { CI: "true" }], seen),
    [true, false, false, false]
  )
})
