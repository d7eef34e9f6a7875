import { readFileSync } from "node:fs"
import { assert, describe, it } from "@effect/vitest"
import { deepStrictEqual } from "@effect/vitest/utils"
import { Emulator, Scenario } from "@store-api/emulator"
import { test } from "../../core/test/support/test.js"
import { askToken } from "./utils.js"

const readme = readFileSync(new URL("../README.md", import.meta.url), "utf8")

const row = (name: Scenario.Name) => {
  const { expected, tls } = Scenario.all[name]
  return `| \`${name}\`${tls ? " (TLS)" : ""} | ${expected} |`
}

describe("the scenarios", () => {
  it("are exactly those that the README lists, in its order", () => {
    const listed = readme.split("\n").filter((line) => /^\| `(token|api)\//.test(line))
    deepStrictEqual(listed, Scenario.names.map(row))
  })

  for (const tls of [false, true]) {
    test.live(`are accepted by an emulator ${tls ? "with" : "without"} TLS`, function*() {
      const emulator = yield* Emulator.make({ tls })
      for (const name of Scenario.names) {
        if (!tls && Scenario.all[name].tls) continue
        yield* emulator.fail(Scenario.get(name))
        yield* emulator.clearFaults
      }
    })
  }

  it("have names that begin with the endpoint, and an outcome", () => {
    for (const name of Scenario.names) {
      assert.match(name, /^(token|api)\/[a-z0-9.-]+$/)
      assert.isAbove(Scenario.all[name].expected.length, 5)
    }
  })

  test.live("perform their script: token/503-retry-after-twice is a 503 and then a token", function*() {
    const { fail, url } = yield* Emulator.make()
    yield* fail(Scenario.get("token/503-retry-after-twice"))
    assert.strictEqual((yield* askToken(url)).status, 503)
    assert.strictEqual((yield* askToken(url)).status, 200)
  })
})
