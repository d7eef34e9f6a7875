import { assert, describe, it } from "@effect/vitest"
import { deepStrictEqual } from "@effect/vitest/utils"
import { Scenario } from "@store-api/emulator"
import { Effect } from "effect"
import { demoSecret, newUser, onTerminal, run, start, variablesIn, withEnv } from "./support/cli.js"
import { hasColours, linesOf } from "./support/screen.js"

const real = "an-invented-secret-of-a-real-service"

/** Starts an emulator where the variables of a real service are set; `variables` are those that it prints. */
const emulatorWith = (args: ReadonlyArray<string>) =>
  Effect.gen(function*() {
    const user = yield* newUser(
      { STORE_API_CLIENT_ID: "real-client", STORE_API_CLIENT_SECRET: real },
      Effect.succeed([real])
    )
    const running = yield* start(user, ["emulator", ...args], { shows: true })
    if (!(yield* running.shows(/\n\n.*\n\n/s))) return yield* Effect.dieMessage(running.stderr.text)
    assert.notInclude(running.stdout.text, real)
    return { ...running, variables: variablesIn(running.stdout.text) }
  })

const shows = { shows: true }

describe("store-api emulator", () => {
  it.scopedLive("prints variables that work unchanged, and the requests", () =>
    Effect.gen(function*() {
      const running = yield* emulatorWith(["--token-life", "5m"])
      const user = yield* newUser(running.variables, Effect.succeed([demoSecret]))
      const json = yield* run(user, ["token", "--json"], shows)
      assert.isAtMost((JSON.parse(json.stdout) as { readonly expires_in: number }).expires_in, 300)
      deepStrictEqual((yield* run(user, ["call", "GET", "/orders?canary", "--fail"])).code, 0)
      assert.isTrue(yield* running.shows("\nPOST /v1/oauth/accesstoken 200\nGET /orders?… 200\n"))
    }))

  it.scopedLive("prints a request when it is over, whatever began before and is not", () =>
    Effect.gen(function*() {
      const running = yield* emulatorWith(["--scenario", "token/silence"])
      const { STORE_API_AUTH_URL: url = "" } = running.variables
      const open = new AbortController()
      const asked = fetch(`${url}/v1/oauth/accesstoken`, { method: "POST", body: "", signal: open.signal })
      asked.catch(() => undefined)
      yield* Effect.promise(() => fetch(`${url}/orders`))
      assert.isTrue(yield* running.shows("GET /orders 401"))
      assert.notInclude(running.stdout.text, "accesstoken")
      open.abort()
    }))

  it.scopedLive("plays scenarios by name, in their order", () =>
    Effect.gen(function*() {
      const { variables } = yield* emulatorWith(["--scenario", "token/401-rfc", "--scenario", "api/403"])
      const user = yield* newUser(variables)
      deepStrictEqual((yield* run(user, ["token"])).code, 4)
      const call = yield* run(user, ["call", "GET", "/orders", "--fail"])
      deepStrictEqual([call.code, call.stderr], [7, "store-api: The API answered 403 Forbidden.\n"])
    }))

  it.scopedLive("accepts only its invented client, whatever variables of a service are set", () =>
    Effect.gen(function*() {
      const { variables } = yield* emulatorWith(["--token-life", "1h"])
      const client = [variables["STORE_API_CLIENT_ID"], variables["STORE_API_CLIENT_SECRET"]]
      deepStrictEqual(client, ["demo-client", demoSecret])
      const user = yield* newUser(variables)
      deepStrictEqual((yield* run(user, ["token"], shows)).code, 0)
      deepStrictEqual((yield* run(withEnv(user, { STORE_API_CLIENT_SECRET: real }), ["token"])).code, 4)
    }))

  it.scopedLive("takes the secret from there for a client of one's own, and does not print it", () =>
    Effect.gen(function*() {
      const { variables } = yield* emulatorWith(["--client-id", "real-client"])
      deepStrictEqual([variables["STORE_API_CLIENT_ID"], variables["STORE_API_CLIENT_SECRET"]], [
        "real-client",
        undefined
      ])
      const user = yield* newUser({ ...variables, STORE_API_CLIENT_SECRET: real })
      deepStrictEqual((yield* run(user, ["token"], shows)).code, 0)
    }))

  it.scopedLive("lists the scenarios line by line, without colours", () =>
    Effect.gen(function*() {
      const { code, screen } = yield* onTerminal(yield* newUser({}), ["emulator", "--list"])
      deepStrictEqual([code, hasColours(screen)], [0, false])
      deepStrictEqual(linesOf(screen).map((line) => line.split(/ +/)[0]), [...Scenario.names])
    }))

  it.scopedLive("refuses unknown values, in red on a terminal unless NO_COLOR is set", () =>
    Effect.gen(function*() {
      const user = yield* newUser({})
      const faults: ReadonlyArray<readonly [string, ReadonlyArray<string>]> = [
        ["There is no scenario token/nothing: see store-api emulator --list.", ["--scenario", "token/nothing"]],
        ["This scenario needs --tls.", ["--scenario", "token/tls-expired"]],
        ["--port must be a whole number.", ["--port", "http"]],
        ["--token-life must be a time such as 500ms, 2s, 5m or 1h, of at most 60m.", ["--token-life", "long"]]
      ]
      for (const [sentence, args] of faults) {
        const line = ["emulator", ...args]
        deepStrictEqual(yield* run(user, line), { code: 2, stdout: "", stderr: `store-api: ${sentence}\n` })
        const { code, screen } = yield* onTerminal(user, line)
        deepStrictEqual([code, screen], [2, `store-api: \u001b[31m${sentence}\u001b[0m\r\n`])
        const plain = yield* onTerminal(withEnv(user, { NO_COLOR: "1" }), line)
        deepStrictEqual([plain.code, plain.screen], [2, `store-api: ${sentence}\r\n`])
      }
    }))
})
