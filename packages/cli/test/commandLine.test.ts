import { assert, describe, it } from "@effect/vitest"
import { deepStrictEqual } from "@effect/vitest/utils"
import { Emulator } from "@store-api/emulator"
import { Effect } from "effect"
import { newUser, onTerminal, run, userOf } from "./support/cli.js"
import { hasColours } from "./support/screen.js"

/** Lines that are wrong, and what is said of each. */
const refused: ReadonlyArray<readonly [line: string, said: string]> = [
  ["token --Profile books", "There is no flag --Profile, but --profile. See store-api token --help."],
  ["token --Client-Id another", "There is no flag --Client-Id, but --client-id. See store-api token --help."],
  ["token --no-s", "There is no flag --no-s, but --no-store. See store-api token --help."],
  ["token -x", "There is no flag -x. See store-api token --help."],
  ["token --constructor", "There is no flag --constructor. See store-api token --help."],
  ["token --log-level debug --Json", "There is no flag --Json, but --json. See store-api token --help."],
  ["check --json", "There is no flag --json. See store-api check --help."],
  ["call DELETE --dry-run", "There is no flag --dry-run. See store-api call --help."],
  ["call GET --includ /orders", "There is no flag --includ, but --include. See store-api call --help."],
  ["token --client-id", "--client-id needs a value: --client-id ID. See store-api token --help."],
  [
    "call GET /orders --data --include",
    "--data needs a value; one that begins with \"-\" is joined to it: --data=TEXT. See store-api call --help."
  ],
  ["token --json=yes", "--json takes no value. See store-api token --help."],
  ["token --client-id one --client-id two", "--client-id is given twice. See store-api token --help."],
  [
    "status --log-level loud",
    "--log-level must be one of all, trace, debug, info, warning, error, fatal and none. See store-api status --help."
  ],
  ["token something", "store-api token takes nothing but flags. See store-api token --help."],
  ["call GET", "It must be: store-api call METHOD PATH. See store-api call --help."],
  ["call GET /orders /more", "It must be: store-api call METHOD PATH. See store-api call --help."],
  ["check /orders /more", "It must be: store-api check [PATH]. See store-api check --help."],
  [
    "call GET /orders#first",
    "The PATH must be without #: what comes after it is not sent. As a part of the path it is %23."
  ],
  ["check /#", "The PATH must be without #: what comes after it is not sent. As a part of the path it is %23."],
  ["--no-store token", "Flags come after the command: store-api COMMAND, then these. See store-api --help."],
  ["tokens", "There is no such command: there are token, call, check, status and emulator. See store-api --help."]
]

describe("a line that cannot be used", () => {
  it.live.each(refused)("%s: nobody is asked anything", ([line, said]) =>
    Effect.gen(function*() {
      const emulator = yield* Emulator.make()
      const user = yield* userOf(emulator)
      deepStrictEqual(yield* run(user, line.split(" ")), { code: 2, stdout: "", stderr: `store-api: ${said}\n` })
      deepStrictEqual(yield* emulator.requests, [])
    }).pipe(Effect.scoped))

  it.live("control: the same that are right", () =>
    Effect.gen(function*() {
      const emulator = yield* Emulator.make()
      const user = yield* userOf(emulator)
      const right = [
        ["token", "--client-id=demo-client", "--json", "--log-level", "debug"],
        ["check", "/orders"],
        ["call", "POST", "--data=--include", "/orders", "-i"],
        ["call", "DELETE", "/orders", "--header", "one: 1", "-H", "two: 2"]
      ]
      for (const line of right) deepStrictEqual((yield* run(user, line, { shows: true })).code, 0, line.join(" "))
      assert.lengthOf((yield* emulator.requests).filter(({ kind }) => kind === "api"), 3)
    }).pipe(Effect.scoped))
})

describe("help", () => {
  const commands = ["token", "call", "check", "status", "emulator"]

  it.scopedLive("is there for the whole and for each command, without colours in a pipe", () =>
    Effect.gen(function*() {
      const user = yield* newUser({})
      const whole = yield* run(user, ["--help"])
      deepStrictEqual([whole.code, whole.stderr, (yield* run(user, [])).stdout], [0, "", whole.stdout])
      for (const command of commands) assert.include(whole.stdout, `store-api ${command}`)
      for (const command of commands) {
        const { code, stderr, stdout } = yield* run(user, [command, "--help"])
        deepStrictEqual([code, stderr], [0, ""])
        assert.include(stdout, command === "emulator" ? "--scenario" : "--secret-file")
        assert.isFalse(hasColours(stdout))
      }
    }))

  it.scopedLive("completions name the commands", () =>
    Effect.gen(function*() {
      const user = yield* newUser({})
      for (const shell of ["bash", "fish", "zsh"]) {
        const { code, stdout } = yield* run(user, ["--completions", shell])
        deepStrictEqual(code, 0)
        for (const command of commands) assert.include(stdout, command)
      }
    }))

  it.scopedLive("shows each flag as one that may be left out", () =>
    Effect.gen(function*() {
      const user = yield* newUser({})
      for (
        const [command = "", flag = ""] of [["emulator", "--scenario NAME..."], [
          "call",
          "(-H, --header NAME: VALUE)..."
        ]]
      ) {
        const [, usage = ""] = /\n\$ (.*)\n/.exec((yield* run(user, [command, "--help"])).stdout) ?? []
        assert.include(usage, `[${flag}]`)
        deepStrictEqual(usage.replace(/\[.*?\]/g, "").match(/--[\w-]+/g), null, usage)
      }
    }))
})

describe("colours", () => {
  it.scopedLive("are for a terminal, unless NO_COLOR says otherwise", () =>
    Effect.gen(function*() {
      const user = yield* newUser({})
      const plain = { ...user, env: { ...user.env, NO_COLOR: "1" } }
      for (const args of [["token", "--help"], ["check"]]) {
        assert.isTrue(hasColours((yield* onTerminal(user, args)).screen), args.join(" "))
        assert.isFalse(hasColours((yield* onTerminal(plain, args)).screen), args.join(" "))
        assert.isFalse(hasColours((yield* run(user, args)).stdout), args.join(" "))
      }
    }))
})
