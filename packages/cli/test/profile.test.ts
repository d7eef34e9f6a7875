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
import { assert, describe, it } from "@effect/vitest"
import { deepStrictEqual } from "@effect/vitest/utils"
import { Emulator } from "@store-api/emulator"
import { Effect, Redacted } from "effect"
import { test } from "../../core/test/support/test.js"
import {
  newUser,
  onTerminal,
  prints,
  profilesOf,
  refuses,
  run,
  type User,
  withEnv as withVariables
} from "./support/cli.js"

const secrets = { blue: "the-invented-secret-of-blue", green: "the-invented-secret-of-green" }

type Shop = keyof typeof secrets

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

const clientOf = (echo: string) => (JSON.parse(echo) as { readonly clientId: string }).clientId

describe("a profile", () => {
  test.live("is used by its name, each with its own stored token", function*() {
    const { blue, green, user } = yield* started
    for (const profile of ["blue", "green"]) {
      assert.strictEqual(clientOf(yield* prints(user, `call /orders --profile ${profile}`)), profile)
      yield* prints(user, `token --profile=${profile}`)
    }
    const named = withEnv(user, ["STORE_API_PROFILE=blue"])
    const fromVariable = yield* prints(named, "token")
    assert.strictEqual(yield* prints(user, "token --profile blue"), fromVariable)
    // The flag comes first.
    assert.notStrictEqual(yield* prints(named, "token --profile green"), fromVariable)
    deepStrictEqual([yield* clientsAt(blue), yield* clientsAt(green)], [["blue"], ["green"]])
  })

  test.live("is named by status and check", function*() {
    const { user } = yield* started
    yield* prints(user, "token --profile blue")
    assert.match(yield* prints(user, "status --profile blue"), /^profile {2}blue\nfolder {3}.*\n/)
    const json = JSON.parse(yield* prints(user, "status --json --profile blue")) as object
    deepStrictEqual(Object.entries(json)[0], ["profile", "blue"])
    const check = yield* prints(withEnv(user, ["STORE_API_PROFILE=blue"]), "check /orders")
    assert.include(check, "all from the profile blue")
  })

  test.live("is mixed neither with the environment nor with .env: no secret goes to the address of another", function*() {
    const { blue, green, lines, user, write } = yield* started
    // Each of these alone would lead a secret astray, were it read.
    write("without-secret", lines.blue.slice(0, 3))
    write("without-address", lines.blue.slice(2))
    const inEnvironment = withEnv(user, lines.green)
    for (const who of [inEnvironment, user]) {
      if (who === user) writeFileSync(join(user.cwd, ".env"), lines.green.join("\n"))
      const missing = [
        ["without-secret", "STORE_API_CLIENT_SECRET", "--secret-file"],
        ["without-address", "STORE_API_AUTH_URL", "--auth-url"]
      ] as const
      for (const [profile, variable, flag] of missing) {
        const place = `Set it in the profile ${profile} \\(.*\\), or use ${flag}`
        const sentence = new RegExp(`^store-api: ${variable} is not set\\. ${place}\\.\n$`)
        yield* refuses(who, `token --profile ${profile}`, 3, sentence)
      }
      yield* prints(who, "token --profile blue --no-cache")
    }
    deepStrictEqual([yield* clientsAt(blue), yield* clientsAt(green)], [["blue", "blue"], []])
    // Without the profile, what stands in the environment is used: it would have been found.
    yield* prints(inEnvironment, "token")
    deepStrictEqual(yield* clientsAt(green), ["green"])
  })

  test.live("takes flags, a secret from a file or a pipe, and the folder of tokens from the environment", function*() {
    const { blue, lines, user, write } = yield* started
    write("bare", lines.blue.slice(0, 3), 0o644)
    writeFileSync(join(user.cwd, "secret"), secrets.blue)
    yield* prints(user, "token --profile bare --secret-file secret")
    yield* prints(user, "token --profile bare --secret-file - --no-cache", { stdin: secrets.blue })
    yield* refuses(user, "token --profile blue --client-id other", 4, /401/)
    deepStrictEqual(yield* clientsAt(blue), ["blue", "blue", "other"])
    const tokens = join(user.cwd, "elsewhere")
    const status = yield* run(withEnv(user, [`STORE_API_TOKEN_FOLDER=${tokens}`]), ["status", "--profile", "blue"])
    assert.include(status.stdout, `\nfolder   ${tokens}\n`)
  })

  test.live("that is not there is a fault that lists those that are", function*() {
    const { folder, lines, user, write } = yield* started
    write("a.b_c-1", lines.blue)
    writeFileSync(join(folder, "notes.txt"), "")
    yield* refuses(user, "token --profile red", 3, "There is no profile red. Known: a.b_c-1, blue and green.")
    yield* prints(user, "token --profile a.b_c-1")
    const none = yield* run(yield* newUser({}), ["check", "--profile", "red"])
    deepStrictEqual(none.code, 3)
    assert.match(
      none.stdout,
      /^FAIL configuration [^]*There is no profile red\. Create it: store-api profile add red\./
    )
  })

  test.live("has a name that leads nowhere else", function*() {
    const { lines, user } = yield* started
    writeFileSync(join(user.cwd, ".env"), lines.blue.join("\n"))
    const sentence = "must be letters, digits, \"-\", \"_\" and \".\", without a \".\" at the start."
    const absolute = join(user.cwd, "secret")
    for (const name of ["", "..", ".hidden", "../blue", "a/b", "a\\b", absolute, "caf\u00e9", "a\nb"]) {
      yield* refuses(withEnv(user, [`STORE_API_PROFILE=${name}`]), "token", 3, `STORE_API_PROFILE ${sentence}`)
    }
    for (const name of ["", "../blue"]) yield* refuses(user, ["token", "--profile", name], 3, `--profile ${sentence}`)
    const both = "Use either --dotenv or --profile: a profile has its own file."
    yield* refuses(user, "token --profile blue --dotenv .env", 2, both)
  })
})

describe("store-api profile", () => {
  test.live("add saves the settings that count, so that they work by name; list and remove", function*() {
    const { blue, user } = yield* started
    const secret = "it's a \"secret\" $HOME #1"
    const emulator = yield* Emulator.make({ clients: [{ clientId: "me", clientSecret: Redacted.make(secret) }] })
    const owner = { ...user, secrets: Effect.succeed([secret]) }
    yield* refuses(
      owner,
      `profile add mine --auth-url ${emulator.url} --client-id me --secret-file -`,
      0,
      /^store-api: The profile mine is saved in .*mine\.env: --auth-url; --client-id; --secret-file from standard input\.\n$/,
      `${secret}\n`
    )
    yield* prints(owner, "token --profile mine")
    assert.strictEqual(yield* prints(user, "profile list"), "blue\ngreen\nmine\n")
    writeFileSync(join(profilesOf(user), "mine.env.part"), secret)
    deepStrictEqual((yield* run(user, ["profile", "remove", "mine"])).code, 0)
    deepStrictEqual(readdirSync(profilesOf(user)).sort(), ["blue.env", "green.env"])
    assert.strictEqual(yield* prints(user, "profile list"), "blue\ngreen\n")
    yield* refuses(user, "profile remove mine", 3, "There is no profile mine. Known: blue and green.")
    for (const name of ["blue", "green"]) yield* run(user, ["profile", "remove", name])
    yield* refuses(user, "profile list", 0, "No profile is saved.")
    deepStrictEqual(yield* clientsAt(blue), [])
  })

  test.live("add replaces a profile only with --force, and writes a file for this user alone", function*() {
    const { folder, lines, user } = yield* started
    const owner = withEnv(user, lines.green)
    const file = join(folder, "blue.env")
    const before = readFileSync(file, "utf8")
    yield* refuses(owner, "profile add blue", 2, "The profile blue exists. Use --force to replace it.")
    assert.strictEqual(readFileSync(file, "utf8"), before)
    chmodSync(file, 0o644)
    deepStrictEqual((yield* run(owner, ["profile", "add", "blue", "--force"])).code, 0)
    assert.strictEqual(statSync(file).mode & 0o777, 0o600)
    assert.strictEqual(clientOf(yield* prints(user, "call /orders --profile blue")), "green")
    deepStrictEqual((yield* run(owner, ["profile", "add", "../blue"])).code, 3)
    deepStrictEqual(readdirSync(folder).sort(), ["blue.env", "green.env"])
    // A file that cannot replace the other leaves no copy of the secret.
    const nest = join(folder, "nest.env")
    mkdirSync(join(nest, "egg"), { recursive: true })
    yield* refuses(owner, "profile add nest --force", 3, `Cannot write ${nest}.`)
    yield* refuses(owner, "profile remove nest", 3, `Cannot remove ${nest}.`)
    deepStrictEqual(readdirSync(folder).sort(), ["blue.env", "green.env", "nest.env"])
  })

  test.live("add saves the folder of the cache, and no URL that cannot be used", function*() {
    const { folder, lines, user } = yield* started
    const owner = withEnv(user, lines.green)
    deepStrictEqual((yield* run(owner, ["profile", "add", "mine", "--cache-dir", "its own cache"])).code, 0)
    yield* prints(user, "token --profile mine")
    const cache = join(user.cwd, "its own cache")
    assert.include(yield* prints(user, "status --profile mine"), `folder   ${cache}\n`)
    for (const given of ["--auth-url auth.example", "--auth-url http://auth.example", "--api-url https://api/?a=b"]) {
      const [flag = ""] = given.split(" ")
      yield* refuses(owner, `profile add wrong ${given}`, 3, new RegExp(`^store-api: ${flag} (must|is) .*\\n$`))
    }
    deepStrictEqual(readdirSync(folder).sort(), ["blue.env", "green.env", "mine.env"])
  })
})

const readable = "it holds a secret and other users may read its file"
const writable = "other users may write to its file"

describe.skipIf(process.platform === "win32")("a profile that is not the user's alone", () => {
  it.live.each<[mode: number, lines: number, why: string]>([
    [0o640, 4, readable],
    [0o604, 4, readable],
    [0o620, 4, writable],
    [0o602, 3, writable]
  ])("is not used: mode %o, with %i lines", ([mode, count, why]) =>
    Effect.gen(function*() {
      const { blue, lines, user, write } = yield* started
      write("open", lines.blue.slice(0, count), mode)
      const sentence = `The profile open is not used, because ${why}\\. Make .* yours, with mode 600\\.`
      const line = "token --profile open --secret-file -"
      yield* refuses(user, line, 3, new RegExp(`^store-api: ${sentence}\n$`), secrets.blue)
      deepStrictEqual(yield* clientsAt(blue), [])
      write("open", lines.blue, 0o400)
      yield* prints(user, "token --profile open")
    }).pipe(Effect.scoped))

  test.live("such as one that is a folder, or of another user", function*() {
    const { folder, user, write } = yield* started
    const nest = join(folder, "nest.env")
    mkdirSync(nest, { mode: 0o700 })
    yield* refuses(user, "token --profile nest", 3, `Cannot read the profile nest, ${nest}.`)
    if (process.getuid?.() === 0) {
      write("theirs", [])
      chownSync(join(folder, "theirs.env"), 12_345, 12_345)
    } else symlinkSync("/etc/passwd", join(folder, "theirs.env"))
    yield* refuses(user, "token --profile theirs", 3, /because its file belongs to another user/)
  })
})

describe("a profile without a secret, on a terminal", () => {
  test.live("has it asked for", function*() {
    const { green, lines, user, write } = yield* started
    write("bare", lines.green.slice(0, 3))
    // Not that of another service, which is set.
    const { code, stdout } = yield* onTerminal(
      withEnv(user, [`STORE_API_CLIENT_SECRET=${secrets.blue}`]),
      ["token", "--profile", "bare"],
      { shows: true, stdout: "pipe", typed: `${secrets.green}\r` }
    )
    const [token] = yield* green.tokens
    deepStrictEqual([code, stdout], [0, `${token === undefined ? "" : Redacted.value(token.value)}\n`])
  })
})
