import { assert, describe } from "@effect/vitest"
import { deepStrictEqual } from "@effect/vitest/utils"
import { test } from "../../core/test/support/test.js"
import { check, fails, startedWith } from "./support/checking.js"
import { run, withEnv, without, withProxies } from "./support/cli.js"

/** Only the first step: no request was sent. */
const configuration = { step: "configuration", said: /missing or cannot be used/, code: 3 }

describe("store-api check fails at the configuration", () => {
  test.live("when something is missing", function*() {
    const { emulator, user } = yield* startedWith()
    yield* fails(without(user, "STORE_API_CLIENT_ID"), [], {
      ...configuration,
      remedy: /STORE_API_CLIENT_ID is not set/
    })
    deepStrictEqual(yield* emulator.requests, [])
  })

  const unusable = {
    "is not a URL": ["canary", /is not a URL/],
    "has a query": ["https://store.example/?canary", /must not have a query/],
    "has a fragment": ["https://store.example/#canary", /must not have a fragment/],
    "has a user name": ["https://canary@store.example", /must not hold a user name/],
    "is of a foreign scheme": ["ftp://store.example", /must be an https URL/],
    "is of another machine, over http": ["http://store.example", /--allow-insecure/]
  } as const

  for (const [what, [url, remedy]] of Object.entries(unusable)) {
    test.live(`when a base URL ${what}, for the service and for the APIs, as other commands do`, function*() {
      const { emulator, user } = yield* startedWith()
      const runs = [["STORE_API_AUTH_URL", []], ["STORE_API_URL", []], ["STORE_API_URL", ["/orders"]]] as const
      for (const [variable, args] of runs) {
        const wrong = withEnv(user, { [variable]: url })
        const steps = yield* fails(wrong, args, { ...configuration, remedy })
        assert.lengthOf(steps, 1)
        assert.include(steps[0]?.remedy ?? "", variable)
        assert.notInclude(JSON.stringify(steps), "canary")
        const call = yield* run(wrong, ["call", "/orders"])
        assert.strictEqual(call.code, 3)
        assert.match(call.stderr, remedy)
      }
      deepStrictEqual(yield* emulator.requests, [])
    })
  }

  const proxies = [
    ["has no scheme", "HTTPS_PROXY", "proxy.example:3128"],
    ["is an address without a scheme", "HTTP_PROXY", "10.0.0.1:3128"],
    ["has a password that is not encoded", "https_proxy", "http://user:canary%@127.0.0.1:3128"],
    ["is SOCKS", "http_proxy", "socks5://127.0.0.1:1080"]
  ] as const

  for (const [what, variable, proxy] of proxies) {
    test.live(`when a proxy ${what}, whatever it is for, as other commands do`, function*() {
      const { emulator, user } = yield* startedWith()
      const remedy = new RegExp(`${variable} must be an http:// or https:// URL.*percent-encoded`)
      for (const url of [emulator.url, "https://auth.store.example"]) {
        const wrong = yield* withProxies(user, { [variable]: proxy, STORE_API_AUTH_URL: url })
        const steps = yield* fails(wrong, [], { ...configuration, remedy })
        assert.lengthOf(steps, 1)
        assert.notInclude(JSON.stringify(steps), "canary")
        const token = yield* run(wrong, ["token"])
        deepStrictEqual(token.code, 3)
        assert.match(token.stderr, remedy)
      }
      deepStrictEqual(yield* emulator.requests, [])
    })
  }

  test.live("not when a proxy can be used, though it is not there: this machine is reached without", function*() {
    const { user } = yield* startedWith()
    const { code, failed } = yield* check(
      yield* withProxies(user, { HTTPS_PROXY: "http://user:can%61ry@127.0.0.1:9" })
    )
    deepStrictEqual([code, failed], [0, []])
  })
})
