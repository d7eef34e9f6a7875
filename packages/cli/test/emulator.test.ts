import { join } from "node:path"
import { assert, describe, it } from "@effect/vitest"
import { deepStrictEqual } from "@effect/vitest/utils"
import { Scenario } from "@store-api/emulator"
import { Effect } from "effect"
import { test } from "../../core/test/support/test.js"
import { demoSecret, newUser, onTerminal, prints, refuses, run, start, variablesIn } from "./support/cli.js"
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

describe("store-api emulator", () => {
  test.live("prints variables that work unchanged, and the requests", function*() {
    const running = yield* emulatorWith(["--token-life", "5m"])
    const user = yield* newUser(running.variables, Effect.succeed([demoSecret]))
    const json = yield* prints(user, "token --format json")
    assert.isAtMost((JSON.parse(json) as { readonly expires_in: number }).expires_in, 300)
    yield* prints(user, "call /orders?canary --fail")
    assert.isTrue(
      yield* running.shows(/\n[\d:]{8} POST \/v1\/oauth\/accesstoken 200\n[\d:]{8} GET \/orders\?… 200\n/)
    )
  })

  test.live("accepts the client id of the user with its secret, and plays the scenarios", function*() {
    const { variables } = yield* emulatorWith([
      ...["--client-id", "real-client", "--scenario", "token/401-rfc", "--scenario", "api/403"]
    ])
    deepStrictEqual([variables["STORE_API_CLIENT_ID"], variables["STORE_API_CLIENT_SECRET"]], [
      "real-client",
      undefined
    ])
    const user = yield* newUser({ ...variables, STORE_API_CLIENT_SECRET: real })
    yield* refuses(user, "token", 4, /401/)
    yield* prints(user, "token --force-refresh")
    const call = yield* run(user, ["call", "/orders", "--fail"])
    deepStrictEqual([call.code, call.stderr], [7, "store-api: The API responded with 403 Forbidden.\n"])
  })

  it.scopedLive.each(["--dotenv", "--env-file"])(
    "%s writes a file that other commands read",
    (flag) =>
      Effect.gen(function*() {
        const folder = yield* newUser({})
        const file = join(folder.cwd, "emulator.env")
        yield* emulatorWith([flag, file])
        yield* prints(folder, `token --dotenv ${file}`)
      })
  )

  test.live("is lenient on request", function*() {
    const { variables } = yield* emulatorWith(["--lenient"])
    const reordered = new URLSearchParams({ client_id: "demo-client", grant_type: "client_credentials" })
    const response = yield* Effect.promise(() =>
      fetch(`${variables["STORE_API_AUTH_URL"] ?? ""}/v1/oauth/accesstoken`, {
        method: "POST",
        // With `; charset=UTF-8`.
        headers: { "Content-Type": "application/x-www-form-urlencoded;charset=UTF-8" },
        body: `${reordered.toString()}&client_secret=${demoSecret}`
      })
    )
    assert.strictEqual(response.status, 200)
  })

  test.live("exits with code 3 for a secret or a port that it cannot use", function*() {
    const { variables } = yield* emulatorWith([])
    const { port } = new URL(variables["STORE_API_URL"] ?? "")
    const user = yield* newUser({ STORE_API_CLIENT_SECRET: "a&b" })
    yield* refuses(user, "emulator --client-id real-client", 3, /^store-api: STORE_API_CLIENT_SECRET must/)
    yield* refuses(user, `emulator --port ${port}`, 3, new RegExp(`^store-api: --port cannot be ${port}:`))
  })

  test.live("lists the scenarios line by line, without colours", function*() {
    const { code, screen } = yield* onTerminal(yield* newUser({}), ["emulator", "--list"])
    deepStrictEqual([code, hasColours(screen)], [0, false])
    deepStrictEqual(linesOf(screen).map((line) => line.split(/ +/)[0]), [...Scenario.names])
  })

  it.live.each<[flags: string, sentence: string]>([
    ["--scenario token/nothing", "--scenario must be a name that --list prints."],
    ["--scenario token/tls-expired", "--scenario token/tls-expired needs --tls."],
    ["--port http", "--port must be a whole number from 0 (a free port) to 65535."],
    ["--token-life long", "--token-life must be a time such as 500ms, 2s, 5m or 1h, of at most 60m."]
  ])("refuses %s", ([flags, sentence]) =>
    Effect.gen(function*() {
      yield* refuses(yield* newUser({}), `emulator ${flags}`, 2, sentence)
    }).pipe(Effect.scoped))
})
