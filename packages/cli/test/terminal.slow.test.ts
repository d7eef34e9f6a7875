/** Features that only a real terminal has: keys that are not echoed, Ctrl+C, and streams that are terminals. */
import { stripVTControlCharacters } from "node:util"
import { assert, beforeAll, describe } from "@effect/vitest"
import { deepStrictEqual } from "@effect/vitest/utils"
import { Fault } from "@store-api/emulator"
import { Effect } from "effect"
import { leaksIn } from "../../core/test/support/leaksIn.js"
import { test } from "../../core/test/support/test.js"
import { build, hasTerminals, onTerminal, processTimeout, runProcess, startOnTerminal } from "./support/process.js"
import { hasColours, linesOf } from "./support/screen.js"
import { demoSecret, lastToken, newUser, started, startedWith, variablesIn, without } from "./support/user.js"

beforeAll(build, 120_000)

const shows = { shows: true }

describe.skipIf(!hasTerminals)("the binary on a terminal", { timeout: processTimeout }, () => {
  test.live("prints a token to the terminal with a warning in colour", function*() {
    const { emulator, user } = yield* started
    const { code, screen } = yield* onTerminal(user, ["token"], shows)
    const warning = "store-api: \u001b[33mwarn\u001b[0m: The token is on the screen, where other people may see it."
    deepStrictEqual([code, screen], [0, `${warning} A pipe is safer.\r\n${yield* lastToken(emulator)}\r\n`])
  })

  test.live("asks for the secret and shows nothing of what is typed; Ctrl+C ends the run with code 130", function*() {
    const { emulator, user: withSecret } = yield* started
    const user = without(withSecret, "STORE_API_CLIENT_SECRET")
    const { code, screen, stdout } = yield* onTerminal(user, ["token"], {
      ...shows,
      stdout: "pipe",
      typed: [["Client secret", `${demoSecret}\r`]]
    })
    deepStrictEqual([code, stdout], [0, `${yield* lastToken(emulator)}\n`])
    deepStrictEqual(linesOf(screen), ["Client secret (not shown):"])
    deepStrictEqual(leaksIn(screen, yield* user.secrets), [])
    const cancelled = yield* onTerminal(user, ["token"], { stdout: "pipe", typed: [["Client secret", "\u0003"]] })
    deepStrictEqual([cancelled.code, cancelled.stdout], [130, ""])
    assert.isTrue(cancelled.screen.endsWith("\n"), "the shell goes on in a line of its own")
  })

  test.live("names a slow request after 2 seconds; Ctrl+C leaves the shell on a line of its own", function*() {
    const { emulator, user } = yield* startedWith({}, Fault.hang({ on: "api" }))
    const { end, shows, type } = yield* startOnTerminal(user, ["call", "/orders"])
    assert.isTrue(yield* shows(`store-api: Waiting for GET ${emulator.url}/orders. Press Ctrl+C to stop.\r\n`))
    yield* type("\u0003")
    const { code, screen } = yield* end
    assert.strictEqual(code, 130)
    assert.isTrue(screen.endsWith("^C\r\n"), JSON.stringify(screen))
  })

  test.live("runs an emulator that prints its variables and the requests; Ctrl+C ends it with code 130", function*() {
    const owner = yield* newUser({})
    const { end, screen, shows, type } = yield* startOnTerminal(owner, ["emulator"], { shows: true })
    assert.isTrue(yield* shows(/STORE_API_CLIENT_SECRET='.*'\r\n\r\n/))
    const env = variablesIn(stripVTControlCharacters(screen()).replaceAll("\r", ""))
    const { stdout: token } = yield* runProcess(yield* newUser(env), ["token"], { shows: true })
    const user = yield* newUser(env, Effect.succeed([demoSecret, token.trim()]))
    yield* runProcess(user, ["token", "--no-cache"], { shows: true })
    deepStrictEqual((yield* runProcess(user, ["call", "/orders?canary", "--no-cache", "--fail"])).code, 0)
    assert.isTrue(yield* shows("GET /orders"))
    yield* type("\u0003")
    const ended = yield* end
    assert.strictEqual(ended.code, 130)
    assert.isFalse(hasColours(ended.screen))
    const url = env["STORE_API_AUTH_URL"] ?? ""
    deepStrictEqual(linesOf(ended.screen).map((line) => line.replace(/^\d\d:\d\d:\d\d /, "")), [
      `The emulator listens on ${url}. Press Ctrl+C to stop it.`,
      "For the shell of your application:",
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
    // The user copies the demo secret from the screen. Access tokens must not be printed.
    assert.isNotEmpty(token.trim())
    deepStrictEqual(leaksIn(ended.screen, [token.trim(), demoSecret]), [demoSecret])
  })
})
