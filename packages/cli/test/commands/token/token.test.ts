/** `store-api token`: the token and its cache. */
import { readdirSync, readFileSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { assert, describe } from "@effect/vitest"
import { deepStrictEqual } from "@effect/vitest/utils"
import { Emulator, Fault } from "@store-api/emulator"
import { leaksIn } from "@store-api/testing/leaksIn"
import { test } from "@store-api/testing/test"
import { Effect, Redacted } from "effect"
import {
  demoSecret,
  frozenAt,
  lastToken,
  onTerminal,
  prints,
  refuses,
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
const parsed = (text: string) => JSON.parse(text) as Readonly<Record<string, unknown>>

/** The files of a user. */
const filesOf = ({ cwd }: User) =>
  readdirSync(cwd, { recursive: true, withFileTypes: true }).filter((file) => file.isFile())
    .map(({ name, parentPath }) => join(parentPath, name))

describe("store-api token", () => {
  test.live("ten runs at once and two later ones acquire one token", function*() {
    const { emulator, user } = yield* started
    const atOnce = yield* Effect.all(Effect.replicate(prints(user, "token"), 10), {
      concurrency: "unbounded"
    })
    const after = yield* Effect.all(Effect.replicate(prints(user, "token"), 2))
    deepStrictEqual([...new Set([...atOnce, ...after])], [`${yield* lastToken(emulator)}\n`])
    assert.strictEqual(yield* tokenRequests(emulator), 1)
  })

  test.live("keeps no token in clear text; another secret does not find it", function*() {
    const emulator = yield* Emulator.make({
      clients: [Emulator.demoClient, {
        ...Emulator.demoClient,
        clientSecret: Redacted.make("another-invented-one")
      }]
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
    assert.approximately(
      Date.parse(String(expires_at)),
      Date.now() + Number(expires_in) * 1000,
      30_000
    )
  })

  test.live("--force-refresh acquires another token and caches it; --no-cache neither reads nor writes the cache", function*() {
    const { emulator, user } = yield* started
    const lines = [
      "token --force-refresh",
      "token --force-refresh",
      "token",
      "token --no-cache",
      "token"
    ]
    // A run takes a token that is at most 10 milliseconds older than itself for its own.
    const runs = lines.map((line, index) =>
      frozenAt(Date.now() + 1000 * index)(prints(user, line))
    )
    const [first, second, cached, apart, stillCached] = yield* Effect.all(runs)
    assert.strictEqual(new Set([first, second, apart]).size, 3)
    deepStrictEqual([cached, stillCached], [second, second])
    assert.strictEqual(yield* tokenRequests(emulator), 3)
  })

  test.live("warns of a cache that cannot be used, and acquires a token without it", function*() {
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
})

describe("the prompt for the secret", () => {
  const prompt = "Client secret (not shown): "
  const unusable = "The secret contains characters that cannot be sent."

  test.live.each(
    [
      [
        "an empty secret, and takes corrections",
        "\rwrong\u0015again\u0017",
        "x\b",
        "The secret is empty."
      ],
      ["a secret with a letter that cannot be sent", `${demoSecret}é\r`, "", unusable],
      ["a secret with a tab", `${demoSecret}\t\r`, "", unusable],
      ["a secret with an invisible character", `\u200b${demoSecret}\r`, "", unusable]
    ] as const
  )(
    "asks again for %s; only the token goes to a pipe",
    function*([, before, after, sentence]) {
      const { emulator, user } = yield* startedWithoutSecret
      const typed = `${before}${demoSecret}${after}\r`
      const { code, screen, stdout } = yield* onTerminal(user, ["token"], {
        shows: true,
        stdout: "pipe",
        typed
      })
      deepStrictEqual([code, screen], [0, `${prompt}\r\n${sentence}\r\n${prompt}\r\n`])
      assert.strictEqual(stdout, `${yield* lastToken(emulator)}\n`)
    }
  )

  test.live("is not shown where no terminal is, nor on a terminal when CI is set", function*() {
    const { user } = yield* startedWithoutSecret
    const sentence =
      "STORE_API_CLIENT_SECRET is not set. Set it with store-api profile add, in the environment or in " +
      ".env, or use --secret-file. To try without a service, run store-api emulator."
    yield* refuses(user, "token", 3, sentence)
    const { code, screen } = yield* onTerminal(withEnv(user, { CI: "true" }), ["status"], {
      columns: 300
    })
    deepStrictEqual([code, screen], [3, `store-api: ${sentence}\r\n`])
  })
})

/** Runs of `token` at seconds of the wall clock. Tokens are valid for 400 seconds. They are renewed in the last 20. */
const timed = Effect.gen(function*() {
  const { emulator, user } = yield* startedWith({ tokenLife: "400 seconds" })
  const start = Date.now()
  /** Returns which token a run prints, or its exit code, and the number of token requests so far. */
  const at = (second: number, ...flags: ReadonlyArray<string>) =>
    Effect.gen(function*() {
      const running = run(user, ["token", ...flags], { shows: true })
      const { code, stdout } = yield* frozenAt(start + second * 1000)(running)
      const values = (yield* emulator.tokens).map(({ value }) => `${Redacted.value(value)}\n`)
      const outcome = code === 0
        ? `token ${values.indexOf(stdout) + 1}`
        : `code ${String(code)}`
      return { outcome, requests: yield* tokenRequests(emulator) }
    })
  return { at, emulator }
})

describe("the cached token", () => {
  test.live("is used until little of its lifetime is left, and is then replaced", function*() {
    const { at } = yield* timed
    deepStrictEqual(yield* at(0), { outcome: "token 1", requests: 1 })
    deepStrictEqual(yield* at(350), { outcome: "token 1", requests: 1 })
    deepStrictEqual(yield* at(385), { outcome: "token 2", requests: 2 })
  })

  test.live("is used after half of its remaining lifetime if the endpoint is silent", function*() {
    const { at, emulator } = yield* timed
    yield* at(0)
    yield* emulator.fail(Fault.hang(forever))
    deepStrictEqual(yield* at(397), { outcome: "token 1", requests: 2 })
  })

  test.live("is used until it expires if there is no other, and each run asks for one", function*() {
    const { at, emulator } = yield* timed
    yield* at(0)
    yield* emulator.fail(Fault.status(403, forever))
    deepStrictEqual(yield* at(385), { outcome: "token 1", requests: 2 })
    deepStrictEqual(yield* at(390), { outcome: "token 1", requests: 3 })
    deepStrictEqual(yield* at(401), { outcome: "code 4", requests: 4 })
  })

  test.live("is not used by a forced refresh that fails, and stays for the next run", function*() {
    const { at, emulator } = yield* timed
    yield* at(0)
    yield* emulator.fail(Fault.status(403))
    deepStrictEqual(yield* at(1, "--force-refresh"), { outcome: "code 4", requests: 2 })
    deepStrictEqual(yield* at(2), { outcome: "token 1", requests: 2 })
  })

  test.live("is stored again if a renewal brings it again, so that the next runs do not ask", function*() {
    const { at, emulator } = yield* timed
    yield* at(0)
    const access_token = yield* lastToken(emulator)
    yield* emulator.fail(Fault.fields({ access_token, expires_in: 15 }, forever))
    deepStrictEqual(yield* at(385), { outcome: "token 1", requests: 2 })
    deepStrictEqual(yield* at(399), { outcome: "token 1", requests: 2 })
  })
})

describe("a failed token request", () => {
  test.live("leaves no file and no pause: the next run sends a request at once", function*() {
    const { emulator, user } = yield* startedWith({}, Fault.status(429, retryAfter))
    yield* refuses(user, "token", 5, /429/)
    deepStrictEqual(filesOf(user), [])
    yield* prints(user, "token")
    assert.isNotEmpty(filesOf(user))
    assert.strictEqual(yield* tokenRequests(emulator), 2)
  })

  test.live("names the time of the next attempt, on a terminal as a time from now", function*() {
    const { user } = yield* startedWith({}, Fault.status(429, { ...retryAfter, ...forever }))
    const sentence = /^store-api: The token endpoint .*429.* Retry after \d{4}-.*Z\.\n$/
    yield* refuses(user, "token", 5, sentence)
    const { screen } = yield* onTerminal(user, ["token"], { columns: 300 })
    assert.match(screen, / Retry in 1[45] min \d+ s\.(\u001b\[0m)?\r\n$/)
  })
})
