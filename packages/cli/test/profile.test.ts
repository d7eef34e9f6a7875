import {
  chmodSync,
  chownSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  statSync,
  symlinkSync,
  writeFileSync
} from "node:fs"
import { join } from "node:path"
import { assert, describe } from "@effect/vitest"
import { deepStrictEqual } from "@effect/vitest/utils"
import { Emulator } from "@store-api/emulator"
import { Effect, Redacted } from "effect"
import { test } from "../../core/test/support/test.js"
import { newUser, onTerminal, profilesOf, run, type User, withEnv as withVariables } from "./support/cli.js"

const secrets = { blue: "the-invented-secret-of-blue", green: "the-invented-secret-of-green" }

type Shop = keyof typeof secrets

const shows = { shows: true }

/** Two stores, each with a service and a client of its own, and a user with a profile for each. */
const started = Effect.gen(function*() {
  const emulatorOf = (shop: Shop) =>
    Emulator.make({ clients: [{ clientId: shop, clientSecret: Redacted.make(secrets[shop]) }] })
  const [blue, green] = [yield* emulatorOf("blue"), yield* emulatorOf("green")]
  const user = yield* newUser({}, Effect.succeed(Object.values(secrets)))
  const folder = profilesOf(user)
  mkdirSync(folder, { recursive: true })
  const write = (name: string, lines: ReadonlyArray<string>, mode = 0o600) => {
    writeFileSync(join(folder, `${name}.env`), lines.join("\n"))
    chmodSync(join(folder, `${name}.env`), mode)
  }
  const linesOf = (shop: Shop, { url }: Emulator.Service) => [
    `STORE_API_AUTH_URL=${url}`,
    `STORE_API_URL=${url}`,
    `STORE_API_CLIENT_ID=${shop}`,
    `STORE_API_CLIENT_SECRET=${secrets[shop]}`
  ]
  const lines = { blue: linesOf("blue", blue), green: linesOf("green", green) }
  write("blue", lines.blue)
  write("green", lines.green)
  return { blue, green, user, folder, write, lines }
})

const withEnv = (user: User, lines: ReadonlyArray<string>): User =>
  withVariables(user, Object.fromEntries(lines.map((line) => line.split(/=(.*)/s).slice(0, 2) as [string, string])))

const clientsAt = (emulator: Emulator.Service) =>
  Effect.map(
    emulator.requests,
    (requests) =>
      requests.filter(({ kind }) => kind === "token").map(({ body }) =>
        /client_id=(\w+)/.exec(Redacted.value(body))?.[1]
      )
  )

describe("a profile", () => {
  test.live("is used by its name, each with its own stored token", function*() {
    const { blue, green, user } = yield* started
    for (const profile of ["blue", "green"]) {
      const call = yield* run(user, ["call", "/orders", "--profile", profile])
      deepStrictEqual([call.code, (JSON.parse(call.stdout) as { readonly clientId: string }).clientId], [0, profile])
      deepStrictEqual((yield* run(user, ["token", `--profile=${profile}`], shows)).code, 0)
    }
    const fromVariable = yield* run(withEnv(user, ["STORE_API_PROFILE=blue"]), ["token"], shows)
    deepStrictEqual((yield* run(user, ["token", "--profile", "blue"], shows)).stdout, fromVariable.stdout)
    // The flag comes first.
    const flag = yield* run(withEnv(user, ["STORE_API_PROFILE=blue"]), ["token", "--profile", "green"], shows)
    assert.notStrictEqual(flag.stdout, fromVariable.stdout)
    deepStrictEqual([yield* clientsAt(blue), yield* clientsAt(green)], [["blue"], ["green"]])
  })

  test.live("is named by status and check", function*() {
    const { user } = yield* started
    const status = yield* run(user, ["status", "--profile", "blue"])
    assert.match(status.stdout, /^profile {2}blue\nfolder {3}.*\n$/)
    const json = JSON.parse((yield* run(user, ["status", "--json", "--profile", "blue"])).stdout) as object
    deepStrictEqual(Object.entries(json)[0], ["profile", "blue"])
    const check = yield* run(withEnv(user, ["STORE_API_PROFILE=blue"]), ["check", "/orders"])
    deepStrictEqual(check.code, 0)
    assert.include(check.stdout, "all from the profile blue")
  })

  test.live("is mixed neither with the environment nor with .env: no secret goes to the address of another", function*() {
    const { blue, green, lines, user, write } = yield* started
    // Each of these alone would lead a secret astray, were it read.
    write("without-secret", lines.blue.slice(0, 3))
    write("without-address", lines.blue.slice(2))
    const inEnvironment = withEnv(user, lines.green)
    for (const who of [inEnvironment, user]) {
      if (who === user) writeFileSync(join(user.cwd, ".env"), lines.green.join("\n"))
      const missing = [["without-secret", "STORE_API_CLIENT_SECRET", "--secret-file"], [
        "without-address",
        "STORE_API_AUTH_URL",
        "--auth-url"
      ]] as const
      for (const [profile, variable, flag] of missing) {
        const { code, stderr, stdout } = yield* run(who, ["token", "--profile", profile])
        deepStrictEqual([code, stdout], [3, ""])
        assert.match(
          stderr,
          new RegExp(
            `^store-api: ${variable} is not set\\. Set it in the profile ${profile} \\(.*\\), or use ${flag}\\.\n$`
          )
        )
      }
      deepStrictEqual((yield* run(who, ["token", "--profile", "blue", "--no-cache"], shows)).code, 0)
    }
    deepStrictEqual([yield* clientsAt(blue), yield* clientsAt(green)], [["blue", "blue"], []])
    // Without the profile, what stands in the environment is used: it would have been found.
    deepStrictEqual((yield* run(inEnvironment, ["token"], shows)).code, 0)
    deepStrictEqual(yield* clientsAt(green), ["green"])
  })

  test.live("takes flags, a secret from a file or a pipe, and the folder of tokens from the environment", function*() {
    const { blue, lines, user, write } = yield* started
    write("bare", lines.blue.slice(0, 3), 0o644)
    writeFileSync(join(user.cwd, "secret"), secrets.blue)
    const piped = { ...shows, stdin: secrets.blue }
    const args = ["token", "--profile", "bare"]
    deepStrictEqual((yield* run(user, [...args, "--secret-file", "secret"], shows)).code, 0)
    deepStrictEqual((yield* run(user, [...args, "--secret-file", "-", "--no-cache"], piped)).code, 0)
    deepStrictEqual((yield* run(user, ["token", "--profile", "blue", "--client-id", "nobody"])).code, 4)
    deepStrictEqual(yield* clientsAt(blue), ["blue", "blue", "nobody"])
    const tokens = join(user.cwd, "elsewhere")
    const status = yield* run(withEnv(user, [`STORE_API_TOKEN_FOLDER=${tokens}`]), ["status", "--profile", "blue"])
    assert.include(status.stdout, `\nfolder   ${tokens}\n`)
  })

  test.live("that is not there is a fault that lists those that are", function*() {
    const { folder, lines, user, write } = yield* started
    write("a.b_c-1", lines.blue)
    writeFileSync(join(folder, "notes.txt"), "")
    const unknown = yield* run(user, ["token", "--profile", "red"])
    deepStrictEqual([unknown.code, unknown.stderr], [
      3,
      "store-api: There is no profile red. Known: a.b_c-1, blue and green.\n"
    ])
    deepStrictEqual((yield* run(user, ["token", "--profile", "a.b_c-1"], shows)).code, 0)
    const nobody = yield* newUser({})
    const none = yield* run(nobody, ["check", "--profile", "red"])
    deepStrictEqual(none.code, 3)
    assert.match(
      none.stdout,
      /^FAIL configuration [^]*There is no profile red\. Create it: store-api profile add red\./
    )
  })

  test.live("has a name that leads nowhere else", function*() {
    const { lines, user } = yield* started
    writeFileSync(join(user.cwd, ".env"), lines.blue.join("\n"))
    const refused = (who: User, args: ReadonlyArray<string>, by: string) =>
      Effect.map(run(who, ["token", ...args]), (outcome) =>
        deepStrictEqual(outcome, {
          code: 3,
          stdout: "",
          stderr: `store-api: ${by} must be letters, digits, "-", "_" and ".", without a "." at the start.\n`
        }))
    const absolute = join(user.cwd, "secret")
    for (const name of ["", "..", ".hidden", "../blue", "a/b", "a\\b", absolute, "caf\u00e9", "a\nb"]) {
      yield* refused(withEnv(user, [`STORE_API_PROFILE=${name}`]), [], "STORE_API_PROFILE")
    }
    for (const name of ["", "../blue"]) yield* refused(user, ["--profile", name], "--profile")
    const both = yield* run(user, ["token", "--profile", "blue", "--dotenv", ".env"])
    deepStrictEqual([both.code, both.stderr], [
      2,
      "store-api: Use either --dotenv or --profile: a profile has its own file.\n"
    ])
  })
})

describe("store-api profile", () => {
  test.live("add saves the settings that count, so that they work by name; list and remove", function*() {
    const { blue, user } = yield* started
    const secret = "it's a \"secret\" $HOME #1"
    const emulator = yield* Emulator.make({ clients: [{ clientId: "me", clientSecret: Redacted.make(secret) }] })
    const owner = { ...user, secrets: Effect.succeed([secret]) }
    const add = ["profile", "add", "mine", "--auth-url", emulator.url, "--client-id", "me", "--secret-file", "-"]
    const saved = yield* run(owner, add, { stdin: `${secret}\n` })
    deepStrictEqual([saved.code, saved.stdout], [0, ""])
    assert.match(
      saved.stderr,
      /^store-api: The profile mine is saved in .*mine\.env: --auth-url; --client-id; --secret-file from standard input\.\n$/
    )
    deepStrictEqual((yield* run(owner, ["token", "--profile", "mine"], shows)).code, 0)
    deepStrictEqual((yield* run(user, ["profile", "list"])).stdout, "blue\ngreen\nmine\n")
    writeFileSync(join(profilesOf(user), "mine.env.part"), secret)
    deepStrictEqual((yield* run(user, ["profile", "remove", "mine"])).code, 0)
    deepStrictEqual(readdirSync(profilesOf(user)).sort(), ["blue.env", "green.env"])
    deepStrictEqual((yield* run(user, ["profile", "list"])).stdout, "blue\ngreen\n")
    const gone = yield* run(user, ["profile", "remove", "mine"])
    deepStrictEqual([gone.code, gone.stderr], [3, "store-api: There is no profile mine. Known: blue and green.\n"])
    for (const name of ["blue", "green"]) yield* run(user, ["profile", "remove", name])
    const none = { code: 0, stdout: "", stderr: "store-api: No profile is saved.\n" }
    deepStrictEqual(yield* run(user, ["profile", "list"]), none)
    deepStrictEqual(yield* clientsAt(blue), [])
  })

  test.live("add replaces a profile only with --force, and writes a file for this user alone", function*() {
    const { folder, lines, user } = yield* started
    const owner = withEnv(user, lines.green)
    const before = readFileSync(join(folder, "blue.env"), "utf8")
    const refused = yield* run(owner, ["profile", "add", "blue"])
    deepStrictEqual([refused.code, refused.stderr], [
      2,
      "store-api: The profile blue exists. Use --force to replace it.\n"
    ])
    assert.strictEqual(readFileSync(join(folder, "blue.env"), "utf8"), before)
    chmodSync(join(folder, "blue.env"), 0o644)
    deepStrictEqual((yield* run(owner, ["profile", "add", "blue", "--force"])).code, 0)
    assert.strictEqual(statSync(join(folder, "blue.env")).mode & 0o777, 0o600)
    const { stdout } = yield* run(user, ["call", "/orders", "--profile", "blue"])
    deepStrictEqual((JSON.parse(stdout) as { readonly clientId: string }).clientId, "green")
    deepStrictEqual((yield* run(owner, ["profile", "add", "../blue"])).code, 3)
    deepStrictEqual(readdirSync(folder).sort(), ["blue.env", "green.env"])
    // A file that cannot replace the other leaves no copy of the secret.
    mkdirSync(join(folder, "nest.env", "egg"), { recursive: true })
    const nest = yield* run(owner, ["profile", "add", "nest", "--force"])
    deepStrictEqual([nest.code, nest.stderr], [3, `store-api: Cannot write ${join(folder, "nest.env")}.\n`])
    const kept = yield* run(owner, ["profile", "remove", "nest"])
    deepStrictEqual([kept.code, kept.stderr], [3, `store-api: Cannot remove ${join(folder, "nest.env")}.\n`])
    deepStrictEqual(readdirSync(folder).sort(), ["blue.env", "green.env", "nest.env"])
  })

  test.live("add saves the folder of the cache, and no URL that cannot be used", function*() {
    const { folder, lines, user } = yield* started
    const owner = withEnv(user, lines.green)
    const cache = join(user.cwd, "its own cache")
    deepStrictEqual((yield* run(owner, ["profile", "add", "mine", "--cache-dir", "its own cache"])).code, 0)
    yield* run(user, ["token", "--profile", "mine"], shows)
    assert.include((yield* run(user, ["status", "--profile", "mine"])).stdout, `folder   ${cache}\n`)
    const urls = [["--auth-url", "auth.example"], ["--auth-url", "http://auth.example"], [
      "--api-url",
      "https://api/?a=b"
    ]]
    for (const [flag = "", url = ""] of urls) {
      const { code, stderr } = yield* run(owner, ["profile", "add", "wrong", flag, url])
      assert.strictEqual(code, 3)
      assert.match(stderr, new RegExp(`^store-api: ${flag} (must|is) .*\\n$`))
    }
    deepStrictEqual(readdirSync(folder).sort(), ["blue.env", "green.env", "mine.env"])
  })
})

describe.skipIf(process.platform === "win32")(
  "a profile that is not the user's alone",
  () => {
    test.live("is not used: others could read its secret, or lead one elsewhere", function*() {
      const { blue, lines, user, write } = yield* started
      const faults: ReadonlyArray<readonly [number, ReadonlyArray<string>, string]> = [
        [0o640, lines.blue, "it holds a secret and other users may read its file"],
        [0o604, lines.blue, "it holds a secret and other users may read its file"],
        [0o620, lines.blue, "other users may write to its file"],
        [0o602, lines.blue.slice(0, 3), "other users may write to its file"]
      ]
      for (const [mode, its, why] of faults) {
        write("open", its, mode)
        const { code, stderr, stdout } = yield* run(user, ["token", "--profile", "open", "--secret-file", "-"], {
          stdin: secrets.blue
        })
        deepStrictEqual([code, stdout], [3, ""])
        assert.match(
          stderr,
          new RegExp(
            `^store-api: The profile open is not used, because ${why}\\. Make .* yours, with mode 600\\.\n$`
          )
        )
      }
      deepStrictEqual(yield* clientsAt(blue), [])
      write("open", lines.blue, 0o400)
      deepStrictEqual((yield* run(user, ["token", "--profile", "open"], shows)).code, 0)
    })

    test.live("such as one that is a folder, or of another user", function*() {
      const { folder, user, write } = yield* started
      mkdirSync(join(folder, "nest.env"), { mode: 0o700 })
      const nest = yield* run(user, ["token", "--profile", "nest"])
      deepStrictEqual([nest.code, nest.stderr], [
        3,
        `store-api: Cannot read the profile nest, ${join(folder, "nest.env")}.\n`
      ])
      if (process.getuid?.() === 0) {
        write("theirs", [])
        chownSync(join(folder, "theirs.env"), 12_345, 12_345)
      } else symlinkSync("/etc/passwd", join(folder, "theirs.env"))
      const theirs = yield* run(user, ["token", "--profile", "theirs"])
      deepStrictEqual(theirs.code, 3)
      assert.include(theirs.stderr, "because its file belongs to another user")
    })
  }
)

describe("a profile without a secret, on a terminal", () => {
  test.live("has it asked for", function*() {
    const { green, lines, user, write } = yield* started
    write("bare", lines.green.slice(0, 3))
    // Not that of another service, which is set.
    const { code, stdout } = yield* onTerminal(
      withEnv(user, [`STORE_API_CLIENT_SECRET=${secrets.blue}`]),
      ["token", "--profile", "bare"],
      { ...shows, stdout: "pipe", typed: `${secrets.green}\r` }
    )
    const [token] = yield* green.tokens
    deepStrictEqual([code, stdout], [0, `${token === undefined ? "" : Redacted.value(token.value)}\n`])
  })
})
