import { once } from "node:events"
import { assert, beforeAll, describe, it } from "@effect/vitest"
import { deepStrictEqual } from "@effect/vitest/utils"
import { Effect } from "effect"
import { build, demoSecret, newUser, processTimeout, run, start } from "./support/cli.js"

beforeAll(build, 120_000)

const real = "an-invented-secret-of-a-real-service"

/** The variables that an emulator prints, started where those of a real service are set. */
const variablesOf = (args: ReadonlyArray<string>) =>
  Effect.gen(function*() {
    const user = yield* newUser(
      { STORE_API_CLIENT_ID: "real-client", STORE_API_CLIENT_SECRET: real },
      Effect.succeed([real])
    )
    const { child, stdout } = yield* start(user, ["emulator", ...args])
    while (!/\n\n.*\n\n/s.test(stdout())) yield* Effect.promise(() => once(child.stdout, "data"))
    assert.notInclude(stdout(), real)
    return Object.fromEntries(
      [...stdout().matchAll(/^export (\w+)='(.*)'$/gm)].map(([, name = "", value = ""]) => [name, value])
    )
  })

const shows = { shows: true }

describe("store-api emulator, where the variables of a service are set", { timeout: processTimeout }, () => {
  it.scopedLive("knows its invented client alone, and prints all that an application needs", () =>
    Effect.gen(function*() {
      const variables = yield* variablesOf([])
      const client = [variables["STORE_API_CLIENT_ID"], variables["STORE_API_CLIENT_SECRET"]]
      deepStrictEqual(client, ["demo-client", demoSecret])
      const user = yield* newUser(variables)
      deepStrictEqual((yield* run(user, ["token"], shows)).code, 0)
      const withReal = { ...user, env: { ...user.env, STORE_API_CLIENT_SECRET: real } }
      deepStrictEqual((yield* run(withReal, ["token"])).code, 4)
    }))

  it.scopedLive("takes the secret from there for a client of one's own, and does not print it", () =>
    Effect.gen(function*() {
      const variables = yield* variablesOf(["--client-id", "real-client"])
      deepStrictEqual([variables["STORE_API_CLIENT_ID"], variables["STORE_API_CLIENT_SECRET"]], [
        "real-client",
        undefined
      ])
      const user = yield* newUser({ ...variables, STORE_API_CLIENT_SECRET: real })
      deepStrictEqual((yield* run(user, ["token"], shows)).code, 0)
    }))
})

describe("help", { timeout: processTimeout }, () => {
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
