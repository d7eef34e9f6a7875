/** `store-api token`: the token and its cache. */
import { readdirSync, readFileSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { assert } from "@effect/vitest"
import { deepStrictEqual } from "@effect/vitest/utils"
import { Emulator, Fault } from "@store-api/emulator"
import { leaksIn } from "@store-api/testing/leaksIn"
import { test } from "@store-api/testing/test"
import { Effect, Redacted } from "effect"
import {
  demoSecret,
  expectRefusal,
  expectSuccess,
  frozenAt,
  lastToken,
  onTerminal,
  run,
  started,
  startedWith,
  tokenRequests,
  type User,
  userOf,
  withEnv,
  without
} from "../../support/cli.js"

const startedWithoutSecret = Effect.map(
  started,
  ({ emulator, user }) => ({ emulator, user: without(user, "STORE_API_CLIENT_SECRET") })
)

const forever = { times: Infinity }
const retryAfter = { headers: { "Retry-After": "900" } }
const parse = (text: string) => JSON.parse(text) as Readonly<Record<string, unknown>>

/** The files of a user. */
const filesOf = ({ cwd }: User) =>
  readdirSync(cwd, { recursive: true, withFileTypes: true }).filter((file) => file.isFile())
    .map(({ name, parentPath }) => join(parentPath, name))

test.live("ten runs at once acquire one token", function*() {
  const { emulator, user } = yield* started
  const texts = yield* Effect.all(Effect.replicate(expectSuccess(user, "token"), 10), {
    concurrency: "unbounded"
  })
  deepStrictEqual([...new Set(texts)], [`${yield* lastToken(emulator)}\n`])
  assert.strictEqual(yield* tokenRequests(emulator), 1)
})

test.live("no file of the cache contains a token, a secret or a client id", function*() {
  const { user } = yield* started
  yield* expectSuccess(user, "token")
  const text = filesOf(user).map((path) => path + readFileSync(path, "utf8")).join("\n")
  assert.isAbove(text.length, 100)
  deepStrictEqual(leaksIn(text, [...yield* user.secrets, Emulator.demoClient.clientId]), [])
})

test.live("a run with another secret does not use the cached token", function*() {
  const clientSecret = Redacted.make("another-invented-one")
  const emulator = yield* Emulator.make({
    clients: [Emulator.demoClient, { ...Emulator.demoClient, clientSecret }]
  })
  const user = yield* userOf(emulator)
  yield* expectSuccess(user, "token")
  yield* expectSuccess(
    withEnv(user, { STORE_API_CLIENT_SECRET: "another-invented-one" }),
    "token"
  )
  assert.strictEqual(yield* tokenRequests(emulator), 2)
})

test.live("token --format header prints the Authorization header", function*() {
  const { emulator, user } = yield* started
  const header = yield* expectSuccess(user, "token --format header")
  assert.strictEqual(header, `Authorization: Bearer ${yield* lastToken(emulator)}\n`)
})

test.live("token --format json prints the token with its expiry as an object", function*() {
  const { emulator, user } = yield* started
  const { access_token, expires_at, expires_in, scope, token_type } = parse(
    yield* expectSuccess(user, "token --format json")
  )
  const token = yield* lastToken(emulator)
  deepStrictEqual([access_token, token_type, scope], [token, "Bearer", ""])
  assert.isTrue(Number(expires_in) > 3500 && Number(expires_in) < 3600)
  assert.approximately(
    Date.parse(String(expires_at)),
    Date.now() + Number(expires_in) * 1000,
    30_000
  )
})

/** Prints these lines in turn. A run takes a token that is at most 10 milliseconds older for its own. */
const printInTurn = (...lines: ReadonlyArray<string>) =>
  Effect.gen(function*() {
    const { user } = yield* started
    return yield* Effect.forEach(lines, (line, index) =>
      frozenAt(Date.now() + 1000 * index)(expectSuccess(user, line)))
  })

test.live("token --force-refresh replaces the cached token", function*() {
  const [first, second, third] = yield* printInTurn("token", "token --force-refresh", "token")
  assert.notStrictEqual(second, first)
  assert.strictEqual(third, second)
})

test.live("token --no-cache does not use the cached token", function*() {
  const [first, second] = yield* printInTurn("token", "token --no-cache")
  assert.notStrictEqual(second, first)
})

test.live("token --no-cache does not replace the cached token", function*() {
  const [first, , third] = yield* printInTurn("token", "token --no-cache", "token")
  assert.strictEqual(third, first)
})

test.live("token warns when the cache cannot be used, instead of failing", function*() {
  const { emulator, user } = yield* started
  const folder = join(user.cwd, "a file")
  writeFileSync(folder, "")
  const { code, stderr, stdout } = yield* run(user, ["token", "--cache-dir", folder], {
    shows: true
  })
  deepStrictEqual([code, stdout], [0, `${yield* lastToken(emulator)}\n`])
  assert.match(
    stderr,
    /^store-api: warn: The token store failed; [\w ]+ \(.*operation: get.*\)\n$/
  )
  assert.include(stderr, `folder: ${folder}`)
})

const prompt = "Client secret (not shown): "
const unusable = "The secret contains characters that cannot be sent."

test.live.each(
  [
    [
      "an empty secret",
      "\rwrong\u0015again\u0017",
      "x\b",
      "The secret is empty."
    ],
    ["a secret with a letter that cannot be sent", `${demoSecret}é\r`, "", unusable],
    ["a secret with a tab", `${demoSecret}\t\r`, "", unusable],
    ["a secret with an invisible character", `\u200b${demoSecret}\r`, "", unusable]
  ] as const
)(
  "the prompt asks again for %s",
  function*([, before, after, sentence]) {
    const { user } = yield* startedWithoutSecret
    const typed = `${before}${demoSecret}${after}\r`
    const { code, screen } = yield* onTerminal(user, ["token"], {
      shows: true,
      stdout: "pipe",
      typed
    })
    deepStrictEqual([code, screen], [0, `${prompt}\r\n${sentence}\r\n${prompt}\r\n`])
  }
)

test.live("the prompt leaves standard output to the token", function*() {
  const { emulator, user } = yield* startedWithoutSecret
  const screen = { shows: true, stdout: "pipe", typed: `${demoSecret}\r` } as const
  const { stdout } = yield* onTerminal(user, ["token"], screen)
  assert.strictEqual(stdout, `${yield* lastToken(emulator)}\n`)
})

const missing =
  "STORE_API_CLIENT_SECRET is not set. Set it with store-api profile add, in the environment or in " +
  ".env, or use --secret-file. To try without a service, run store-api emulator."

test.live("nobody is asked for the secret without a terminal", function*() {
  yield* expectRefusal((yield* startedWithoutSecret).user, "token", 3, missing)
})

test.live("nobody is asked for the secret on a terminal when CI is set", function*() {
  const user = withEnv((yield* startedWithoutSecret).user, { CI: "true" })
  const { code, screen } = yield* onTerminal(user, ["status"], { columns: 300 })
  deepStrictEqual([code, screen], [3, `store-api: ${missing}\r\n`])
})

/** Runs of `token` at seconds of the wall clock. Tokens are valid for 400 seconds. They are renewed in the last 20. */
const startTimed = Effect.gen(function*() {
  const { emulator, user } = yield* startedWith({ tokenLife: "400 seconds" })
  const start = Date.now()
  /** Returns which token a run prints, or its exit code, and the number of token requests so far. */
  const at = (second: number, ...flags: ReadonlyArray<string>) =>
    Effect.gen(function*() {
      const runToken = run(user, ["token", ...flags], { shows: true })
      const { code, stdout } = yield* frozenAt(start + second * 1000)(runToken)
      const values = (yield* emulator.tokens).map(({ value }) => `${Redacted.value(value)}\n`)
      const outcome = code === 0
        ? `token ${values.indexOf(stdout) + 1}`
        : `code ${String(code)}`
      return { outcome, requests: yield* tokenRequests(emulator) }
    })
  return { at, emulator }
})

test.live("a run replaces the cached token when little of its lifetime is left", function*() {
  const { at } = yield* startTimed
  deepStrictEqual(yield* at(0), { outcome: "token 1", requests: 1 })
  deepStrictEqual(yield* at(350), { outcome: "token 1", requests: 1 })
  deepStrictEqual(yield* at(385), { outcome: "token 2", requests: 2 })
})

test.live("a run uses the cached token after half of its remaining lifetime if the endpoint is silent", function*() {
  const { at, emulator } = yield* startTimed
  yield* at(0)
  yield* emulator.fail(Fault.hang(forever))
  deepStrictEqual(yield* at(397), { outcome: "token 1", requests: 2 })
})

test.live("runs that ask for another token without success use the cached token until it expires", function*() {
  const { at, emulator } = yield* startTimed
  yield* at(0)
  yield* emulator.fail(Fault.status(403, forever))
  deepStrictEqual(yield* at(385), { outcome: "token 1", requests: 2 })
  deepStrictEqual(yield* at(390), { outcome: "token 1", requests: 3 })
  deepStrictEqual(yield* at(401), { outcome: "code 4", requests: 4 })
})

test.live("a forced refresh that fails does not print the cached token", function*() {
  const { at, emulator } = yield* startTimed
  yield* at(0)
  yield* emulator.fail(Fault.status(403))
  deepStrictEqual(yield* at(1, "--force-refresh"), { outcome: "code 4", requests: 2 })
})

test.live("a forced refresh that fails leaves the cached token to the next run", function*() {
  const { at, emulator } = yield* startTimed
  yield* at(0)
  yield* emulator.fail(Fault.status(403))
  yield* at(1, "--force-refresh")
  deepStrictEqual(yield* at(2), { outcome: "token 1", requests: 2 })
})

test.live("a token that the endpoint returns again is stored again, so that the next runs do not ask", function*() {
  const { at, emulator } = yield* startTimed
  yield* at(0)
  const access_token = yield* lastToken(emulator)
  yield* emulator.fail(Fault.fields({ access_token, expires_in: 15 }, forever))
  deepStrictEqual(yield* at(385), { outcome: "token 1", requests: 2 })
  deepStrictEqual(yield* at(399), { outcome: "token 1", requests: 2 })
})

test.live("a failed token request leaves no file", function*() {
  const { user } = yield* startedWith({}, Fault.status(429, retryAfter))
  yield* expectRefusal(user, "token", 5, /429/)
  deepStrictEqual(filesOf(user), [])
  yield* expectSuccess(user, "token")
  assert.isNotEmpty(filesOf(user))
})

test.live("the run after a failed token request sends one at once", function*() {
  const { emulator, user } = yield* startedWith({}, Fault.status(429, retryAfter))
  yield* expectRefusal(user, "token", 5, /429/)
  yield* expectSuccess(user, "token")
  assert.strictEqual(yield* tokenRequests(emulator), 2)
})

const startLimited = startedWith({}, Fault.status(429, { ...retryAfter, ...forever }))

test.live("a pipe gets the time of the next attempt as a date", function*() {
  const sentence = /^store-api: The token endpoint .*429.* Retry after \d{4}-.*Z\.\n$/
  yield* expectRefusal((yield* startLimited).user, "token", 5, sentence)
})

test.live("a terminal shows the time of the next attempt as a time from now", function*() {
  const { screen } = yield* onTerminal((yield* startLimited).user, ["token"], { columns: 300 })
  assert.match(screen, / Retry in 1[45] min \d+ s\.(\u001b\[0m)?\r\n$/)
})
