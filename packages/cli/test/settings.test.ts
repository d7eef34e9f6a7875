import { spawnSync } from "node:child_process"
import { mkdirSync, rmdirSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { assert, describe } from "@effect/vitest"
import { deepStrictEqual } from "@effect/vitest/utils"
import { Emulator } from "@store-api/emulator"
import { Effect, Redacted } from "effect"
import { test } from "../../core/test/support/test.js"
import { newUser, run, type User, withEnv, without, withProxies } from "./support/cli.js"

/** A client whose secret a careless reader of files would change. */
const secret = "in$HOME #no\\comment'=1"

const started = Effect.gen(function*() {
  const emulator = yield* Emulator.make({
    clients: [{ clientId: "my-client", clientSecret: Redacted.make(secret) }]
  })
  const user = yield* newUser({}, Effect.succeed([secret]))
  const write = (name: string, text: string) => writeFileSync(join(user.cwd, name), text)
  const lines = [`STORE_API_AUTH_URL=${emulator.url}`, "STORE_API_CLIENT_ID=my-client"]
  return { emulator, user, write, lines, inEnvironment: withEnv(user, asRecord(lines)) }
})

const asRecord = (lines: ReadonlyArray<string>) =>
  Object.fromEntries(lines.map((line) => [line.slice(0, line.indexOf("=")), line.slice(line.indexOf("=") + 1)]))

/** The command that needs settings and prints nothing private. */
const json = (args: ReadonlyArray<string> = []) => ["token", "--format", "json", ...args]

const shows = { shows: true }

describe("settings", () => {
  test.live("come from .env, the secret as it stands there", function*() {
    const { lines, user, write } = yield* started
    write(".env", [...lines, `STORE_API_CLIENT_SECRET="${secret}"`].join("\n"))
    deepStrictEqual((yield* run(user, json(), shows)).code, 0)
  })

  test.live("from another file, and fails if it does not exist", function*() {
    const { lines, user, write } = yield* started
    write("my.env", [...lines, `export STORE_API_CLIENT_SECRET="${secret}"`].join("\r\n"))
    deepStrictEqual((yield* run(user, json(["--dotenv", "my.env"]), shows)).code, 0)
    const missing = yield* run(user, json(["--dotenv=your.env"]))
    deepStrictEqual([missing.code, missing.stderr], [3, "store-api: Cannot read your.env, the file of --dotenv.\n"])
  })

  test.live("from flags before the environment, and from there before .env", function*() {
    const { emulator, inEnvironment, user, write } = yield* started
    write(".env", `STORE_API_AUTH_URL=http://127.0.0.1:9\nSTORE_API_CLIENT_SECRET="${secret}"`)
    deepStrictEqual((yield* run(inEnvironment, json(), shows)).code, 0)
    const wrong = withEnv(inEnvironment, { STORE_API_CLIENT_ID: "nobody" })
    deepStrictEqual((yield* run(wrong, json())).code, 4)
    deepStrictEqual((yield* run(wrong, json(["--client-id", "my-client"]), shows)).code, 0)
    const flags = ["--auth-url", emulator.url, "--client-id=my-client", "--no-cache"]
    deepStrictEqual((yield* run(user, json(flags), shows)).code, 0)
  })

  test.live("skip a .env that is a folder, or a pipe without a writer", function*() {
    const { inEnvironment } = yield* started
    const who = withEnv(inEnvironment, { STORE_API_CLIENT_SECRET: secret })
    const path = join(who.cwd, ".env")
    mkdirSync(path)
    deepStrictEqual((yield* run(who, ["token", "--no-cache"], shows)).code, 0)
    const named = yield* run(who, ["token", "--dotenv", ".env"])
    deepStrictEqual([named.code, named.stderr], [3, "store-api: Cannot read .env, the file of --dotenv.\n"])
    rmdirSync(path)
    assert.strictEqual(spawnSync("mkfifo", [path]).status, 0)
    const fifo = yield* run(who, ["token", "--no-cache"], shows)
    deepStrictEqual([fifo.code, fifo.stderr], [0, ""])
  })

  test.live("never send a secret of another origin to the address of a .env that was not named", function*() {
    const { emulator, inEnvironment, lines, user, write } = yield* started
    write(".env", [...lines, `STORE_API_URL=${emulator.url}`, "STORE_API_CLIENT_SECRET=another"].join("\n"))
    write("secret", secret)
    const withSecret = withEnv(user, { STORE_API_CLIENT_SECRET: secret })
    const astray: ReadonlyArray<readonly [User, ReadonlyArray<string>, string, string]> = [
      [withSecret, ["token"], "the environment", "STORE_API_AUTH_URL"],
      [withSecret, ["call", "/"], "the environment", "STORE_API_AUTH_URL and STORE_API_URL"],
      [withSecret, ["status"], "the environment", "STORE_API_AUTH_URL"],
      [user, ["token", "--secret-file", "secret"], "secret", "STORE_API_AUTH_URL"],
      [user, ["token", "--secret-file", "-"], "standard input", "STORE_API_AUTH_URL"],
      [inEnvironment, ["call", "/", "--secret-file", "secret"], "secret", "STORE_API_URL"],
      [inEnvironment, ["profile", "add", "books", "--secret-file", "secret"], "secret", "STORE_API_URL"]
    ]
    for (const [who, args, from, names] of astray) {
      const { code, stderr, stdout } = yield* run(who, args, { stdin: secret })
      deepStrictEqual([code, stdout], [3, ""])
      assert.include(
        stderr,
        `${names} of a .env that you did not name ${
          names.includes(" and ") ? "are" : "is"
        } not used with the secret from ${from}.`
      )
      assert.match(stderr, /^store-api: [^\n]*--dotenv \.env; if not, give the address by flag [^\n]*[.]\n$/)
    }
    const check = yield* run(withSecret, ["check"])
    deepStrictEqual(check.code, 3)
    assert.match(check.stdout, /^FAIL configuration [^]*--dotenv \.env/)
    deepStrictEqual(yield* emulator.requests, [])
    // What the sentence says, helps.
    for (const args of [["--dotenv", ".env"], ["--auth-url", emulator.url]]) {
      deepStrictEqual((yield* run(withSecret, json([...args, "--no-cache"]), shows)).code, 0)
    }
    deepStrictEqual(
      (yield* run(withEnv(withSecret, inEnvironment.env), json(), shows)).code,
      0
    )
    // The id alone leads nowhere.
    write(".env", "STORE_API_CLIENT_ID=my-client")
    const inBoth = withEnv(without(inEnvironment, "STORE_API_CLIENT_ID"), { STORE_API_CLIENT_SECRET: secret })
    deepStrictEqual((yield* run(inBoth, json(["--no-cache"]), shows)).code, 0)
  })

  test.live("take the secret from a file or from standard input, without the end of its line", function*() {
    const { inEnvironment, write } = yield* started
    write("secret", `${secret}\n`)
    deepStrictEqual((yield* run(inEnvironment, json(["--secret-file", "secret", "--no-cache"]), shows)).code, 0)
    const given = { ...shows, stdin: `${secret}\r\n` }
    deepStrictEqual((yield* run(inEnvironment, json(["--secret-file", "-", "--no-cache"]), given)).code, 0)
    const missing = yield* run(inEnvironment, json(["--secret-file", "nothing"]))
    deepStrictEqual([missing.code, missing.stderr], [
      3,
      "store-api: Cannot read nothing, the file of --secret-file.\n"
    ])
    const empty = yield* run(inEnvironment, json(["--secret-file", "-"]))
    deepStrictEqual([empty.code, empty.stderr], [
      3,
      "store-api: Standard input, the file of --secret-file, is empty.\n"
    ])
  })

  test.live("a folder holds neither a secret nor a body", function*() {
    const { inEnvironment } = yield* started
    deepStrictEqual((yield* run(inEnvironment, json(["--secret-file", "."]))).code, 3)
    const body = yield* run(
      withEnv(inEnvironment, { STORE_API_CLIENT_SECRET: secret }),
      ["call", "/", "--api-url", "http://127.0.0.1:9", "--data", "@."]
    )
    deepStrictEqual([body.code, body.stderr], [3, "store-api: --data @. is a folder: name a file.\n"])
  })

  test.live("that are missing are named all at once", function*() {
    const { user } = yield* started
    const none = yield* run(user, ["call", "/orders"])
    deepStrictEqual([none.code, none.stderr], [
      3,
      "store-api: STORE_API_AUTH_URL, STORE_API_CLIENT_ID, STORE_API_URL and STORE_API_CLIENT_SECRET are not set. Set " +
      "them in the environment or in .env, or use --auth-url, --client-id, --api-url and --secret-file.\n"
    ])
  })

  test.live("that cannot be used are named, in one sentence, without their value", function*() {
    const { inEnvironment } = yield* started
    const withSecret = withEnv(inEnvironment, { STORE_API_CLIENT_SECRET: secret })
    const faults: Record<string, Record<string, string>> = {
      STORE_API_AUTH_URL: { STORE_API_AUTH_URL: "canary" },
      STORE_API_CLIENT_ID: { STORE_API_CLIENT_ID: "" },
      STORE_API_CLIENT_SECRET: { STORE_API_CLIENT_SECRET: "canary&" },
      STORE_API_TOKEN_FOLDER: { STORE_API_TOKEN_FOLDER: "" },
      "--allow-insecure": { STORE_API_AUTH_URL: "http://canary.example" },
      HTTPS_PROXY: { HTTPS_PROXY: "canary" }
    }
    for (const [named, change] of Object.entries(faults)) {
      const outcome = yield* Effect.scoped(
        Effect.flatMap(withProxies(withSecret, change), (user) => run(user, ["token"]))
      )
      deepStrictEqual([outcome.code, outcome.stdout], [3, ""])
      assert.include(outcome.stderr, named)
      assert.match(outcome.stderr, /^store-api: [^\n]*[.]\n$/)
      assert.notInclude(outcome.stderr, "canary")
    }
  })

  test.live("are named in errors by the flag or the variable that the user gave", function*() {
    const { inEnvironment, write } = yield* started
    const withSecret = withEnv(inEnvironment, { STORE_API_CLIENT_SECRET: secret })
    write("bad", "canary&")
    const given: ReadonlyArray<readonly [ReadonlyArray<string>, RegExp]> = [
      [["--auth-url", "canary"], /^store-api: --auth-url is not a URL/],
      [["--auth-url", "http://canary.example"], /^store-api: --auth-url must be an https URL.*--allow-insecure/],
      [["--auth-url", "http://canary.example?x"], /^store-api: --auth-url must not have a query\.\n$/],
      [["--secret-file", "bad"], /^store-api: --secret-file /],
      [["--auth-url", "http://127.0.0.1:9"], /check --auth-url, /]
    ]
    for (const [args, sentence] of given) {
      const { stderr } = yield* run(withSecret, ["token", ...args])
      assert.match(stderr, sentence)
      assert.notInclude(stderr, "canary")
    }
  })

  test.live("there is no flag for the secret, and a secret given as a flag is not printed", function*() {
    const { inEnvironment } = yield* started
    for (const args of [["--secret", secret], [`--client-secret=${secret}`], [`--SECRET=${secret}`]]) {
      for (const command of [["token"], ["call", "/"], ["check"]]) {
        const { code, stderr } = yield* run(inEnvironment, [...command, ...args])
        assert.strictEqual(code, 2)
        assert.include(stderr, "A secret is never a flag")
      }
    }
  })
})
