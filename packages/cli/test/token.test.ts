import { mkdirSync, readdirSync, readFileSync, symlinkSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { setImmediate } from "node:timers/promises"
import { assert, describe, it } from "@effect/vitest"
import { deepStrictEqual } from "@effect/vitest/utils"
import { Emulator, type EmulatorError, Fault } from "@store-api/emulator"
import { Effect, Fiber, Option, Redacted, type Scope, TestClock, TestServices } from "effect"
import { leaksIn } from "../../core/test/support/leaksIn.js"
import { test } from "../../core/test/support/test.js"
import {
  demoSecret,
  lastToken,
  onTerminal,
  type Outcome,
  prints,
  refuses,
  run,
  started,
  startedWith,
  startOnTerminal,
  tokenRequests,
  type User,
  userOf,
  withEnv,
  without
} from "./support/cli.js"

const startedWithoutSecret = Effect.map(
  started,
  ({ emulator, user }) => ({ emulator, user: without(user, "STORE_API_CLIENT_SECRET") })
)

const wrongSecret = { STORE_API_CLIENT_SECRET: "another-invented-secret" }

const retryAfter = Fault.status(429, { headers: { "Retry-After": "900" } })

const parsed = (text: string) => JSON.parse(text) as Readonly<Record<string, unknown>>

describe("store-api token", () => {
  test.live("ten runs at once and two later ones acquire one token", function*() {
    const { emulator, user } = yield* started
    const atOnce = yield* Effect.all(Effect.replicate(prints(user, "token"), 10), { concurrency: "unbounded" })
    const after = yield* Effect.all(Effect.replicate(prints(user, "token"), 2))
    deepStrictEqual([...new Set([...atOnce, ...after])], [`${yield* lastToken(emulator)}\n`])
    assert.strictEqual(yield* tokenRequests(emulator), 1)
  })

  test.live("keeps no token in clear text; another secret does not find it", function*() {
    const emulator = yield* Emulator.make({
      clients: [Emulator.demoClient, { ...Emulator.demoClient, clientSecret: Redacted.make("another-invented-one") }]
    })
    const user = yield* userOf(emulator)
    yield* prints(user, "token")
    const files = readdirSync(user.cwd, { recursive: true, withFileTypes: true }).filter((file) => file.isFile())
    const kept = files.map(({ name, parentPath }) => name + readFileSync(join(parentPath, name), "utf8")).join("\n")
    assert.isAbove(kept.length, 100)
    deepStrictEqual(leaksIn(kept, [...yield* user.secrets, Emulator.demoClient.clientId]), [])
    yield* prints(withEnv(user, { STORE_API_CLIENT_SECRET: "another-invented-one" }), "token")
    assert.strictEqual(yield* tokenRequests(emulator), 2)
  })

  test.live("--format header prints the header, --format json an object", function*() {
    const { emulator, user } = yield* started
    const header = yield* prints(user, "token --format header")
    const token = yield* lastToken(emulator)
    assert.strictEqual(header, `Authorization: Bearer ${token}\n`)
    const { access_token, expires_at, expires_in, scope, token_type } = parsed(
      yield* prints(user, "token --format json")
    )
    deepStrictEqual([access_token, token_type, scope], [token, "Bearer", ""])
    assert.isTrue(Number(expires_in) > 3500 && Number(expires_in) < 3600)
    assert.approximately(Date.parse(String(expires_at)), Date.now() + Number(expires_in) * 1000, 30_000)
  })

  test.live("--force-refresh acquires another token and caches it; --no-cache neither reads nor writes the cache", function*() {
    const { emulator, user } = yield* started
    const outputs: Array<string> = []
    for (const flag of ["--force-refresh", "--force-refresh", undefined, "--no-cache", undefined]) {
      outputs.push(yield* prints(user, ["token", ...flag === undefined ? [] : [flag]]))
    }
    const [first, refreshed, cached, apart, stillCached] = outputs
    assert.strictEqual(new Set([first, refreshed, apart]).size, 3)
    deepStrictEqual([cached, stillCached], [refreshed, refreshed])
    assert.strictEqual(yield* tokenRequests(emulator), 3)
  })

  test.live("warns of a cache that cannot be used, and acquires a token without it", function*() {
    const { emulator, user } = yield* started
    const folder = join(user.cwd, "a file")
    writeFileSync(folder, "")
    const { code, stderr, stdout } = yield* run(user, ["token", "--cache-dir", folder], { shows: true })
    deepStrictEqual([code, stdout], [0, `${yield* lastToken(emulator)}\n`])
    assert.match(stderr, /^store-api: warn: The token store failed; .*operation=get.*\n$/)
  })

  test("says on a terminal after 2 seconds that it waits, as during a Retry-After or the lease of another run", function*() {
    yield* TestClock.setTime(Date.now())
    const { emulator, user } = yield* startedWith({}, Fault.status(429, { headers: { "Retry-After": "9" } }))
    const first = yield* startOnTerminal(user, ["token"])
    while ((yield* tokenRequests(emulator)) === 0) yield* TestServices.provideLive(Effect.sleep("10 millis"))
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
    assert.strictEqual(yield* tokenRequests(emulator), 1)
  })
})

describe("the prompt for the secret", () => {
  const prompt = "Client secret (not shown): "
  const empty = "The secret is empty."
  const unusable = "The secret contains characters that cannot be sent."

  it.live.each(
    [
      ["an empty secret, and takes corrections", "\rwrong\u0015", "x\b", empty],
      ["a secret with a letter that cannot be sent", `${demoSecret}é\r`, "", unusable],
      ["a secret with a tab", `${demoSecret}\t\r`, "", unusable],
      ["a secret with an invisible character", `\u200b${demoSecret}\r`, "", unusable]
    ] as const
  )("asks again for %s; only the token goes to a pipe", ([, before, after, sentence]) =>
    Effect.gen(function*() {
      const { emulator, user } = yield* startedWithoutSecret
      const { code, screen, stdout } = yield* onTerminal(user, ["token"], {
        shows: true,
        stdout: "pipe",
        typed: `${before}${demoSecret}${after}\r`
      })
      deepStrictEqual([code, screen], [0, `${prompt}\r\n${sentence}\r\n${prompt}\r\n`])
      assert.strictEqual(stdout, `${yield* lastToken(emulator)}\n`)
    }).pipe(Effect.scoped))

  test.live("is not shown where no terminal is, nor on a terminal when CI is set", function*() {
    const { user } = yield* startedWithoutSecret
    const sentence = "STORE_API_CLIENT_SECRET is not set. Set it in the environment or in .env, or use --secret-file."
    yield* refuses(user, "token", 3, sentence)
    const { code, screen } = yield* onTerminal(withEnv(user, { CI: "true" }), ["status"])
    deepStrictEqual([code, screen], [3, `store-api: ${sentence}\r\n`])
  })
})

describe("store-api status", () => {
  test.live("--json prints an object, also without a token", function*() {
    const { user } = yield* started
    yield* prints(user, "token")
    const json = parsed(yield* prints(user, "status --json"))
    deepStrictEqual(Object.keys(json), ["folder", "cached", "acquired_at", "expires_at", "expires_in"])
    deepStrictEqual(json["cached"], true)
    const another = yield* run(user, ["status", "--json", "--client-id", "another"])
    deepStrictEqual([another.code, parsed(another.stdout)["cached"]], [5, false])
  })
})

describe("store-api logout", () => {
  test.live("removes the cached token of these settings and no other, without a request", function*() {
    const { emulator, user } = yield* started
    const first = yield* prints(user, "token")
    deepStrictEqual((yield* run(user, ["logout", "--client-id", "another"])).code, 0)
    assert.strictEqual(yield* prints(user, "token"), first)
    yield* refuses(user, "logout", 0, "The cached token is removed.")
    deepStrictEqual((yield* run(user, ["status"])).code, 5)
    assert.strictEqual(yield* tokenRequests(emulator), 1)
    assert.notStrictEqual(yield* prints(user, "token"), first)
  })

  test.live("reports a token that cannot be removed", function*() {
    const { user } = yield* started
    // The system renames no file to a name beyond the longest path. Root, too, cannot remove this one.
    const longest = process.platform === "darwin" ? 1024 : 4096
    const names = "n".repeat(longest).match(/.{1,100}/g) ?? []
    const folder = join(user.cwd, ...names).slice(0, longest - 54).replace(/\/$/, "n")
    mkdirSync(folder, { recursive: true, mode: 0o700 })
    const short = join(user.cwd, "short")
    symlinkSync(folder, short)
    yield* prints(user, ["token", "--cache-dir", short])
    yield* prints(user, ["status", "--cache-dir", folder])
    const sentence = `Cannot remove the token from ${folder}. Check that you may write to it.`
    yield* refuses(user, ["logout", "--cache-dir", folder], 3, sentence)
    deepStrictEqual((yield* run(user, ["logout", "--cache-dir", short])).code, 0)
  })
})

describe("a refusal survives the run", () => {
  test.live("a loop of runs sends one request until a Retry-After is over, and each run names the moment", function*() {
    const { emulator, user } = yield* startedWith({}, retryAfter)
    const momentIn = (stderr: string) => Date.parse(/Retry after (.*Z)/.exec(stderr)?.[1] ?? "")
    const first = yield* refuses(user, "token", 5, /^store-api: The token endpoint .*429.* Retry after \d{4}-.*Z\.\n$/)
    for (const line of ["token", "call /orders", "token"]) {
      const later = yield* refuses(
        user,
        line,
        5,
        /^store-api: No token request before \d{4}-.*Z: the last one failed\. .*\n.*429/
      )
      // The moment is the end of the Retry-After, whichever run names it.
      assert.approximately(momentIn(later), momentIn(first), 1500)
    }
    assert.strictEqual(yield* tokenRequests(emulator), 1)
  })

  test.live("a refused secret too, and another secret or client is not affected", function*() {
    const { emulator, user } = yield* started
    const wrong = withEnv(user, wrongSecret)
    const first = yield* refuses(wrong, "token", 4, /401/)
    assert.isTrue((yield* refuses(wrong, "token", 4, /401/)).endsWith(first))
    assert.strictEqual(yield* tokenRequests(emulator), 1)
    yield* prints(user, "token")
    yield* run(wrong, ["token", "--client-id", "another"])
    assert.strictEqual(yield* tokenRequests(emulator), 3)
    yield* run(wrong, ["token", "--no-cache"])
    assert.strictEqual(yield* tokenRequests(emulator), 4)
  })

  it.live.each(["token --force-refresh", "check"])(
    "%s sends a request, whose success ends the cooldown",
    (line) =>
      Effect.gen(function*() {
        const { emulator, user } = yield* startedWith({}, retryAfter)
        yield* refuses(user, "token", 5, /429/)
        yield* prints(user, line)
        yield* run(user, ["logout"])
        yield* prints(user, "token")
        assert.strictEqual(yield* tokenRequests(emulator), 3)
      }).pipe(Effect.scoped)
  )

  test.live("a valid cached token is used during a cooldown", function*() {
    const { emulator, user } = yield* started
    const token = yield* prints(user, "token")
    yield* emulator.fail(retryAfter)
    yield* refuses(user, "token --force-refresh", 5, /429/)
    assert.strictEqual(yield* prints(user, "token"), token)
    yield* run(user, ["logout"])
    yield* refuses(user, "token", 5, /^store-api: No token request before/)
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

  const failing = (script: Fault.Script) => Effect.map(startedWith({}, script), ({ user }) => user)

  const setting = (env: Readonly<Record<string, string>>) => Effect.map(started, ({ user }) => withEnv(user, env))

  const limited = /\(status 429.*\): send fewer requests\. Retry after THEN\.$/

  it.live.each(
    [
      ["a rate limit", failing(Fault.status(429)), 5, limited],
      ["a Retry-After", failing(retryAfter), 5, limited],
      ["a wrong secret", setting(wrongSecret), 4, /^The .* refused .*\(status 401.*\): check the client id and secret/],
      [
        "a missing secret",
        Effect.map(startedWithoutSecret, ({ user }) => user),
        3,
        /^STORE_API_CLIENT_SECRET is not set\./
      ],
      ["an unusable URL", setting({ STORE_API_AUTH_URL: "no" }), 3, /^STORE_API_AUTH_URL is/],
      [
        "another error",
        failing(Fault.status(403)),
        4,
        /: check STORE_API_AUTH_URL and what the client is allowed to do\./
      ],
      [
        "a redirect",
        failing(Fault.redirect(302, "elsewhere")),
        4,
        /, and credentials are not sent to another URL: set STORE_API_AUTH_URL to its target\.$/
      ],
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
    const { emulator, user } = yield* startedWith({}, Fault.hang({ times: Infinity }))
    for (const [index, line] of commands.entries()) {
      const before = yield* tokenRequests(emulator)
      const running = yield* Effect.fork(run(user, [...line, ...index < 2 ? ["--no-cache"] : []]))
      while ((yield* tokenRequests(emulator)) === before) yield* TestServices.provideLive(Effect.sleep("10 millis"))
      while (Option.isNone(yield* Fiber.poll(running))) {
        yield* TestClock.adjust("1 second")
        yield* Effect.promise(() => setImmediate())
      }
      const outcome = yield* Fiber.join(running)
      assert.strictEqual(outcome.code, 5)
      assert.strictEqual(
        plain(adviceOf(outcome)),
        "The token endpoint did not respond in time (N attempts): try again later. Retry after THEN."
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
    const verbose = yield* run(user, ["token", "--verbose"], { shows: true })
    assert.match(verbose.stderr, /^store-api: POST http:.*\/v1\/oauth\/accesstoken: 200 \(\d+ ms\)\n$/)
    const call = yield* run(user, ["-v", "call", "/orders?secret=canary"])
    deepStrictEqual(call.stderr.replace(/\d+ ms/, ""), `store-api: GET ${emulator.url}/orders: 200 ()\n`)
  })

  test.live("shows an attempt that timed out", function*() {
    const { user } = yield* startedWith({}, Fault.hang({ on: "api" }))
    yield* refuses(
      user,
      "call /orders --verbose --timeout 1s",
      6,
      /\nstore-api: GET http:.*\/orders: no response \(\d+ ms\)\nstore-api: The call took longer/
    )
  })
})
