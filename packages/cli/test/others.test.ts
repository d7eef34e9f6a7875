import { stripVTControlCharacters } from "node:util"
import { assert, beforeAll, describe, it } from "@effect/vitest"
import { deepStrictEqual } from "@effect/vitest/utils"
import { Emulator, Scenario } from "@store-api/emulator"
import { Effect } from "effect"
import {
  build,
  demoSecret,
  hasColours,
  hasTerminals,
  newUser,
  onTerminal,
  processTimeout,
  run,
  start,
  userOf
} from "./support/cli.js"
import { leaksIn } from "./support/leaks.js"
import { linesOf, startOnTerminal } from "./support/terminal.js"

beforeAll(build, 120_000)

describe("store-api status", { timeout: processTimeout }, () => {
  it.scopedLive("tells what is stored, and asks nobody", () =>
    Effect.gen(function*() {
      const emulator = yield* Emulator.make()
      const user = yield* userOf(emulator)
      const none = yield* run(user, ["status"])
      deepStrictEqual(none.code, 0)
      assert.match(none.stdout, /^folder {3}.*tokens\ntoken {4}none is stored for this service, client and secret\n$/)
      deepStrictEqual(yield* emulator.requests, [])
      yield* run(user, ["token"], { shows: true })
      const one = yield* run(user, ["status"])
      assert.match(one.stdout, /\ntoken {4}good for another \d+ min \d+ s, until \d{4}-\d\d-\d\dT.*Z\n$/)
      const json = JSON.parse((yield* run(user, ["status", "--json"])).stdout) as Record<string, unknown>
      deepStrictEqual(Object.keys(json), ["folder", "stored", "acquired_at", "expires_at", "expires_in"])
      deepStrictEqual(json["stored"], true)
      const another = yield* run(user, ["status", "--json", "--client-id", "another"])
      deepStrictEqual((JSON.parse(another.stdout) as Record<string, unknown>)["stored"], false)
      assert.lengthOf(yield* emulator.requests, 1)
    }))
})

const variables = (text: string) =>
  Object.fromEntries([...text.matchAll(/^export (\w+)='(.*)'$/gm)].map(([, name = "", value = ""]) => [name, value]))

/** Waits until the emulator said how it is reached. */
const emulatorWith = (args: ReadonlyArray<string>, env: Readonly<Record<string, string>> = {}) =>
  Effect.gen(function*() {
    const running = yield* start(yield* newUser(env), ["emulator", ...args], { shows: true })
    while (
      !running.stdout().includes("\n\n\n") && !/STORE_API_CLIENT_SECRET.*\n(export NODE.*\n)?\n/.test(running.stdout())
    ) {
      if (running.child.exitCode !== null) return yield* Effect.dieMessage(running.stderr())
      yield* Effect.sleep("20 millis")
    }
    return running
  })

describe("store-api emulator", { timeout: processTimeout }, () => {
  it.scopedLive("prints variables that work as they are, and the requests; SIGINT ends it", () =>
    Effect.gen(function*() {
      const running = yield* emulatorWith(["--token-life", "5m"])
      const user = yield* newUser(variables(running.stdout()), Effect.succeed([demoSecret]))
      const json = yield* run(user, ["token", "--json"], { shows: true })
      assert.isAtMost((JSON.parse(json.stdout) as { readonly expires_in: number }).expires_in, 300)
      deepStrictEqual((yield* run(user, ["call", "GET", "/orders?canary", "--fail"])).code, 0)
      while (!running.stdout().includes("/orders")) yield* Effect.sleep("20 millis")
      assert.include(running.stdout(), "\nPOST /v1/oauth/accesstoken 200\nGET /orders?… 200\n")
      running.child.kill("SIGINT")
      const { code, stderr } = yield* running.end
      deepStrictEqual([code, stderr], [130, ""])
    }))

  it.scopedLive("prints a request when it is over, whatever began before and is not", () =>
    Effect.gen(function*() {
      const running = yield* emulatorWith(["--scenario", "token/silence"])
      const { STORE_API_AUTH_URL: url = "" } = variables(running.stdout())
      const open = new AbortController()
      const asked = fetch(`${url}/v1/oauth/accesstoken`, { method: "POST", body: "", signal: open.signal })
      asked.catch(() => undefined)
      yield* Effect.promise(() => fetch(`${url}/orders`))
      while (!running.stdout().includes("GET /orders 401")) yield* Effect.sleep("20 millis")
      assert.notInclude(running.stdout(), "accesstoken")
      open.abort()
      running.child.kill("SIGINT")
      deepStrictEqual((yield* running.end).code, 130)
    }))

  it.scopedLive("plays scenarios by name, in their order", () =>
    Effect.gen(function*() {
      const running = yield* emulatorWith(["--scenario", "token/401-rfc", "--scenario", "api/403"])
      const user = yield* newUser(variables(running.stdout()))
      deepStrictEqual((yield* run(user, ["token"])).code, 4)
      const call = yield* run(user, ["call", "GET", "/orders", "--fail"])
      deepStrictEqual([call.code, call.stderr], [7, "store-api: The API answered 403 Forbidden.\n"])
    }))

  it.scopedLive("speaks TLS; its certificate is trusted by the variable that it prints", () =>
    Effect.gen(function*() {
      const running = yield* emulatorWith(["--tls"])
      const user = yield* newUser(variables(running.stdout()))
      assert.match(user.env["STORE_API_AUTH_URL"] ?? "", /^https:/)
      deepStrictEqual((yield* run(user, ["token"], { shows: true })).code, 0)
      const { NODE_EXTRA_CA_CERTS: _, ...without } = user.env
      deepStrictEqual((yield* run({ ...user, env: without }, ["token", "--no-store"])).code, 4)
    }))

  it.scopedLive("knows a client of one's own, whose secret it does not print", () =>
    Effect.gen(function*() {
      const secret = "my-invented-secret"
      const running = yield* emulatorWith(["--client-id", "mine"], { STORE_API_CLIENT_SECRET: secret })
      assert.notInclude(running.stdout(), secret)
      const user = yield* newUser({ ...variables(running.stdout()), STORE_API_CLIENT_SECRET: secret })
      deepStrictEqual((yield* run(user, ["token"], { shows: true })).code, 0)
    }))

  it.scopedLive("lists the scenarios, and refuses what it does not know", () =>
    Effect.gen(function*() {
      const user = yield* newUser({})
      const names = (yield* run(user, ["emulator", "--list"])).stdout.trimEnd().split("\n").map((line) =>
        line.split(/ +/)[0]
      )
      deepStrictEqual(names, [...Scenario.names])
      const faults: ReadonlyArray<readonly [string, ReadonlyArray<string>]> = [
        ["There is no scenario token/nothing", ["--scenario", "token/nothing"]],
        ["--tls", ["--scenario", "token/tls-expired"]],
        ["--port", ["--port", "http"]],
        ["--token-life", ["--token-life", "long"]]
      ]
      for (const [named, args] of faults) {
        const { code, stderr } = yield* run(user, ["emulator", ...args])
        deepStrictEqual(code, 2)
        assert.include(stderr, named)
      }
    }))
})

describe.skipIf(!hasTerminals)("store-api emulator on a terminal", { timeout: processTimeout }, () => {
  it.scopedLive("shows how it is reached, and the requests; Ctrl+C ends it", () =>
    Effect.gen(function*() {
      const owner = yield* newUser({})
      const { end, screen, shows, type } = yield* startOnTerminal(owner, ["emulator"], { shows: true })
      assert.isTrue(yield* shows(/STORE_API_CLIENT_SECRET='.*'\r\n\r\n/))
      const env = variables(stripVTControlCharacters(screen()).replaceAll("\r", ""))
      const { stdout: token } = yield* run(yield* newUser(env), ["token"], { shows: true })
      const user = yield* newUser(env, Effect.succeed([demoSecret, token.trim()]))
      yield* run(user, ["token", "--no-store"], { shows: true })
      deepStrictEqual((yield* run(user, ["call", "GET", "/orders?canary", "--no-store", "--fail"])).code, 0)
      assert.isTrue(yield* shows("GET /orders"))
      yield* type("\u0003")
      const ended = yield* end
      assert.strictEqual(ended.code, 130)
      assert.isFalse(hasColours(ended.screen))
      const url = env["STORE_API_AUTH_URL"] ?? ""
      deepStrictEqual(linesOf(ended.screen), [
        `The emulator listens on ${url}; stop it with Ctrl+C. For the shell of your application:`,
        "",
        `export STORE_API_AUTH_URL='${url}'`,
        `export STORE_API_URL='${url}'`,
        "export STORE_API_CLIENT_ID='demo-client'",
        `export STORE_API_CLIENT_SECRET='${demoSecret}'`,
        "",
        ...Array.from({ length: 3 }, () => "POST /v1/oauth/accesstoken 200"),
        "GET /orders?… 200",
        "^C"
      ])
      // The secret of the demo is to be copied from there; the tokens that it gives out are nobody's but the caller's.
      assert.isNotEmpty(token.trim())
      deepStrictEqual(leaksIn(ended.screen, [token.trim(), demoSecret]), [demoSecret])
    }))

  it.scopedLive("lists the scenarios line by line, and says in red what it does not know", () =>
    Effect.gen(function*() {
      const user = yield* newUser({})
      const listed = yield* onTerminal(user, ["emulator", "--list"])
      deepStrictEqual([listed.code, hasColours(listed.screen)], [0, false])
      deepStrictEqual(linesOf(listed.screen).map((line) => line.split(/ +/)[0]), [...Scenario.names])
      const sentence = "There is no scenario token/nothing: see store-api emulator --list."
      const unknown = yield* onTerminal(user, ["emulator", "--scenario", "token/nothing"])
      deepStrictEqual([unknown.code, unknown.screen], [2, `store-api: \u001b[31m${sentence}\u001b[0m\r\n`])
      const plain = { ...user, env: { ...user.env, NO_COLOR: "1" } }
      const inNoColour = yield* onTerminal(plain, ["emulator", "--scenario", "token/nothing"])
      deepStrictEqual([inNoColour.code, inNoColour.screen], [2, `store-api: ${sentence}\r\n`])
    }))
})

describe("help", { timeout: processTimeout }, () => {
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

  it.scopedLive("what is not known ends with 2, and says what it was", () =>
    Effect.gen(function*() {
      const user = yield* newUser({})
      for (
        const [args, named] of [
          [["tokn"], "token"],
          [["token", "--heder"], "--heder"],
          [["token", "extra"], "flags"],
          [["call", "GET"], "PATH"]
        ] as const
      ) {
        const { code, stderr, stdout } = yield* run(user, args)
        deepStrictEqual([code, stdout], [2, ""])
        assert.include(stderr, named)
        assert.isFalse(hasColours(stderr))
      }
    }))
})

describe.skipIf(!hasTerminals)("colours", { timeout: processTimeout }, () => {
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
