import { assert, describe, it } from "@effect/vitest"
import { deepStrictEqual } from "@effect/vitest/utils"
import { Effect } from "effect"
import { test } from "../../core/test/support/test.js"
import { check, fails } from "./support/checking.js"
import { refuses, started, withEnv, without, withProxies } from "./support/cli.js"

/** Only the first step: no request was sent. */
const configuration = [3, "configuration", /missing or cannot be used/] as const

describe("store-api check fails at the configuration", () => {
  test.live("when something is missing", function*() {
    const { emulator, user } = yield* started
    yield* fails(without(user, "STORE_API_CLIENT_ID"), [], [...configuration, /STORE_API_CLIENT_ID is not set/])
    deepStrictEqual(yield* emulator.requests, [])
  })

  it.live.each<[what: string, url: string, remedy: RegExp]>([
    ["is not a URL", "canary", /is not a URL/],
    ["has a query", "https://store.example/?canary", /must not have a query/],
    ["has a fragment", "https://store.example/#canary", /must not have a fragment/],
    ["has a user name", "https://canary@store.example", /must not hold a user name/],
    ["is of a foreign scheme", "ftp://store.example", /must be an https URL/],
    ["is of another machine, over http", "http://store.example", /--allow-insecure/]
  ])(
    "when a base URL %s, for the service and for the APIs, as other commands do",
    ([, url, remedy]) =>
      Effect.gen(function*() {
        const { emulator, user } = yield* started
        const runs = [["STORE_API_AUTH_URL", []], ["STORE_API_URL", []], ["STORE_API_URL", ["/orders"]]] as const
        for (const [variable, args] of runs) {
          const wrong = withEnv(user, { [variable]: url })
          const steps = yield* fails(wrong, args, [...configuration, remedy])
          assert.lengthOf(steps, 1)
          assert.include(steps[0]?.remedy ?? "", variable)
          assert.notInclude(JSON.stringify(steps), "canary")
          yield* refuses(wrong, "call /orders", 3, remedy)
        }
        deepStrictEqual(yield* emulator.requests, [])
      }).pipe(Effect.scoped)
  )

  it.live.each<[what: string, variable: string, proxy: string]>([
    ["has no scheme", "HTTPS_PROXY", "proxy.example:3128"],
    ["is an address without a scheme", "HTTP_PROXY", "10.0.0.1:3128"],
    ["has a password that is not encoded", "https_proxy", "http://user:canary%@127.0.0.1:3128"],
    ["is SOCKS", "http_proxy", "socks5://127.0.0.1:1080"]
  ])("when a proxy %s, whatever it is for, as other commands do", ([, variable, proxy]) =>
    Effect.gen(function*() {
      const { emulator, user } = yield* started
      const remedy = new RegExp(`${variable} must be an http:// or https:// URL.*percent-encoded`)
      for (const url of [emulator.url, "https://auth.store.example"]) {
        const wrong = yield* withProxies(user, { [variable]: proxy, STORE_API_AUTH_URL: url })
        const steps = yield* fails(wrong, [], [...configuration, remedy])
        assert.lengthOf(steps, 1)
        assert.notInclude(JSON.stringify(steps), "canary")
        yield* refuses(wrong, "token", 3, remedy)
      }
      deepStrictEqual(yield* emulator.requests, [])
    }).pipe(Effect.scoped))

  test.live("not when a proxy can be used, though it is not there: this machine is reached without", function*() {
    const { user } = yield* started
    const { code, failed } = yield* check(
      yield* withProxies(user, { HTTPS_PROXY: "http://user:can%61ry@127.0.0.1:9" })
    )
    deepStrictEqual([code, failed], [0, []])
  })
})
