import { readdirSync, readFileSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { assert, describe, it } from "@effect/vitest"
import { deepStrictEqual } from "@effect/vitest/utils"
import { Emulator, Fault } from "@store-api/emulator"
import { Effect, Redacted } from "effect"
import { demoSecret, lastToken, onTerminal, run, userOf, withEnv, without } from "./support/cli.js"
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
  it.scopedLive("prints the token alone, and nothing beside it", () =>
    Effect.gen(function*() {
      const { emulator, user } = yield* started
      const { code, stderr, stdout } = yield* run(user, ["token"], shows)
      assert.strictEqual(stdout, `${yield* lastToken(emulator)}\n`)
      assert.strictEqual(stderr, "")
      assert.strictEqual(code, 0)
    }))

  it.scopedLive("ten runs at once and two after them buy one token", () =>
    Effect.gen(function*() {
      const { emulator, user } = yield* started
      const atOnce = yield* Effect.all(Effect.replicate(run(user, ["token"], shows), 10), { concurrency: "unbounded" })
      const after = yield* Effect.all(Effect.replicate(run(user, ["token"], shows), 2))
      const outcomes = [...atOnce, ...after]
      assert.strictEqual(new Set(outcomes.map(({ stdout }) => stdout)).size, 1)
      assert.strictEqual(outcomes[0]?.stdout, `${yield* lastToken(emulator)}\n`)
      assert.strictEqual(outcomes.map(({ stderr }) => stderr).join(""), "")
      assert.strictEqual(yield* requestsAt(emulator), 1)
    }))

  it.scopedLive("keeps no token in clear text; another secret does not find it", () =>
    Effect.gen(function*() {
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
    }))

  it.scopedLive("--header prints the header, --json an object", () =>
    Effect.gen(function*() {
      const { emulator, user } = yield* started
      const header = yield* run(user, ["token", "--header"], shows)
      const token = yield* lastToken(emulator)
      assert.strictEqual(header.stdout, `Authorization: Bearer ${token}\n`)
      const json = yield* run(user, ["token", "--json"], shows)
      const { access_token, expires_at, expires_in, scope, token_type } = JSON.parse(json.stdout) as Record<
        string,
        unknown
      >
      deepStrictEqual([access_token, token_type, scope], [token, "Bearer", ""])
      assert.isTrue(Number(expires_in) > 3500 && Number(expires_in) < 3600)
      assert.approximately(Date.parse(String(expires_at)), Date.now() + Number(expires_in) * 1000, 30_000)
      const both = yield* run(user, ["token", "--json", "--header"])
      deepStrictEqual([both.code, both.stdout], [2, ""])
    }))

  it.scopedLive("--refresh asks for another, which is kept; --no-store keeps none and takes none", () =>
    Effect.gen(function*() {
      const { emulator, user } = yield* started
      const first = yield* run(user, ["token"], shows)
      const refreshed = yield* run(user, ["token", "--refresh"], shows)
      assert.notStrictEqual(refreshed.stdout, first.stdout)
      assert.strictEqual((yield* run(user, ["token"], shows)).stdout, refreshed.stdout)
      assert.strictEqual(yield* requestsAt(emulator), 2)
      const apart = yield* run(user, ["token", "--no-store"], shows)
      assert.notStrictEqual(apart.stdout, refreshed.stdout)
      assert.strictEqual((yield* run(user, ["token"], shows)).stdout, refreshed.stdout)
      assert.strictEqual(yield* requestsAt(emulator), 3)
    }))

  it.scopedLive("--refresh that fails says so, and leaves the token that is stored to the next run", () =>
    Effect.gen(function*() {
      const { emulator, user } = yield* started
      const { stdout } = yield* run(user, ["token"], shows)
      yield* emulator.fail(Fault.status(403, { times: Infinity }))
      const refreshed = yield* run(user, ["token", "--refresh"])
      deepStrictEqual([refreshed.code, refreshed.stdout], [4, ""])
      const next = yield* run(user, ["token"], shows)
      deepStrictEqual([next.code, next.stdout, next.stderr], [0, stdout, ""])
      assert.strictEqual(yield* requestsAt(emulator), 2)
      // One that an API rejected is not left, though no other is to be had: the next run asks again.
      yield* emulator.revoke()
      deepStrictEqual((yield* run(user, ["call", "GET", "/orders", "--fail"])).code, 7)
      assert.strictEqual(yield* requestsAt(emulator), 3)
      assert.include((yield* run(user, ["status"])).stdout, "none is stored")
    }))

  it.scopedLive("with --refresh and nothing stored one token is asked for", () =>
    Effect.gen(function*() {
      const { emulator, user } = yield* started
      yield* run(user, ["token", "--refresh"], shows)
      assert.strictEqual(yield* requestsAt(emulator), 1)
    }))

  it.scopedLive("a store that cannot be used is warned of, and a token had without it", () =>
    Effect.gen(function*() {
      const { emulator, user } = yield* started
      const folder = join(user.cwd, "a file")
      writeFileSync(folder, "")
      const { code, stderr, stdout } = yield* run(user, ["token", "--token-folder", folder], shows)
      deepStrictEqual([code, stdout], [0, `${yield* lastToken(emulator)}\n`])
      assert.match(stderr, /^store-api: warn: The token store failed; .*operation=get.*\n$/)
    }))

  it.scopedLive("exits with code 4 for a wrong secret and 5 for an unreachable endpoint, each with a sentence", () =>
    Effect.gen(function*() {
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
    }))
})

describe("store-api token on a terminal", () => {
  it.scopedLive("shows no token, unless it is asked to", () =>
    Effect.gen(function*() {
      const { emulator, user } = yield* started
      const refused = yield* onTerminal(user, ["token"])
      assert.strictEqual(refused.code, 2)
      assert.include(
        refused.screen,
        "A token is not printed to a terminal, where others may see it: use a pipe, or --show."
      )
      assert.strictEqual(yield* requestsAt(emulator), 0)
      const shown = yield* onTerminal(user, ["token", "--show"], shows)
      deepStrictEqual([shown.code, shown.screen], [0, `${yield* lastToken(emulator)}\r\n`])
      const piped = yield* onTerminal(user, ["token"], { ...shows, stdout: "pipe" })
      deepStrictEqual([piped.code, piped.screen, piped.stdout], [0, "", `${yield* lastToken(emulator)}\n`])
    }))

  it.scopedLive("asks for the secret, which is not shown; the answer alone goes to the pipe", () =>
    Effect.gen(function*() {
      const { emulator, user } = yield* startedWithoutSecret
      const { code, screen, stdout } = yield* onTerminal(user, ["token"], {
        shows: true,
        stdout: "pipe",
        typed: `${demoSecret}\r`
      })
      deepStrictEqual([code, stdout], [0, `${yield* lastToken(emulator)}\n`])
      assert.include(screen, "Client secret")
      deepStrictEqual(leaksIn(screen, yield* user.secrets), [])
    }))

  it.scopedLive("shows no prompt when CI is set, even on a terminal, though there is a terminal (CI)", () =>
    Effect.gen(function*() {
      const { user } = yield* startedWithoutSecret
      const { code, screen } = yield* onTerminal(withEnv(user, { CI: "true" }), ["status"])
      assert.strictEqual(code, 3)
      assert.include(screen, "STORE_API_CLIENT_SECRET is not set")
    }))

  it.scopedLive("asks in colours, or in none", () =>
    Effect.gen(function*() {
      const { user } = yield* startedWithoutSecret
      const painted = /\u001b\[[\d;]*m/
      const asked = (more: Readonly<Record<string, string>>) =>
        Effect.gen(function*() {
          const typed = `${demoSecret}\r`
          const { code, screen } = yield* onTerminal(withEnv(user, more), ["status"], { typed })
          assert.strictEqual(code, 0)
          return screen
        })
      assert.match(yield* asked({}), painted)
      assert.notMatch(yield* asked({ NO_COLOR: "1" }), painted)
    }))

  it.scopedLive("is not asked where no terminal is", () =>
    Effect.gen(function*() {
      const { user } = yield* startedWithoutSecret
      const { code, stderr } = yield* run(user, ["token"])
      deepStrictEqual([code, stderr], [
        3,
        "store-api: STORE_API_CLIENT_SECRET is not set: set it in the environment or in .env, or use --secret-file.\n"
      ])
    }))
})

describe("store-api status", () => {
  it.scopedLive("reports the stored token without a request", () =>
    Effect.gen(function*() {
      const { emulator, user } = yield* started
      const none = yield* run(user, ["status"])
      deepStrictEqual(none.code, 0)
      assert.match(none.stdout, /^folder {3}.*tokens\ntoken {4}none is stored for this service, client and secret\n$/)
      deepStrictEqual(yield* emulator.requests, [])
      yield* run(user, ["token"], { shows: true })
      const one = yield* run(user, ["status"])
      assert.match(one.stdout, /\ntoken {4}good for another \d+ min \d+ s, until \d{4}-\d\d-\d\dT.*Z\n$/)
      const json = JSON.parse((yield* run(user, ["status", "--json"])).stdout) as Record<string, unknown>
      deepStrictEqual(Object.keys(json), ["folder", "stored", "acquired_at", "expires_at", "expires_in"])
      deepStrictEqual(json["stored"], true)
      const another = yield* run(user, ["status", "--json", "--client-id", "another"])
      deepStrictEqual((JSON.parse(another.stdout) as Record<string, unknown>)["stored"], false)
      assert.lengthOf(yield* emulator.requests, 1)
    }))
})

describe("a run that prints a token", () => {
  it.scopedLive("fails its test, unless the token is asked for", () =>
    Effect.gen(function*() {
      const { user } = yield* started
      const caught = yield* Effect.exit(run(user, ["token"]))
      assert.strictEqual(caught._tag, "Failure")
    }))
})
