/** `store-api token`, `status` and `logout`: the token, its cache, and what a run leaves to the next ones. */
import { mkdirSync, readdirSync, readFileSync, symlinkSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { assert, describe } from "@effect/vitest"
import { deepStrictEqual } from "@effect/vitest/utils"
import { ClientCredentials } from "@store-api/core"
import { Emulator, type EmulatorError, Fault } from "@store-api/emulator"
import { nextWakeUp } from "@store-api/testing/effectLine"
import { leaksIn } from "@store-api/testing/leaksIn"
import { settled } from "@store-api/testing/sharing"
import { test } from "@store-api/testing/test"
import { Effect, Fiber, Option, Redacted, TestClock } from "effect"
import { fromLibrary } from "../src/Fault.js"
import { make } from "../src/provider.js"
import type { Settings } from "../src/settings.js"
import { demoSecret, frozenAt, lastToken, onTerminal, prints, refuses, run, started } from "./support/cli.js"
import { startedWith, tokenRequests, type User, userOf, withEnv, without } from "./support/cli.js"

const startedWithoutSecret = Effect.map(
  started,
  ({ emulator, user }) => ({ emulator, user: without(user, "STORE_API_CLIENT_SECRET") })
)

const wrongSecret = { STORE_API_CLIENT_SECRET: "another-invented-secret" }
const forever = { times: Infinity }
const retryAfter = (seconds: number) => Fault.status(429, { headers: { "Retry-After": String(seconds) }, ...forever })
const parsed = (text: string) => JSON.parse(text) as Readonly<Record<string, unknown>>

/** The files of a user. */
const filesOf = ({ cwd }: User) =>
  readdirSync(cwd, { recursive: true, withFileTypes: true }).filter((file) => file.isFile())
    .map(({ name, parentPath }) => join(parentPath, name))

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
    const kept = filesOf(user).map((path) => path + readFileSync(path, "utf8")).join("\n")
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
    const json = parsed(yield* prints(user, "token --format json"))
    const { access_token, expires_at, expires_in, scope, token_type } = json
    deepStrictEqual([access_token, token_type, scope], [token, "Bearer", ""])
    assert.isTrue(Number(expires_in) > 3500 && Number(expires_in) < 3600)
    assert.approximately(Date.parse(String(expires_at)), Date.now() + Number(expires_in) * 1000, 30_000)
  })

  test.live("--force-refresh acquires another token and caches it; --no-cache neither reads nor writes the cache", function*() {
    const { emulator, user } = yield* started
    const lines = ["token --force-refresh", "token --force-refresh", "token", "token --no-cache", "token"]
    // A run takes a token that is at most 10 milliseconds older than itself for its own.
    const runs = lines.map((line, index) => frozenAt(Date.now() + 1000 * index)(prints(user, line)))
    const [first, second, cached, apart, stillCached] = yield* Effect.all(runs)
    assert.strictEqual(new Set([first, second, apart]).size, 3)
    deepStrictEqual([cached, stillCached], [second, second])
    assert.strictEqual(yield* tokenRequests(emulator), 3)
  })

  test.live("warns of a cache that cannot be used, and acquires a token without it", function*() {
    const { emulator, user } = yield* started
    const folder = join(user.cwd, "a file")
    writeFileSync(folder, "")
    const { code, stderr, stdout } = yield* run(user, ["token", "--cache-dir", folder], { shows: true })
    deepStrictEqual([code, stdout], [0, `${yield* lastToken(emulator)}\n`])
    assert.match(stderr, /^store-api: warn: The token store failed; [\w ]+ \(.*operation: get.*\)\n$/)
    assert.include(stderr, `folder: ${folder}`)
  })
})

describe("the prompt for the secret", () => {
  const prompt = "Client secret (not shown): "
  const unusable = "The secret contains characters that cannot be sent."

  test.live.each(
    [
      ["an empty secret, and takes corrections", "\rwrong\u0015again\u0017", "x\b", "The secret is empty."],
      ["a secret with a letter that cannot be sent", `${demoSecret}é\r`, "", unusable],
      ["a secret with a tab", `${demoSecret}\t\r`, "", unusable],
      ["a secret with an invisible character", `\u200b${demoSecret}\r`, "", unusable]
    ] as const
  )("asks again for %s; only the token goes to a pipe", function*([, before, after, sentence]) {
    const { emulator, user } = yield* startedWithoutSecret
    const typed = `${before}${demoSecret}${after}\r`
    const { code, screen, stdout } = yield* onTerminal(user, ["token"], { shows: true, stdout: "pipe", typed })
    deepStrictEqual([code, screen], [0, `${prompt}\r\n${sentence}\r\n${prompt}\r\n`])
    assert.strictEqual(stdout, `${yield* lastToken(emulator)}\n`)
  })

  test.live("is not shown where no terminal is, nor on a terminal when CI is set", function*() {
    const { user } = yield* startedWithoutSecret
    const sentence =
      "STORE_API_CLIENT_SECRET is not set. Set it with store-api profile add, in the environment or in " +
      ".env, or use --secret-file. To try without a service, run store-api emulator."
    yield* refuses(user, "token", 3, sentence)
    const { code, screen } = yield* onTerminal(withEnv(user, { CI: "true" }), ["status"], { columns: 300 })
    deepStrictEqual([code, screen], [3, `store-api: ${sentence}\r\n`])
  })
})

describe("store-api status and logout", () => {
  test.live("status --json prints an object, also without a token", function*() {
    const { user } = yield* started
    yield* prints(user, "token")
    const json = parsed(yield* prints(user, "status --json"))
    deepStrictEqual(Object.keys(json), ["folder", "cached", "acquired_at", "expires_at", "expires_in"])
    deepStrictEqual(json["cached"], true)
    const another = yield* run(user, ["status", "--json", "--client-id", "another"])
    deepStrictEqual([another.code, parsed(another.stdout)["cached"]], [5, false])
  })

  test.live("logout removes the cached token of these settings and no other, without a request", function*() {
    const { emulator, user } = yield* started
    const first = yield* prints(user, "token")
    deepStrictEqual((yield* run(user, ["logout", "--client-id", "another"])).code, 0)
    assert.strictEqual(yield* prints(user, "token"), first)
    yield* refuses(user, "logout", 0, "The cached token is removed.")
    deepStrictEqual((yield* run(user, ["status"])).code, 5)
    assert.strictEqual(yield* tokenRequests(emulator), 1)
    assert.notStrictEqual(yield* prints(user, "token"), first)
  })

  test.live("logout reports a token that cannot be removed", function*() {
    const { user } = yield* started
    // The system renames no file to a name beyond the longest path. Root, too, cannot remove this one.
    const longest = process.platform === "darwin" ? 1024 : 4096
    const names = "n".repeat(longest).match(/.{1,100}/g) ?? []
    const folder = join(user.cwd, ...names).slice(0, longest - 54).replace(/\/$/, "n")
    mkdirSync(folder, { recursive: true, mode: 0o700 })
    const short = join(user.cwd, "short")
    symlinkSync(folder, short)
    yield* prints(user, ["token", "--cache-dir", short])
    const sentence = `Cannot remove the token from ${folder}. Check that you may write to it.`
    yield* refuses(user, ["logout", "--cache-dir", folder], 3, sentence)
    deepStrictEqual((yield* run(user, ["logout", "--cache-dir", short])).code, 0)
  })
})

/** A run at this second: it prints the n-th token, or fails with the code; and all token requests so far. */
type Run = readonly [second: number, outcome: `token ${number}` | `code ${number}`, requests: number, flag?: string]

type Step = Run | ((emulator: Emulator.Service) => Effect.Effect<unknown, EmulatorError.EmulatorError>)

const plays = (script: Fault.Script): Step => ({ fail }) => fail(script)

const repeatsToken: Step = (emulator) =>
  Effect.flatMap(
    lastToken(emulator),
    (access_token) => emulator.fail(Fault.fields({ access_token, expires_in: 15 }, forever))
  )

const failing = (code: number, ...runs: ReadonlyArray<readonly [second: number, requests: number]>) =>
  runs.map(([second, requests]): Run => [second, `code ${code}`, requests])

/** Runs that find the cached token. */
const cached = (...runs: ReadonlyArray<readonly [second: number, requests: number]>) =>
  runs.map(([second, requests]): Run => [second, "token 1", requests])

/** Tokens are valid for 400 seconds, and are renewed when less than 20 are left. */
const timelines: Readonly<Record<string, ReadonlyArray<Step>>> = {
  "a cached token is used until little of its lifetime is left, and is then replaced": [
    [0, "token 1", 1],
    [350, "token 1", 1],
    [385, "token 2", 2]
  ],
  "a cached token is used while it is valid if the endpoint is silent, after half of its remaining lifetime": [
    [0, "token 1", 1],
    plays(Fault.hang(forever)),
    [397, "token 1", 2]
  ],
  "a cached token is used until it expires if there is no other, and not longer": [
    [0, "token 1", 1],
    plays(Fault.status(403, forever)),
    // Each of them asks for another, and leaves the cached one for the next.
    [385, "token 1", 2],
    [390, "token 1", 3],
    [401, "code 4", 4]
  ],
  "a cached token is not used by a forced refresh that fails, and stays for the next run": [
    [0, "token 1", 1],
    plays(Fault.status(403)),
    [1, "code 4", 2, "--force-refresh"],
    [2, "token 1", 2],
    [3, "token 2", 3, "--force-refresh"],
    [4, "token 2", 3]
  ],
  "a cooldown doubles up to 5 seconds after failures other than refusals, and ends with a success": [
    plays(Fault.body("{}", forever)),
    ...failing(4, [0, 1], [0.5, 1], [1.2, 2], [2.9, 2], [3.4, 3], [7.1, 3], [7.6, 4], [12.3, 4], [12.8, 5]),
    ({ clearFaults }) => clearFaults,
    [18, "token 1", 6]
  ],
  "a cooldown follows an outage": [plays(Fault.status(503, forever)), ...failing(5, [0, 6], [0.5, 6])],
  "a cooldown is the shortest again after a forced refresh": [
    plays(Fault.body("{}", forever)),
    ...failing(4, [0, 1], [1.2, 2]),
    [1.3, "code 4", 3, "--force-refresh"],
    ...failing(4, [2.2, 3], [2.4, 4])
  ],
  "a cooldown doubles up to a minute after refusals": [
    plays(Fault.status(401, { headers: { "WWW-Authenticate": "Bearer" }, ...forever })),
    ...failing(4, [0, 1], [1.2, 2], [3.4, 3], [7.6, 4], [13, 4], [15.8, 5], [31, 5])
  ],
  "a cooldown lasts at most an hour by a Retry-After": [
    plays(retryAfter(999_999)),
    ...failing(5, [0, 1], [3590, 1], [3610, 2])
  ],
  "a cooldown ends when the clock is set back": [plays(retryAfter(900)), ...failing(5, [7200, 1], [7201, 1], [0, 2])],
  "a cooldown follows a renewal that fails, while the cached token is used": [
    [0, "token 1", 1],
    plays(Fault.body("{}", forever)),
    ...cached([381, 2], [381.5, 2], [382.2, 3], [384.3, 4], [388.4, 5], [394, 5])
  ],
  "a renewal that brings the same token is not repeated until less of it is left": [
    [0, "token 1", 1],
    repeatsToken,
    ...cached([385, 2], [386.5, 2], [399, 2])
  ]
}

/** The run at a second of the wall clock. */
const timed = Effect.gen(function*() {
  const { emulator, user } = yield* startedWith({ tokenLife: "400 seconds" })
  const start = Date.now()
  const at = (second: number, ...flags: ReadonlyArray<string>) =>
    frozenAt(start + second * 1000)(run(user, ["token", ...flags], { shows: true }))
  return { at, emulator, user }
})

describe("runs at different times", () => {
  test.live.each(Object.entries(timelines))("%s", function*([, steps]) {
    const { at, emulator } = yield* timed
    for (const step of steps) {
      if (typeof step === "function") yield* step(emulator)
      else {
        const [second, outcome, requests, flag] = step
        const { code, stdout } = yield* at(second, ...flag === undefined ? [] : [flag])
        const index = (yield* emulator.tokens).findIndex(({ value }) => `${Redacted.value(value)}\n` === stdout)
        const found = code === 0 ? `token ${index + 1}` : `code ${String(code)}`
        deepStrictEqual([second, found, yield* tokenRequests(emulator)], [second, outcome, requests])
      }
    }
  })

  /** The file of a cooldown, which is the only one. */
  const remembered = (fault: Fault.Fault) =>
    Effect.gen(function*() {
      const { at, emulator, user } = yield* timed
      yield* emulator.fail(fault)
      yield* at(0)
      const [path = assert.fail("nothing is remembered"), ...others] = filesOf(user)
      deepStrictEqual(others, [])
      return { at, emulator, path, text: readFileSync(path, "utf8") }
    })

  test.live("a cooldown lasts at most an hour if a clock that jumped left a later end", function*() {
    const { at, emulator, path, text } = yield* remembered(retryAfter(900))
    const later1000Years = text.replace(/20(?=\d\d-\d\d-\d\dT)/g, "30")
    assert.notStrictEqual(later1000Years, text)
    writeFileSync(path, later1000Years.replace(/"until":\d+/, "\"until\":9e15"))
    yield* at(3590)
    assert.strictEqual(yield* tokenRequests(emulator), 1)
    yield* at(3610)
    assert.strictEqual(yield* tokenRequests(emulator), 2)
  })

  test.live("a cooldown is ignored if its file was damaged or holds other values", function*() {
    const { at, emulator, path, text } = yield* remembered(Fault.status(401, forever))
    const content = JSON.parse(text) as { readonly value: string }
    const holding = (value: string) => JSON.stringify({ ...content, value })
    /** The number of token requests of a run that finds this file. */
    const requestsWith = (text: string) =>
      Effect.gen(function*() {
        writeFileSync(path, text)
        yield* emulator.clearRequests
        yield* at(0.5)
        return [text, yield* tokenRequests(emulator)]
      })
    deepStrictEqual(yield* requestsWith(holding(content.value)), [text, 0])
    const pause = parsed(content.value)
    const values = ["", "no JSON", "[]", "{}", "null"]
    const numbers = [-1, -1e300, 8e15, 1e300, null, "1"].flatMap((odd) => [{ from: odd }, { pause: odd }])
    const pauses = [...numbers, { pause: 0 }, { error: {} }, { error: "no error" }, { error: { _tag: "Fault" } }]
    const odd = [...values, ...pauses.map((other) => JSON.stringify({ ...pause, ...other }))].map(holding)
    for (const text of [...values, ...odd]) deepStrictEqual(yield* requestsWith(text), [text, 1])
  })

  test("a cooldown is ignored if the store does not respond", function*() {
    yield* TestClock.setTime(Date.now())
    const emulator = yield* Emulator.make()
    const client = yield* ClientCredentials.make(Emulator.demoClient)
    const credentials = Effect.succeed(client)
    const hangs = () => Effect.uninterruptible(Effect.never)
    const store = { get: hangs, put: hangs, remove: hangs, lease: hangs }
    const used = { client, credentials, store, explain: fromLibrary({}) }
    const settings = { ...used, authUrl: emulator.url } as unknown as Settings
    const running = yield* Effect.fork(Effect.scoped(
      Effect.flatMap(make(settings, { "force-refresh": false, "no-cache": false }), ({ provider }) => provider.get)
    ))
    while (Option.isNone(yield* Fiber.poll(running))) {
      yield* settled
      // Only an operation of the store waits for 5 seconds. The token request takes real time.
      const left = (yield* nextWakeUp) - (yield* TestClock.currentTimeMillis)
      if (left <= 5000) yield* TestClock.adjust(left)
    }
    assert.strictEqual(Redacted.value((yield* Fiber.join(running)).value), yield* lastToken(emulator))
  })

  test.live("each run during a cooldown names its end, until another secret, client or flag needs a request", function*() {
    const { emulator, user } = yield* startedWith({}, retryAfter(900))
    const momentIn = (stderr: string) => Date.parse(/Retry after (.*Z)/.exec(stderr)?.[1] ?? "")
    const first = yield* refuses(user, "token", 5, /^store-api: The token endpoint .*429.* Retry after \d{4}-.*Z\.\n$/)
    const sentence = /^store-api: The last token request failed. The next one is sent after \d{4}-.*Z, .*\n.*429/
    for (const line of ["token", "call /orders", "token"]) {
      const later = yield* refuses(user, line, 5, sentence)
      // The moment is the end of the Retry-After, whichever run names it.
      assert.approximately(momentIn(later), momentIn(first), 1500)
    }
    const { screen } = yield* onTerminal(user, ["token"], { columns: 300 })
    assert.match(screen, /The next one is sent in 1[45] min \d+ s, or [^]* Retry in 1[45] min \d+ s\./)
    const soon = yield* frozenAt(momentIn(first) - 500)(onTerminal(user, ["token"], { columns: 300 }))
    assert.match(soon.screen, /The next one is sent in 1 s, or [^]* Retry in 1 s\./)
    assert.strictEqual(yield* tokenRequests(emulator), 1)
    const others = [withEnv(user, wrongSecret), withEnv(user, { STORE_API_CLIENT_ID: "another" })]
    for (const other of others) yield* refuses(other, "token", 5, /^store-api: The token endpoint/)
    yield* refuses(user, "token --no-cache", 5, /^store-api: The token endpoint/)
    assert.strictEqual(yield* tokenRequests(emulator), 4)
  })

  test.live.each(["token --force-refresh", "check"])("%s sends a request; success ends the cooldown", function*(line) {
    const { emulator, user } = yield* startedWith({}, retryAfter(900))
    yield* refuses(user, "token", 5, /429/)
    yield* emulator.clearFaults
    yield* prints(user, line)
    yield* run(user, ["logout"])
    yield* prints(user, "token")
    assert.strictEqual(yield* tokenRequests(emulator), 3)
  })
})
