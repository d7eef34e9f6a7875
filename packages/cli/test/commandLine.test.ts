import { mkdirSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { assert } from "@effect/vitest"
import { deepStrictEqual } from "@effect/vitest/utils"
import { Scenario } from "@store-api/emulator"
import { test } from "@store-api/testing/test"
import { Effect } from "effect"
import { exitCodes } from "../src/CommandError.js"
import {
  demoSecret,
  expectRefusal,
  expectSuccess,
  hasColours,
  newUser,
  onTerminal,
  profilesOf,
  run,
  started,
  type User,
  withEnv
} from "./support/cli.js"

/** Lines that are wrong, and the message for each. */
const wrongLines: ReadonlyArray<readonly [line: string, message: string]> = [
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
  ["completion tcsh", "The shell must be one of bash, zsh, fish."],
  ["completion constructor", "The shell must be one of bash, zsh, fish."]
]

test.live.each(wrongLines)(
  "a wrong line fails with a message that says what to do, before anything is sent: %s",
  function*([line, message]) {
    const { emulator, user } = yield* started
    yield* expectRefusal(user, line, 2, message)
    deepStrictEqual(yield* emulator.requests, [])
  }
)

test.live("common flags may stand before the command or after it", function*() {
  const { emulator, user } = yield* started
  const nowhere = withEnv(user, { STORE_API_AUTH_URL: "http://127.0.0.1:9" })
  for (
    const line of [`--auth-url ${emulator.url} token`, `token --auth-url=${emulator.url}`]
  ) {
    yield* expectSuccess(nowhere, line)
  }
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

test.live("--help lists the commands", function*() {
  const help = yield* expectSuccess(yield* newUser({}), "--help")
  for (const command of commands) {
    if (!command.includes(" ")) assert.match(help, new RegExp(`^ {2}${command} `, "m"))
  }
})

test.live("--help lists the exit codes", function*() {
  const help = yield* expectSuccess(yield* newUser({}), "--help")
  for (const { code, text } of Object.values(exitCodes)) {
    assert.include(help, `${code}  ${text}\n`)
  }
})

test.live.each([[[]], [["help"]], [["-h"]]])(
  "the arguments %o print the same help as --help",
  function*([args]) {
    const user = yield* newUser({})
    assert.strictEqual(yield* expectSuccess(user, args), yield* expectSuccess(user, "--help"))
  }
)

/** The lines of the help of a command. */
const helpOf = (command: string) =>
  Effect.map(
    Effect.flatMap(
      newUser({}),
      (user) => expectSuccess(user, `${command} --help`.trimStart())
    ),
    (text) => text.split("\n")
  )
const isExample = (line: string) => line.startsWith("  $ ")

test.live.each(["", ...commands])(
  "the help of a command fits into 80 columns: %s",
  function*(command) {
    assert.isAtMost(widest(yield* helpOf(command)), 80)
  }
)

test.live.each(commands)(
  "the help of a command fits into a terminal of 60 columns: %s",
  function*(command) {
    const args = [...command.split(" "), "--help"]
    const { screen } = yield* onTerminal(yield* newUser({}), args, { columns: 60 })
    const lines = screen.split("\r\n").filter((line) => !isExample(line))
    assert.isAtMost(widest(lines), 60, screen)
  }
)

test.live.each(commands)(
  "the help of a command begins with its usage line: %s",
  function*(command) {
    const [usage] = yield* helpOf(command)
    assert.isTrue(usage?.startsWith(`Usage: store-api ${command} `))
  }
)

test.live.each(commands)(
  "the help of a command has two examples that a shell can run: %s",
  function*(command) {
    const examples = (yield* helpOf(command)).filter(isExample)
    assert.lengthOf(examples.filter((line) => line.startsWith("  $ store-api ")), 2)
    // zsh and fish would look for files.
    assert.notMatch(examples.join(" ").replace(/'[^']*'/g, ""), /[?*[\]^#()]/)
  }
)

test.live.each(commands)(
  "the help of a command has one line for each flag: %s",
  function*(command) {
    const help = (yield* helpOf(command)).join("\n")
    const [, options = ""] = /\nOptions:\n(.*?)\n\n/s.exec(help) ?? []
    for (const line of options.split("\n")) {
      assert.match(line, /^ {2}(-\w, )?--[\w-]+( <\w+>)? {2,}\S/)
    }
  }
)

test.live.each(commands)(
  "help COMMAND prints the same help as COMMAND --help: %s",
  function*(command) {
    const user = yield* newUser({})
    const words = command.split(" ")
    const help = yield* expectSuccess(user, [...words, "--help"])
    const again = /^(profile|emulator)$/.test(command)
      ? [command, "help"]
      : ["help", ...words, "/more"]
    for (const args of [["help", ...words], again]) {
      assert.strictEqual(yield* expectSuccess(user, args), help)
    }
  }
)

test.live("--version prints the version", function*() {
  assert.match(yield* expectSuccess(yield* newUser({}), "--version"), /^\d+\.\d+\.\d+\n$/)
})

/** `shells.slow.test.ts` drives the scripts in each shell. */
/** The rows for the last of these words, for a user with the profile `books`. */
const complete = (words: ReadonlyArray<string>) =>
  Effect.gen(function*() {
    const user = yield* newUser({})
    mkdirSync(profilesOf(user), { recursive: true })
    writeFileSync(join(profilesOf(user), "books.env"), "")
    return (yield* expectSuccess(user, ["__complete", ...words])).split("\n").slice(0, -1)
  })
const offer = (words: ReadonlyArray<string>) =>
  Effect.map(complete(words), (rows) => rows.map((row) => row.replace(/\t.+/, "")))

test.live.each<[what: string, words: ReadonlyArray<string>, ...ReadonlyArray<string>]>([
  ["a command", [""], "token\tPrint an access token for another program"],
  ["a flag", ["call", "-"], "--fail\tExit with code 7 for a status of 300 or more"]
])("completion offers %s with its meaning", function*([, words, row]) {
  assert.include(yield* complete(words), row)
})

test.live("completion offers a scenario with its outcome", function*() {
  assert.match((yield* complete(["emulator", "--scenario", ""]))[0] ?? "", /^[\w/-]+\t.+/)
})

const shells = ["bash", "zsh", "fish"]
const actions = ["add", "show", "list", "remove"]

test.live.each<[what: string, words: ReadonlyArray<string>, offers: ReadonlyArray<string>]>([
  ["the commands of a group", ["profile", ""], actions],
  ["the commands of a group after help", ["help", "profile", ""], actions],
  ["profiles after --profile", ["token", "--profile", ""], ["books"]],
  ["profiles after = as a word", ["token", "--profile", "=", "b"], ["books"]],
  ["profiles after --profile=", ["token", "--profile=b"], ["--profile=books"]],
  ["profiles to remove", ["profile", "remove", ""], ["books"]],
  ["scenarios after --scenario", ["emulator", "--scenario", "token/4"], Scenario.names],
  ["scenarios after fail", ["emulator", "fail", "token/4"], Scenario.names],
  [
    "the commands that steer an emulator",
    ["emulator", ""],
    ["fail", "clear", "revoke", "requests", "tokens"]
  ],
  ["formats", ["token", "--format", ""], ["token", "header", "json"]],
  ["shells", ["completion", ""], shells],
  ["no path of a flag, which the shell completes", ["token", "--secret-file", ""], []],
  ["no path of the API", ["call", ""], []]
])("completion offers %s", function*([, words, offers]) {
  deepStrictEqual(yield* offer(words), [...offers])
})

test.live.each<[words: ReadonlyArray<string>, offers: ReadonlyArray<string>]>([
  [[""], ["token", "call", "profile", "completion", "help"]],
  [["--profile", "books", ""], ["token"]],
  [["help", "to"], ["token"]],
  [["call", "/orders", "-"], ["--include", "--profile", "--help"]]
])("completion after %o offers %o among others", function*([words, offers]) {
  assert.includeMembers(yield* offer(words), [...offers])
})

test.live("completion offers no flag of another command", function*() {
  assert.notInclude(yield* offer(["call", "/orders", "-"]), "--scenario")
})

/** The lines of a command on a terminal of so many columns. */
const linesIn = (columns: number, user: User, line: string) =>
  Effect.map(
    onTerminal(withEnv(user, { NO_COLOR: "1" }), [line], { columns }),
    ({ screen }) => screen.trimEnd().split("\r\n")
  )

test.live.each([["succeeds", demoSecret], ["fails", "another-invented-secret"]])(
  "the steps of a check that %s fit into 40 columns, with later lines indented",
  function*([, secret]) {
    const user = withEnv((yield* started).user, { STORE_API_CLIENT_SECRET: secret })
    const lines = yield* linesIn(40, user, "check")
    const text = lines.join("\n")
    assert.isAtMost(widest(lines.filter((line) => !/^ +http/.test(line))), 40, text)
    const steps = lines.filter((line) => !/^ {5}\S/.test(line))
    for (const line of steps) assert.match(line, /^(ok {2}|FAIL) \w/)
    assert.isBelow(steps.length, lines.length)
    const { stdout } = yield* run(user, ["check"])
    const words = (text: string) => text.replace(/\d+ ms/g, "").split(/\s+/).filter(Boolean)
    deepStrictEqual(words(text), words(stdout))
  }
)

test.live("the token in a status fits into 60 columns", function*() {
  const { user } = yield* started
  yield* run(user, ["token"], { shows: true })
  assert.match((yield* linesIn(60, user, "status"))[1] ?? "", /^token {4}valid for .{1,48}$/)
})

test.live.each<[what: string, env: User["env"], isColoured: boolean]>([
  ["has colours", {}, true],
  ["has no colours with NO_COLOR", { NO_COLOR: "1" }, false],
  ["has no colours if it cannot show them", { TERM: "dumb" }, false],
  ["has no colours in CI", { CI: "true" }, false]
])("a terminal %s", function*([, env, isColoured]) {
  const { screen } = yield* onTerminal(yield* newUser(env), ["check"])
  assert.strictEqual(hasColours(screen), isColoured)
})
