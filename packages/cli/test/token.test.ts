import { mkdirSync, readdirSync, readFileSync, symlinkSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { setImmediate } from "node:timers/promises"
import { assert, describe, it } from "@effect/vitest"
import { deepStrictEqual } from "@effect/vitest/utils"
import { Emulator, type EmulatorError, Fault } from "@store-api/emulator"
import { Effect, Fiber, Option, Redacted, type Scope, TestClock, TestServices } from "effect"
import { test } from "../../core/test/support/test.js"
import {
  demoSecret,
  lastToken,
  onTerminal,
  type Outcome,
  run,
  startOnTerminal,
  type User,
  userOf,
  withEnv,
  without
} from "./support/cli.js"
import { leaksIn } from "./support/leaks.js"

const started = Effect.gen(function*() {
  const emulator = yield* Emulator.make()
  return { emulator, user: yield* userOf(emulator) }
})

const startedWithoutSecret = Effect.map(
  started,
  ({ emulator, user }) => ({ emulator, user: without(user, "STORE_API_CLIENT_SECRET") })
)

const shows = { shows: true }

const requestsAt = (emulator: Emulator.Service) =>
  Effect.map(emulator.requests, (requests) => requests.filter(({ kind }) => kind === "token").length)

describe("store-api token", () => {
  test.live("prints the token alone, and nothing beside it", function*() {
    const { emulator, user } = yield* started
    const { code, stderr, stdout } = yield* run(user, ["token"], shows)
    assert.strictEqual(stdout, `${yield* lastToken(emulator)}\n`)
    assert.strictEqual(stderr, "")
    assert.strictEqual(code, 0)
  })

  test.live("ten runs at once and two later ones acquire one token", function*() {
    const { emulator, user } = yield* started
    const atOnce = yield* Effect.all(Effect.replicate(run(user, ["token"], shows), 10), { concurrency: "unbounded" })
    const after = yield* Effect.all(Effect.replicate(run(user, ["token"], shows), 2))
    const outcomes = [...atOnce, ...after]
    assert.strictEqual(new Set(outcomes.map(({ stdout }) => stdout)).size, 1)
    assert.strictEqual(outcomes[0]?.stdout, `${yield* lastToken(emulator)}\n`)
    assert.strictEqual(outcomes.map(({ stderr }) => stderr).join(""), "")
    assert.strictEqual(yield* requestsAt(emulator), 1)
  })

  test.live("keeps no token in clear text; another secret does not find it", function*() {
    const emulator = yield* Emulator.make({
      clients: [Emulator.demoClient, { ...Emulator.demoClient, clientSecret: Redacted.make("another-invented-one") }]
    })
    const user = yield* userOf(emulator)
    yield* run(user, ["token"], shows)
    const files = readdirSync(user.cwd, { recursive: true, withFileTypes: true }).filter((file) => file.isFile())
    const kept = files.map(({ name, parentPath }) => name + readFileSync(join(parentPath, name), "utf8")).join("\n")
    assert.isAbove(kept.length, 100)
    deepStrictEqual(leaksIn(kept, [...yield* user.secrets, Emulator.demoClient.clientId]), [])
    const other = { ...user, env: { ...user.env, STORE_API_CLIENT_SECRET: "another-invented-one" } }
    yield* run(other, ["token"], shows)
    assert.strictEqual(yield* requestsAt(emulator), 2)
  })

  test.live("--format header prints the header, --format json an object", function*() {
    const { emulator, user } = yield* started
    const header = yield* run(user, ["token", "--format", "header"], shows)
    const token = yield* lastToken(emulator)
    assert.strictEqual(header.stdout, `Authorization: Bearer ${token}\n`)
    const json = yield* run(user, ["token", "--format", "json"], shows)
    const { access_token, expires_at, expires_in, scope, token_type } = JSON.parse(json.stdout) as Record<
      string,
      unknown
    >
    deepStrictEqual([access_token, token_type, scope], [token, "Bearer", ""])
    assert.isTrue(Number(expires_in) > 3500 && Number(expires_in) < 3600)
    assert.approximately(Date.parse(String(expires_at)), Date.now() + Number(expires_in) * 1000, 30_000)
  })

  test.live("--force-refresh acquires another token and caches it; --no-cache neither reads nor writes the cache", function*() {
    const { emulator, user } = yield* started
    const first = yield* run(user, ["token"], shows)
    const refreshed = yield* run(user, ["token", "--force-refresh"], shows)
    assert.notStrictEqual(refreshed.stdout, first.stdout)
    assert.strictEqual((yield* run(user, ["token"], shows)).stdout, refreshed.stdout)
    assert.strictEqual(yield* requestsAt(emulator), 2)
    const apart = yield* run(user, ["token", "--no-cache"], shows)
    assert.notStrictEqual(apart.stdout, refreshed.stdout)
    assert.strictEqual((yield* run(user, ["token"], shows)).stdout, refreshed.stdout)
    assert.strictEqual(yield* requestsAt(emulator), 3)
  })

  test.live("--force-refresh that fails leaves the cached token to the next run", function*() {
    const { emulator, user } = yield* started
    const { stdout } = yield* run(user, ["token"], shows)
    yield* emulator.fail(Fault.status(403, { times: Infinity }))
    const refreshed = yield* run(user, ["token", "--force-refresh"])
    deepStrictEqual([refreshed.code, refreshed.stdout], [4, ""])
    const next = yield* run(user, ["token"], shows)
    deepStrictEqual([next.code, next.stdout, next.stderr], [0, stdout, ""])
    assert.strictEqual(yield* requestsAt(emulator), 2)
    // A token that the API rejected is removed, although no other is available.
    yield* emulator.revoke()
    deepStrictEqual((yield* run(user, ["call", "/orders", "--fail"])).code, 4)
    deepStrictEqual((yield* run(user, ["status"])).code, 5)
  })

  test.live("--force-refresh with an empty cache sends one token request", function*() {
    const { emulator, user } = yield* started
    yield* run(user, ["token", "--force-refresh"], shows)
    assert.strictEqual(yield* requestsAt(emulator), 1)
  })

  test.live("warns of a cache that cannot be used, and acquires a token without it", function*() {
    const { emulator, user } = yield* started
    const folder = join(user.cwd, "a file")
    writeFileSync(folder, "")
    const { code, stderr, stdout } = yield* run(user, ["token", "--cache-dir", folder], shows)
    deepStrictEqual([code, stdout], [0, `${yield* lastToken(emulator)}\n`])
    assert.match(stderr, /^store-api: warn: The token store failed; .*operation=get.*\n$/)
  })

  test.live("exits with code 4 for a wrong secret and 5 for an unreachable endpoint, each with a sentence", function*() {
    const { user } = yield* started
    const wrong = yield* run(user, ["token", "--client-id", "nobody"])
    deepStrictEqual([wrong.code, wrong.stdout], [4, ""])
    assert.match(
      wrong.stderr,
      /^store-api: The token endpoint refused the request \(status 401.*check the client id.*\n$/
    )
    const nobody = yield* run(user, ["token", "--auth-url", "http://127.0.0.1:9"])
    deepStrictEqual([nobody.code, nobody.stdout], [5, ""])
    assert.match(
      nobody.stderr,
      /^store-api: Cannot reach the token endpoint \(\d attempts, ECONNREFUSED\).*\n$/
    )
  })
})

describe("store-api token on a terminal", () => {
  test.live("prints the token with a warning on standard error", function*() {
    const { emulator, user } = yield* started
    const shown = yield* onTerminal(withEnv(user, { NO_COLOR: "1" }), ["token"], shows)
    deepStrictEqual([shown.code, shown.screen], [
      0,
      "store-api: warn: The token is on the screen, where other people may see it. A pipe is safer.\r\n" +
      `${yield* lastToken(emulator)}\r\n`
    ])
    const piped = yield* onTerminal(user, ["token"], { ...shows, stdout: "pipe" })
    deepStrictEqual([piped.code, piped.screen, piped.stdout], [0, "", `${yield* lastToken(emulator)}\n`])
  })

  test("says after 2 seconds that it waits, as during a Retry-After or the lease of another run", function*() {
    yield* TestClock.setTime(Date.now())
    const { emulator, user } = yield* started
    yield* emulator.fail(Fault.status(429, { headers: { "Retry-After": "9" } }))
    const first = yield* startOnTerminal(user, ["token"])
    while ((yield* requestsAt(emulator)) === 0) yield* TestServices.provideLive(Effect.sleep("10 millis"))
    yield* TestClock.adjust("1999 millis")
    assert.strictEqual(first.stderr.text, "")
    yield* TestClock.adjust("1 millis")
    const waiting = "store-api: Waiting for a token. Press Ctrl+C to stop.\r\n"
    assert.strictEqual(first.stderr.text, waiting)
    const second = yield* startOnTerminal(user, ["token"])
    while (second.stderr.text === "") {
      yield* TestClock.adjust("100 millis")
      yield* TestServices.provideLive(Effect.sleep("10 millis"))
    }
    assert.strictEqual(second.stderr.text, waiting)
    assert.strictEqual(yield* requestsAt(emulator), 1)
  })

  test.live("prompts for the secret, which is not shown; only the token goes to the pipe", function*() {
    const { emulator, user } = yield* startedWithoutSecret
    const { code, screen, stdout } = yield* onTerminal(user, ["token"], {
      shows: true,
      stdout: "pipe",
      typed: `${demoSecret}\r`
    })
    deepStrictEqual([code, stdout], [0, `${yield* lastToken(emulator)}\n`])
    assert.include(screen, "Client secret")
    deepStrictEqual(leaksIn(screen, yield* user.secrets), [])
  })

  test.live("shows no prompt when CI is set, even on a terminal, though there is a terminal (CI)", function*() {
    const { user } = yield* startedWithoutSecret
    const { code, screen } = yield* onTerminal(withEnv(user, { CI: "true" }), ["status"])
    assert.strictEqual(code, 3)
    assert.include(screen, "STORE_API_CLIENT_SECRET is not set")
  })

  test.live("asks again for an empty secret, and takes corrections", function*() {
    const { emulator, user } = yield* startedWithoutSecret
    const { code, screen, stdout } = yield* onTerminal(user, ["token"], {
      ...shows,
      stdout: "pipe",
      typed: `\rwrong\u0015${demoSecret}x\b\r`
    })
    const prompt = "Client secret (not shown): "
    deepStrictEqual([code, screen], [0, `${prompt}\r\nThe secret is empty.\r\n${prompt}\r\n`])
    deepStrictEqual(stdout, `${yield* lastToken(emulator)}\n`)
  })

  test.live("asks again for a secret that cannot be sent, and changes none", function*() {
    const { emulator, user } = yield* startedWithoutSecret
    for (const pasted of [`${demoSecret}é`, `${demoSecret}\t`, `\u200b${demoSecret}`]) {
      const { code, screen } = yield* onTerminal(user, ["token", "--no-cache"], {
        ...shows,
        stdout: "pipe",
        typed: `${pasted}\r${demoSecret}\r`
      })
      assert.include(screen, "The secret contains characters that cannot be sent.\r\nClient secret")
      deepStrictEqual([code, leaksIn(screen, [demoSecret])], [0, []])
    }
    assert.strictEqual(yield* requestsAt(emulator), 3)
  })

  test.live("is not asked where no terminal is", function*() {
    const { user } = yield* startedWithoutSecret
    const { code, stderr } = yield* run(user, ["token"])
    deepStrictEqual([code, stderr], [
      3,
      "store-api: STORE_API_CLIENT_SECRET is not set. Set it in the environment or in .env, or use --secret-file.\n"
    ])
  })
})

describe("store-api status", () => {
  test.live("reports the cached token without a request, and exits with code 5 if there is none", function*() {
    const { emulator, user } = yield* started
    const none = yield* run(user, ["status"])
    deepStrictEqual([none.code, none.stderr], [
      5,
      "store-api: No valid token is cached for this service, client and secret.\n"
    ])
    assert.match(none.stdout, /^folder {3}.*tokens\n$/)
    deepStrictEqual(yield* emulator.requests, [])
    yield* run(user, ["token"], { shows: true })
    const one = yield* run(user, ["status"])
    assert.match(one.stdout, /\ntoken {4}valid for \d+ min \d+ s, until \d{4}-\d\d-\d\dT.*Z\n$/)
    const json = JSON.parse((yield* run(user, ["status", "--json"])).stdout) as Record<string, unknown>
    deepStrictEqual(Object.keys(json), ["folder", "cached", "acquired_at", "expires_at", "expires_in"])
    deepStrictEqual(json["cached"], true)
    const another = yield* run(user, ["status", "--json", "--client-id", "another"])
    deepStrictEqual([another.code, (JSON.parse(another.stdout) as Record<string, unknown>)["cached"]], [5, false])
    assert.lengthOf(yield* emulator.requests, 1)
  })
})

describe("store-api logout", () => {
  test.live("removes the cached token of these settings and no other, without a request", function*() {
    const { emulator, user } = yield* started
    const first = yield* run(user, ["token"], shows)
    deepStrictEqual((yield* run(user, ["logout", "--client-id", "another"])).code, 0)
    assert.strictEqual((yield* run(user, ["token"], shows)).stdout, first.stdout)
    deepStrictEqual(yield* run(user, ["logout"]), {
      code: 0,
      stdout: "",
      stderr: "store-api: The cached token is removed.\n"
    })
    deepStrictEqual((yield* run(user, ["status"])).code, 5)
    assert.strictEqual(yield* requestsAt(emulator), 1)
    assert.notStrictEqual((yield* run(user, ["token"], shows)).stdout, first.stdout)
  })

  test.live("reports a token that cannot be removed", function*() {
    const { user } = yield* started
    // The system renames no file to a name beyond the longest path. Root, too, cannot remove this one.
    const longest = process.platform === "darwin" ? 1024 : 4096
    const names = "n".repeat(longest).match(/.{1,100}/g) ?? []
    const folder = join(user.cwd, ...names).slice(0, longest - 54).replace(/\/$/, "n")
    mkdirSync(folder, { recursive: true, mode: 0o700 })
    symlinkSync(folder, join(user.cwd, "short"))
    yield* run(user, ["token", "--cache-dir", join(user.cwd, "short")], shows)
    deepStrictEqual((yield* run(user, ["status", "--cache-dir", folder])).code, 0)
    const { code, stderr } = yield* run(user, ["logout", "--cache-dir", folder])
    deepStrictEqual([code, stderr], [
      3,
      `store-api: Cannot remove the token from ${folder}. Check that you may write to it.\n`
    ])
    deepStrictEqual((yield* run(user, ["logout", "--cache-dir", join(user.cwd, "short")])).code, 0)
  })
})

describe("a refusal survives the run", () => {
  test.live("a loop of runs sends one request until a Retry-After is over, and each run names the moment", function*() {
    const { emulator, user } = yield* started
    yield* emulator.fail(Fault.status(429, { headers: { "Retry-After": "900" } }))
    const first = yield* run(user, ["token"])
    assert.match(first.stderr, /^store-api: The token endpoint .*429.* Retry after \d{4}-.*Z\.\n$/)
    for (const line of [["token"], ["call", "/orders"], ["token"]]) {
      const { code, stderr, stdout } = yield* run(user, line)
      deepStrictEqual([code, stdout], [5, ""])
      assert.match(stderr, /^store-api: No token request before \d{4}-.*Z: the last one failed\. .*\n.*429/)
    }
    assert.strictEqual(yield* requestsAt(emulator), 1)
    // The moment is the end of the Retry-After, whichever run names it.
    const [, at = ""] = /Retry after (.*Z)/.exec((yield* run(user, ["token"])).stderr) ?? []
    const [, firstAt = ""] = /Retry after (.*Z)/.exec(first.stderr) ?? []
    assert.approximately(Date.parse(at), Date.parse(firstAt), 1500)
  })

  test.live("--force-refresh sends a request, whose success ends the cooldown", function*() {
    const { emulator, user } = yield* started
    yield* emulator.fail(Fault.status(429, { headers: { "Retry-After": "900" } }))
    yield* run(user, ["token"])
    deepStrictEqual((yield* run(user, ["token", "--force-refresh"], shows)).code, 0)
    yield* run(user, ["logout"])
    deepStrictEqual((yield* run(user, ["token"], shows)).code, 0)
    assert.strictEqual(yield* requestsAt(emulator), 3)
  })

  test.live("a refused secret too, and another secret or client is not affected", function*() {
    const { emulator, user } = yield* started
    const wrong = withEnv(user, { STORE_API_CLIENT_SECRET: "another-invented-secret" })
    const [first, second] = [yield* run(wrong, ["token"]), yield* run(wrong, ["token"])]
    deepStrictEqual([first.code, second.code, yield* requestsAt(emulator)], [4, 4, 1])
    assert.isTrue(second.stderr.endsWith(first.stderr))
    deepStrictEqual((yield* run(user, ["token"], shows)).code, 0)
    yield* run(wrong, ["token", "--client-id", "another"])
    assert.strictEqual(yield* requestsAt(emulator), 3)
    yield* run(wrong, ["token", "--no-cache"])
    assert.strictEqual(yield* requestsAt(emulator), 4)
  })

  test.live("a valid cached token is used during a cooldown; a check that succeeds ends it", function*() {
    const { emulator, user } = yield* started
    const { stdout } = yield* run(user, ["token"], shows)
    yield* emulator.fail(Fault.status(429, { headers: { "Retry-After": "900" } }))
    deepStrictEqual((yield* run(user, ["token", "--force-refresh"])).code, 5)
    assert.strictEqual((yield* run(user, ["token"], shows)).stdout, stdout)
    yield* run(user, ["logout"])
    deepStrictEqual((yield* run(user, ["token"])).code, 5)
    deepStrictEqual((yield* run(user, ["check"])).code, 0)
    deepStrictEqual((yield* run(user, ["token"], shows)).code, 0)
  })
})

describe("the same failure", () => {
  const commands = [["token"], ["call", "/orders"], ["check", "/orders"]] as const

  /** What a command says to do: the last line of standard error, or in a check the line below the step that failed. */
  const adviceOf = ({ stderr, stdout }: Outcome) =>
    [...(stderr || stdout).matchAll(/^(?:store-api: | {5})(.*)$/gm)].at(-1)?.[1] ?? ""

  /** Without numbers that each run counts. */
  const plain = (advice: string) => advice.replace(/[-\d]+T[\d:.]+Z/, "THEN").replace(/\d attempts?/, "N attempts")

  const inEachCommand = (user: Effect.Effect<User, EmulatorError.EmulatorError, Scope.Scope>) =>
    Effect.forEach(commands, (line) => Effect.flatMap(user, (user) => run(user, line)), { concurrency: "unbounded" })

  const failing = (script: Fault.Script) =>
    Effect.tap(started, ({ emulator }) => emulator.fail(script)).pipe(Effect.map(({ user }) => user))

  const wrongSecret = Effect.map(
    started,
    ({ user }) => withEnv(user, { STORE_API_CLIENT_SECRET: "another-invented-secret" })
  )

  const limited = /\(status 429.*\): send fewer requests\. Retry after THEN\.$/

  it.live.each(
    [
      ["a rate limit", failing(Fault.status(429)), 5, limited],
      ["a Retry-After", failing(Fault.status(429, { headers: { "Retry-After": "900" } })), 5, limited],
      [
        "a wrong secret",
        wrongSecret,
        4,
        /^The token endpoint refused .*\(status 401.*\): check the client id and secret/
      ],
      [
        "a missing secret",
        Effect.map(startedWithoutSecret, ({ user }) => user),
        3,
        /^STORE_API_CLIENT_SECRET is not set\./
      ],
      [
        "an unusable URL",
        Effect.map(started, ({ user }) => withEnv(user, { STORE_API_AUTH_URL: "no" })),
        3,
        /^STORE_API_AUTH_URL is/
      ],
      [
        "another error",
        failing(Fault.status(403)),
        4,
        /: check STORE_API_AUTH_URL and what the client is allowed to do\./
      ],
      ["a redirect", failing(Fault.redirect(302, "elsewhere")), 4, /: set STORE_API_AUTH_URL to its target\.$/],
      ["a response without a token", failing(Fault.body("[]")), 4, /^The token endpoint returned no usable token/]
    ] as const
  )("reads the same in token, call and check: %s", ([, user, code, advice]) =>
    Effect.gen(function*() {
      const outcomes = yield* inEachCommand(user)
      deepStrictEqual(outcomes.map(({ code }) => code), [code, code, code])
      const [first = "", ...others] = outcomes.map((outcome) => plain(adviceOf(outcome)))
      assert.match(first, advice)
      deepStrictEqual(others, [first, first])
    }).pipe(Effect.scoped))

  test("reads the same in token, call and check: a silent endpoint", function*() {
    yield* TestClock.setTime(Date.now())
    const { emulator, user } = yield* started
    yield* emulator.fail(Fault.hang({ times: Infinity }))
    for (const [index, line] of commands.entries()) {
      const before = yield* requestsAt(emulator)
      const running = yield* Effect.fork(run(user, [...line, ...index < 2 ? ["--no-cache"] : []]))
      while ((yield* requestsAt(emulator)) === before) yield* TestServices.provideLive(Effect.sleep("10 millis"))
      while (Option.isNone(yield* Fiber.poll(running))) {
        yield* TestClock.adjust("1 second")
        yield* Effect.promise(() => setImmediate())
      }
      const outcome = yield* Fiber.join(running)
      assert.strictEqual(outcome.code, 5)
      assert.match(
        plain(adviceOf(outcome)),
        /^The token endpoint did not respond in time \(N attempts\): try again later\. Retry after THEN\.$/
      )
    }
  })

  it.live.each(
    [
      ["a refused connection", { STORE_API_AUTH_URL: "http://127.0.0.1:9" }, 5, "ECONNREFUSED"],
      ["a certificate of an unknown authority", {}, 4, "DEPTH_ZERO_SELF_SIGNED_CERT|UNABLE_TO_\\w+|SELF_SIGNED_\\w+"]
    ] as const
  )(
    "is a step of check before the request, with the same reason and exit code: %s",
    ([, env, code, reason]) =>
      Effect.gen(function*() {
        const user = Effect.flatMap(Emulator.make({ tls: true }), (emulator) => userOf(emulator, env))
        const outcomes = yield* inEachCommand(user)
        deepStrictEqual(outcomes.map(({ code }) => code), [code, code, code])
        const [token = "", call, check = ""] = outcomes.map(({ stderr, stdout }) => plain(stderr + stdout))
        assert.match(token, new RegExp(`token endpoint.* \\(N attempts, (${reason})\\): check STORE_API_AUTH_URL`))
        assert.strictEqual(call, token)
        assert.match(check, new RegExp(`\\nFAIL .* \\((${reason})\\)\n`))
      }).pipe(Effect.scoped)
  )
})

describe("store-api token --verbose", () => {
  test.live("shows each request with its outcome and without secrets", function*() {
    const { emulator, user } = yield* started
    const verbose = yield* run(user, ["token", "--verbose"], shows)
    assert.match(verbose.stderr, /^store-api: POST http:.*\/v1\/oauth\/accesstoken: 200 \(\d+ ms\)\n$/)
    const call = yield* run(user, ["-v", "call", "/orders?secret=canary"])
    deepStrictEqual(call.stderr.replace(/\d+ ms/, ""), `store-api: GET ${emulator.url}/orders: 200 ()\n`)
  })

  test.live("shows an attempt that timed out", function*() {
    const { emulator, user } = yield* started
    yield* emulator.fail(Fault.hang({ on: "api" }))
    const { code, stderr } = yield* run(user, ["call", "/orders", "--verbose", "--timeout", "1s"])
    assert.strictEqual(code, 6)
    assert.match(stderr, /\nstore-api: GET http:.*\/orders: no response \(\d+ ms\)\nstore-api: The call took longer/)
  })
})

describe("a run that prints a token", () => {
  test.live("fails its test, unless the token is asked for", function*() {
    const { user } = yield* started
    const caught = yield* Effect.exit(run(user, ["token"]))
    assert.strictEqual(caught._tag, "Failure")
  })
})
