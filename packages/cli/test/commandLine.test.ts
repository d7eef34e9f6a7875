import { assert, describe, it } from "@effect/vitest"
import { deepStrictEqual } from "@effect/vitest/utils"
import { Scenario } from "@store-api/emulator"
import { Effect } from "effect"
import { test } from "../../core/test/support/test.js"
import { exitCodes } from "../src/Fault.js"
import { demoSecret, newUser, onTerminal, prints, refuses, run, started, type User, withEnv } from "./support/cli.js"
import { hasColours } from "./support/screen.js"

/** Lines that are wrong, and the message for each. */
const refused: ReadonlyArray<readonly [line: string, message: string]> = [
  ["token --Profile books", "Unknown option '--Profile'. Did you mean --profile? See store-api token --help."],
  ["token --Client-Id=canary", "Unknown option '--Client-Id'. See store-api token --help."],
  ["token --no-cach", "Unknown option '--no-cach'. Did you mean --no-cache? See store-api token --help."],
  ["token -x", "Unknown option '-x'. See store-api token --help."],
  ["token --constructor", "Unknown option '--constructor'. See store-api token --help."],
  ["call /orders -X DELETE --dry-run", "Unknown option '--dry-run'. See store-api call --help."],
  ["call --includ /orders", "Unknown option '--includ'. Did you mean --include? See store-api call --help."],
  ["token --client-id", "Option '--client-id <ID>' argument missing. See store-api token --help."],
  ["token --client-id --no-cache", "--client-id needs a value: --client-id ID. See store-api token --help."],
  ["token --client-id one --client-id two", "--client-id is given twice. See store-api token --help."],
  ["--client-id one token --client-id two", "--client-id is given twice. See store-api token --help."],
  ["call -d --include /orders", "--data needs a value: --data DATA. See store-api call --help."],
  ["token --format xml", "--format must be one of token, header, json. See store-api token --help."],
  ["token something", "Too many arguments for 'token'. Expected 0 arguments but got 1. See store-api token --help."],
  ["call", "Missing required argument 'path'. See store-api call --help."],
  ["call /orders /more", "Too many arguments for 'call'. Expected 1 argument but got 2. See store-api call --help."],
  ["call /orders --timeout soon", "--timeout must be a time such as 500ms, 30s or 2m."],
  [
    "call /orders#first",
    "The path must not have a #: a fragment is not sent. As a part of the path, write %23."
  ],
  ["check /#", "The path must not have a #: a fragment is not sent. As a part of the path, write %23."],
  ["--profile books emulator", "--profile has no meaning for emulator. See store-api emulator --help."],
  ["--no-cache token", "Unknown option '--no-cache'. See store-api --help."],
  ["tokens", "Unknown command 'tokens'. Did you mean token? See store-api --help."],
  ["profile ad", "Unknown command 'ad'. Did you mean add? See store-api profile --help."],
  ["help tokn", "Unknown command 'tokn'. Did you mean token? See store-api --help."],
  ["help profile ad", "Unknown command 'ad'. Did you mean add? See store-api profile --help."],
  ["help constructor", "Unknown command 'constructor'. See store-api --help."],
  ["completion tcsh", "The shell must be one of bash, zsh, fish."]
]

describe("a line that cannot be used", () => {
  it.live.each(refused)(
    "%s: fails with one line that says what to do, and sends nothing",
    ([line, message]) =>
      Effect.gen(function*() {
        const { emulator, user } = yield* started
        yield* refuses(user, line, 2, message)
        deepStrictEqual(yield* emulator.requests, [])
      }).pipe(Effect.scoped)
  )

  it.live("control: similar lines work, and common flags may stand before the command", () =>
    Effect.gen(function*() {
      const { emulator, user } = yield* started
      const elsewhere = withEnv(user, { STORE_API_AUTH_URL: "http://127.0.0.1:9" })
      const right: ReadonlyArray<readonly [User, ReadonlyArray<string>]> = [
        [user, ["token", "--client-id=demo-client", "--format", "json", "--verbose"]],
        [user, ["check", "/orders"]],
        [user, ["call", "--data=--include", "/orders", "-i"]],
        [user, ["call", "-X", "DELETE", "/orders", "--header", "one: 1", "-H", "two: 2"]],
        [elsewhere, ["--auth-url", emulator.url, "token"]],
        [elsewhere, ["token", `--auth-url=${emulator.url}`]]
      ]
      for (const [who, line] of right) {
        deepStrictEqual((yield* run(who, line, { shows: true })).code, 0, line.join(" "))
      }
      assert.lengthOf((yield* emulator.requests).filter(({ kind }) => kind === "api"), 3)
    }).pipe(Effect.scoped))
})

const commands = [
  ...["token", "call", "check", "status", "logout", "profile", "profile add", "profile list", "profile remove"],
  ...["emulator", "completion"]
]

describe("help", () => {
  test.live("lists the commands and the exit codes, in 80 columns", function*() {
    const user = yield* newUser({})
    const whole = yield* prints(user, "--help")
    for (const args of [[], ["help"], ["-h"]]) assert.strictEqual(yield* prints(user, args), whole)
    for (const command of commands) {
      if (!command.includes(" ")) assert.match(whole, new RegExp(`^ {2}${command} `, "m"))
    }
    for (const { code, text } of Object.values(exitCodes)) assert.include(whole, `${code}  ${text}\n`)
    assert.isAtMost(Math.max(...whole.split("\n").map((line) => line.length)), 80)
  })

  it.scopedLive.each(commands)(
    "of %s has a usage line, one line per flag in 80 columns, and two examples",
    (command) =>
      Effect.gen(function*() {
        const user = yield* newUser({})
        const words = command.split(" ")
        const help = yield* prints(user, [...words, "--help"])
        const lines = help.split("\n")
        assert.isTrue(lines[0]?.startsWith(`Usage: store-api ${command} `))
        assert.lengthOf(lines.filter((line) => line.startsWith("  $ store-api ")), 2)
        assert.isAtMost(Math.max(...lines.map((line) => line.length)), 80)
        const [, options = ""] = /\nOptions:\n(.*?)\n\n/s.exec(help) ?? []
        for (const line of options.split("\n")) assert.match(line, /^ {2}(-\w, )?--[\w-]+( <\w+>)? {2,}\S/)
        assert.isFalse(hasColours(help))
        assert.strictEqual(yield* prints(user, ["help", ...words]), help)
        if (command !== "profile") assert.strictEqual(yield* prints(user, ["help", ...words, "/more"]), help)
      })
  )

  test.live("fits into 60 columns, but for examples", function*() {
    const user = yield* newUser({})
    for (const command of ["", ...commands]) {
      const words = command.split(" ").filter(Boolean)
      const { screen } = yield* onTerminal(user, [...words, "--help"], { columns: 60 })
      const lines = screen.split("\r\n").filter((line) => !line.startsWith("  $ "))
      assert.isAtMost(Math.max(...lines.map((line) => line.length)), 60, screen)
      assert.include(screen, "Usage: store-api")
    }
  })

  test.live("--version prints the version", function*() {
    assert.match(yield* prints(yield* newUser({}), "--version"), /^\d+\.\d+\.\d+\n$/)
  })
})

/** `shells.slow.test.ts` drives the scripts in each shell. */
describe("completion", () => {
  const completed = (...words: ReadonlyArray<string>) =>
    Effect.gen(function*() {
      const user = yield* newUser({ STORE_API_CLIENT_SECRET: "an-invented-secret" })
      yield* run(user, "profile add books --auth-url https://auth.example --client-id me".split(" "))
      return (yield* prints(user, ["__complete", ...words])).split("\n").slice(0, -1)
    })

  test.live("offers commands, their flags, profiles, scenarios and formats", function*() {
    assert.includeMembers(yield* completed(""), ["token", "call", "profile", "completion", "help"])
    deepStrictEqual(yield* completed("profile", ""), ["add", "list", "remove"])
    assert.includeMembers(yield* completed("--profile", "books", ""), ["token"])
    const ofCall = yield* completed("call", "/orders", "-")
    assert.includeMembers(ofCall, ["--include", "--profile", "--help"])
    assert.notInclude(ofCall, "--scenario")
    deepStrictEqual(yield* completed("token", "--profile", ""), ["books"])
    deepStrictEqual(yield* completed("token", "--profile", "=", "b"), ["books"])
    deepStrictEqual(yield* completed("token", "--profile=b"), ["--profile=books"])
    deepStrictEqual(yield* completed("profile", "remove", ""), ["books"])
    deepStrictEqual(yield* completed("emulator", "--scenario", "token/4"), [...Scenario.names])
    deepStrictEqual(yield* completed("token", "--format", ""), ["token", "header", "json"])
    deepStrictEqual(yield* completed("completion", ""), ["bash", "zsh", "fish"])
    deepStrictEqual((yield* completed("help", "to")).includes("token"), true)
    deepStrictEqual(yield* completed("help", "profile", ""), ["add", "list", "remove"])
  })

  test.live("leaves paths to the shell", function*() {
    deepStrictEqual(yield* completed("token", "--secret-file", ""), [])
    deepStrictEqual(yield* completed("call", ""), [])
  })
})

describe("60 columns", () => {
  /** The lines on a terminal of 60 columns, and the output to a pipe. */
  const outputs = (user: User, args: ReadonlyArray<string>) =>
    Effect.gen(function*() {
      const { screen } = yield* onTerminal(withEnv(user, { NO_COLOR: "1" }), args, { columns: 60 })
      return { lines: screen.trimEnd().split("\r\n"), stdout: (yield* run(user, args)).stdout }
    })

  test.live("suffice for the steps of check, which are indented from their second line", function*() {
    const { user } = yield* started
    for (const secret of [demoSecret, "another-invented-secret"]) {
      const { lines, stdout } = yield* outputs(withEnv(user, { STORE_API_CLIENT_SECRET: secret }), ["check"])
      assert.isAtMost(Math.max(...lines.map((line) => line.length)), 60, lines.join("\n"))
      const steps = lines.filter((line) => !/^ {5}\S/.test(line))
      for (const line of steps) assert.match(line, /^(ok {2}|FAIL) \w/)
      assert.isBelow(steps.length, lines.length)
      const words = (text: string) => text.replace(/\d+ ms/g, "").split(/\s+/).filter(Boolean)
      deepStrictEqual(words(lines.join("\n")), words(stdout))
      // A pipe gets each step and each remedy on one line, for grep.
      assert.lengthOf(stdout.split("\n"), steps.length + (secret === demoSecret ? 1 : 2))
    }
  })

  test.live("suffice for the time of status", function*() {
    const { user } = yield* started
    yield* run(user, ["token"], { shows: true })
    const { lines } = yield* outputs(user, ["status"])
    assert.match(lines[1] ?? "", /^token {4}valid for .{1,50}$/)
    assert.isAtMost(lines[1]?.length ?? 0, 60)
  })
})

describe("colours", () => {
  test.live("are for a terminal that has them, and not for CI", function*() {
    const user = yield* newUser({})
    const plain = [{ NO_COLOR: "1" }, { TERM: "dumb" }, { CI: "true" }]
    for (const args of [["token", "--profile", "none"], ["check"], ["emulator", "--port", "http"]]) {
      assert.isTrue(hasColours((yield* onTerminal(user, args)).screen), args.join(" "))
      for (const env of plain) {
        assert.isFalse(hasColours((yield* onTerminal(withEnv(user, env), args)).screen), JSON.stringify(env))
      }
      const { stderr, stdout } = yield* run(user, args)
      assert.isFalse(hasColours(stdout + stderr), args.join(" "))
    }
  })
})
