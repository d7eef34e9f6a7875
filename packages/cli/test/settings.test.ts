import { spawnSync } from "node:child_process"
import { mkdirSync, rmdirSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { assert, describe, it } from "@effect/vitest"
import { deepStrictEqual } from "@effect/vitest/utils"
import { Emulator } from "@store-api/emulator"
import { Effect, Redacted } from "effect"
import { test } from "../../core/test/support/test.js"
import { newUser, prints, refuses, run, type User, withEnv, without, withProxies } from "./support/cli.js"

/** A client whose secret a careless reader of files would change. */
const secret = "in$HOME #no\\comment'=1"

const started = Effect.gen(function*() {
  const emulator = yield* Emulator.make({
    clients: [{ clientId: "my-client", clientSecret: Redacted.make(secret) }]
  })
  const user = yield* newUser({}, Effect.succeed([secret]))
  const write = (name: string, text: string) => writeFileSync(join(user.cwd, name), text)
  const lines = [`STORE_API_AUTH_URL=${emulator.url}`, "STORE_API_CLIENT_ID=my-client"]
  const inEnvironment = withEnv(user, asRecord(lines))
  return {
    emulator,
    user,
    write,
    lines,
    inEnvironment,
    withSecret: withEnv(inEnvironment, { STORE_API_CLIENT_SECRET: secret })
  }
})

const asRecord = (lines: ReadonlyArray<string>) =>
  Object.fromEntries(lines.map((line) => [line.slice(0, line.indexOf("=")), line.slice(line.indexOf("=") + 1)]))

const fresh = "token --no-cache"

describe("settings", () => {
  test.live("come from .env or from the file of --dotenv, the secret as it stands there", function*() {
    const { lines, user, write } = yield* started
    write(".env", [...lines, `STORE_API_CLIENT_SECRET="${secret}"`].join("\n"))
    yield* prints(user, fresh)
    write(".env", "")
    write("my.env", [...lines, `export STORE_API_CLIENT_SECRET="${secret}"`].join("\r\n"))
    yield* prints(user, `${fresh} --dotenv my.env`)
  })

  test.live("from flags before the environment, and from there before .env", function*() {
    const { emulator, inEnvironment, user, write } = yield* started
    write(".env", `STORE_API_AUTH_URL=http://127.0.0.1:9\nSTORE_API_CLIENT_SECRET="${secret}"`)
    yield* prints(inEnvironment, fresh)
    const wrong = withEnv(inEnvironment, { STORE_API_CLIENT_ID: "nobody" })
    yield* refuses(wrong, fresh, 4, /401/)
    yield* prints(wrong, `${fresh} --client-id my-client`)
    yield* prints(user, `${fresh} --auth-url ${emulator.url} --client-id=my-client`)
  })

  test.live("skip a .env that is a folder, or a pipe without a writer", function*() {
    const { withSecret } = yield* started
    const path = join(withSecret.cwd, ".env")
    mkdirSync(path)
    yield* prints(withSecret, fresh)
    yield* refuses(withSecret, "token --dotenv .env", 3, "Cannot read .env, the file of --dotenv.")
    rmdirSync(path)
    assert.strictEqual(spawnSync("mkfifo", [path]).status, 0)
    yield* prints(withSecret, fresh)
  })

  test.live("never send a secret of another origin to the address of a .env that was not named", function*() {
    const { emulator, inEnvironment, lines, user, withSecret, write } = yield* started
    write(".env", [...lines, `STORE_API_URL=${emulator.url}`, "STORE_API_CLIENT_SECRET=another"].join("\n"))
    write("secret", secret)
    const alone = withEnv(user, { STORE_API_CLIENT_SECRET: secret })
    const astray: ReadonlyArray<readonly [User, line: string, from: string, names: string]> = [
      [alone, "token", "the environment", "STORE_API_AUTH_URL of"],
      [alone, "call /", "the environment", "STORE_API_AUTH_URL and STORE_API_URL of"],
      [alone, "status", "the environment", "STORE_API_AUTH_URL of"],
      [user, "token --secret-file secret", "secret", "STORE_API_AUTH_URL of"],
      [user, "token --secret-file -", "standard input", "STORE_API_AUTH_URL of"],
      [inEnvironment, "call / --secret-file secret", "secret", "STORE_API_URL of"],
      [inEnvironment, "profile add books --secret-file secret", "secret", "STORE_API_URL of"]
    ]
    for (const [who, line, from, names] of astray) {
      const stderr = yield* refuses(
        who,
        line,
        3,
        /^store-api: [^\n]*--dotenv \.env; if not, give the address by flag [^\n]*[.]\n$/,
        secret
      )
      const verb = names.includes(" and ") ? "are" : "is"
      assert.include(stderr, `${names} a .env that you did not name ${verb} not used with the secret from ${from}.`)
    }
    const check = yield* run(alone, ["check"])
    deepStrictEqual(check.code, 3)
    assert.match(check.stdout, /^FAIL configuration [^]*--dotenv \.env/)
    deepStrictEqual(yield* emulator.requests, [])
    // What the sentence says, helps.
    for (const flag of ["--dotenv .env", `--auth-url ${emulator.url}`]) yield* prints(alone, `${fresh} ${flag}`)
    yield* prints(withSecret, fresh)
    // The id alone leads nowhere.
    write(".env", "STORE_API_CLIENT_ID=my-client")
    yield* prints(without(withSecret, "STORE_API_CLIENT_ID"), fresh)
  })

  test.live("take the secret from a file or from standard input, without the end of its line", function*() {
    const { inEnvironment, write } = yield* started
    write("secret", `${secret}\n`)
    yield* prints(inEnvironment, `${fresh} --secret-file secret`)
    yield* prints(inEnvironment, `${fresh} --secret-file -`, { stdin: `${secret}\r\n` })
  })

  it.live.each<[line: string, sentence: string | RegExp]>([
    ["token --dotenv=your.env", "Cannot read your.env, the file of --dotenv."],
    ["token --secret-file nothing", "Cannot read nothing, the file of --secret-file."],
    ["token --secret-file -", "Standard input, the file of --secret-file, is empty."],
    ["token --secret-file .", /^store-api: .* --secret-file/]
  ])("cannot be read: %s", ([line, sentence]) =>
    Effect.gen(function*() {
      yield* refuses((yield* started).inEnvironment, line, 3, sentence)
    }).pipe(Effect.scoped))

  test.live("that are missing are named all at once", function*() {
    yield* refuses(
      yield* newUser({}),
      "call /orders",
      3,
      "STORE_API_AUTH_URL, STORE_API_CLIENT_ID, STORE_API_URL and STORE_API_CLIENT_SECRET are not set. Set " +
        "them in the environment or in .env, or use --auth-url, --client-id, --api-url and --secret-file."
    )
  })

  it.live.each<[names: string, variables: Readonly<Record<string, string>>, line?: string]>([
    ["STORE_API_AUTH_URL", { STORE_API_AUTH_URL: "canary" }],
    ["STORE_API_CLIENT_ID", { STORE_API_CLIENT_ID: "" }],
    ["STORE_API_CLIENT_SECRET", { STORE_API_CLIENT_SECRET: "canary&" }],
    ["STORE_API_TOKEN_FOLDER", { STORE_API_TOKEN_FOLDER: "" }],
    ["--allow-insecure", { STORE_API_AUTH_URL: "http://canary.example" }],
    ["HTTPS_PROXY", { HTTPS_PROXY: "canary" }],
    ["--auth-url is not a URL", {}, "token --auth-url canary"],
    ["--auth-url must be an https URL", {}, "token --auth-url http://canary.example"],
    ["--auth-url must not have a query.", {}, "token --auth-url http://canary.example?x"],
    ["--secret-file ", {}, "token --secret-file bad"]
  ])(
    "are named as the user gave them, in one sentence without their value: %s %o %s",
    ([names, variables, line = "token"]) =>
      Effect.gen(function*() {
        const { withSecret, write } = yield* started
        write("bad", "canary&")
        const stderr = yield* refuses(yield* withProxies(withSecret, variables), line, 3, /^store-api: [^\n]*[.]\n$/)
        assert.include(stderr, line === "token" ? names : `store-api: ${names}`)
        assert.notInclude(stderr, "canary")
      }).pipe(Effect.scoped)
  )

  test.live("are named by their flag when the endpoint cannot be reached", function*() {
    yield* refuses((yield* started).withSecret, "token --auth-url http://127.0.0.1:9", 5, /check --auth-url, /)
  })

  test.live("there is no flag for the secret, and a secret given as a flag is not printed", function*() {
    const { inEnvironment } = yield* started
    for (const args of [["--secret", secret], [`--client-secret=${secret}`], [`--SECRET=${secret}`]]) {
      for (const command of [["token"], ["call", "/"], ["check"]]) {
        yield* refuses(inEnvironment, [...command, ...args], 2, /A secret is never a flag/)
      }
    }
  })
})
