/** Where settings come from: flags, the environment, a `.env` or a profile. */
import { spawnSync } from "node:child_process"
import * as Fs from "node:fs"
import { join } from "node:path"
import { assert, describe } from "@effect/vitest"
import { deepStrictEqual } from "@effect/vitest/utils"
import { Emulator } from "@store-api/emulator"
import { test } from "@store-api/testing/test"
import { Effect, Redacted } from "effect"
import {
  newUser,
  onTerminal,
  prints,
  profilesOf,
  refuses,
  run,
  type User,
  withEnv,
  without
} from "../support/cli.js"

/** Client secrets; a careless reader of files would change the first. */
const secrets = { blue: "in$HOME #no\\comment'=1", green: "the-invented-secret-of-green" }
const secret = secrets.blue

type Shop = keyof typeof secrets

/** Two stores, each with a service and a client of its own, and a user with a profile for each. */
const started = Effect.gen(function*() {
  const store = (shop: Shop) =>
    Effect.map(
      Emulator.make({
        clients: [{ clientId: shop, clientSecret: Redacted.make(secrets[shop]) }]
      }),
      (emulator) => {
        const lines = [
          `STORE_API_AUTH_URL=${emulator.url}`,
          `STORE_API_URL=${emulator.url}`,
          `STORE_API_CLIENT_ID=${shop}`,
          `STORE_API_CLIENT_SECRET="${secrets[shop]}"`
        ]
        /** The client ids of the token requests. */
        const clients = Effect.map(emulator.requests, (requests) =>
          requests.filter(({ kind }) =>
            kind === "token"
          )
            .map(({ body }) => /client_id=(\w+)/.exec(Redacted.value(body))?.[1]))
        return { ...emulator, clients, lines }
      }
    )
  const [blue, green] = [yield* store("blue"), yield* store("green")]
  const user = yield* newUser({}, Effect.succeed(Object.values(secrets)))
  const folder = profilesOf(user)
  Fs.mkdirSync(folder, { recursive: true })
  const write = (name: string, lines: ReadonlyArray<string> | string) =>
    Fs.writeFileSync(
      join(user.cwd, name),
      typeof lines === "string" ? lines : lines.join("\n")
    )
  const save = (profile: string, lines: ReadonlyArray<string>, mode = 0o600) => {
    Fs.writeFileSync(join(folder, `${profile}.env`), lines.join("\n"))
    Fs.chmodSync(join(folder, `${profile}.env`), mode)
  }
  save("blue", blue.lines)
  save("green", green.lines)
  return { blue, green, user, folder, save, write }
})

/** The user with the variables of these lines. */
const having = (user: User, lines: ReadonlyArray<string>): User =>
  withEnv(
    user,
    Object.fromEntries(
      lines.map((line) => line.split(/=(.*)/s)).map((
        [name = "", value = ""]
      ) => [name, value.replace(/^"|"$/g, "")])
    )
  )

/** The settings of blue in the environment: with its secret, or the address and the client alone. */
const startedInBlue = Effect.map(started, (all) => ({
  ...all,
  complete: having(all.user, all.blue.lines.filter((_, n) => n !== 1)),
  inEnvironment: having(all.user, all.blue.lines.filter((_, n) => n === 0 || n === 2))
}))

const fresh = "token --no-cache"

describe("settings", () => {
  test.live("come from .env or from the file of --dotenv, the secret as it stands there", function*() {
    const { blue, user, write } = yield* started
    write(".env", blue.lines)
    yield* prints(user, fresh)
    write(".env", "")
    write("my.env", blue.lines.map((line) => `export ${line}\r`))
    yield* prints(user, `${fresh} --dotenv my.env`)
  })

  test.live("from flags before the environment, and from there before .env", function*() {
    const { blue, inEnvironment, user, write } = yield* startedInBlue
    write(".env", ["STORE_API_AUTH_URL=http://127.0.0.1:9", ...blue.lines.slice(3)])
    yield* prints(inEnvironment, fresh)
    const wrong = withEnv(inEnvironment, { STORE_API_CLIENT_ID: "nobody" })
    yield* refuses(wrong, fresh, 4, /401/)
    yield* prints(wrong, `${fresh} --client-id blue`)
    yield* prints(user, `${fresh} --auth-url ${blue.url} --client-id=blue`)
  })

  test.live("skip a .env that is a folder, or a pipe without a writer", function*() {
    const { complete, user } = yield* startedInBlue
    const path = join(user.cwd, ".env")
    Fs.mkdirSync(path)
    yield* prints(complete, fresh)
    yield* refuses(
      complete,
      "token --dotenv .env",
      3,
      "Cannot read .env, the file of --dotenv."
    )
    Fs.rmdirSync(path)
    assert.strictEqual(spawnSync("mkfifo", [path]).status, 0)
    yield* prints(complete, fresh)
  })

  test.live("never send a secret of another origin to the address of a .env that was not named", function*() {
    const { blue, complete, inEnvironment, user, write } = yield* startedInBlue
    write(".env", [...blue.lines.slice(0, 3), "STORE_API_CLIENT_SECRET=another"])
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
    const advice =
      /^store-api: [^\n]*--dotenv \.env; if not, give the address by flag [^\n]*[.]\n$/
    for (const [who, line, from, names] of astray) {
      const stderr = yield* refuses(who, line, 3, advice, secret)
      const verb = names.includes(" and ") ? "are" : "is"
      assert.include(
        stderr,
        `${names} a .env that you did not name ${verb} not used with the secret from ${from}.`
      )
    }
    const check = yield* run(alone, ["check"])
    deepStrictEqual(check.code, 3)
    assert.match(check.stdout, /^FAIL configuration [^]*--dotenv \.env/)
    deepStrictEqual(yield* blue.requests, [])
    // What the sentence says, helps.
    for (const flag of ["--dotenv .env", `--auth-url ${blue.url}`]) {
      yield* prints(alone, `${fresh} ${flag}`)
    }
    yield* prints(complete, fresh)
    // The id alone leads nowhere.
    write(".env", "STORE_API_CLIENT_ID=blue")
    yield* prints(without(complete, "STORE_API_CLIENT_ID"), fresh)
  })

  test.live("take the secret from a file or from standard input, without the end of its line", function*() {
    const { inEnvironment, write } = yield* startedInBlue
    write("secret", `${secret}\n`)
    yield* prints(inEnvironment, `${fresh} --secret-file secret`)
    yield* prints(inEnvironment, `${fresh} --secret-file -`, { stdin: `${secret}\r\n` })
  })

  test.live("that are missing are named all at once", function*() {
    yield* refuses(
      yield* newUser({}),
      "call /orders",
      3,
      "STORE_API_AUTH_URL, STORE_API_CLIENT_ID, STORE_API_URL and STORE_API_CLIENT_SECRET are not set. Set " +
        "them with store-api profile add, in the environment or in .env, or use --auth-url, --client-id, --api-url " +
        "and --secret-file. To try without a service, run store-api emulator."
    )
  })

  test.live.each<[names: string, variables: Readonly<Record<string, string>>, line?: string]>([
    ["STORE_API_CLIENT_ID", { STORE_API_CLIENT_ID: "" }],
    ["STORE_API_CLIENT_SECRET", { STORE_API_CLIENT_SECRET: "canary&" }],
    ["STORE_API_TOKEN_FOLDER is empty", { STORE_API_TOKEN_FOLDER: "" }],
    ["store-api: --auth-url is not a URL", {}, "token --auth-url canary"],
    [
      "store-api: --auth-url must be an https URL",
      {},
      "token --auth-url http://canary.example"
    ],
    [
      "store-api: --auth-url must not have a query.",
      {},
      "token --auth-url http://canary.example?x"
    ],
    ["store-api: --secret-file ", {}, "token --secret-file bad"],
    ["Cannot read your.env, the file of --dotenv.", {}, "token --dotenv=your.env"],
    ["Cannot read nothing, the file of --secret-file.", {}, "token --secret-file nothing"],
    ["Cannot read ., the file of --secret-file.", {}, "token --secret-file ."],
    ["store-api: --secret-file is empty", {}, "token --secret-file -"]
  ])(
    "are named as the user gave them, in one sentence without their value: %s %o %s",
    function*(row) {
      const [names, variables, line = "token"] = row
      const { complete, write } = yield* startedInBlue
      write("bad", "canary&")
      const stderr = yield* refuses(
        withEnv(complete, variables),
        line,
        3,
        /^store-api: [^\n]*[.]\n$/
      )
      assert.include(stderr, names)
      assert.notInclude(stderr, "canary")
    }
  )

  test.live("are named by their flag when the endpoint cannot be reached", function*() {
    yield* refuses(
      (yield* startedInBlue).complete,
      "token --auth-url http://127.0.0.1:9",
      5,
      /check --auth-url, /
    )
  })

  test.live("there is no flag for the secret, and a secret given as a flag is not printed", function*() {
    const { inEnvironment } = yield* startedInBlue
    for (
      const args of [["--secret", secret], [`--client-secret=${secret}`], [
        `--SECRET=${secret}`
      ]]
    ) {
      for (const command of ["token", "call", "check"]) {
        yield* refuses(inEnvironment, [command, ...args], 2, /A secret cannot be a flag/)
      }
    }
  })
})

const clientOf = (echo: string) => (JSON.parse(echo) as { readonly clientId: string }).clientId

describe("a profile", () => {
  test.live("is used by its name, each with its own stored token", function*() {
    const { blue, green, user } = yield* started
    for (const profile of ["blue", "green"]) {
      assert.strictEqual(
        clientOf(yield* prints(user, `call /orders --profile ${profile}`)),
        profile
      )
      yield* prints(user, `token --profile=${profile}`)
    }
    const named = withEnv(user, { STORE_API_PROFILE: "blue" })
    const fromVariable = yield* prints(named, "token")
    assert.strictEqual(yield* prints(user, "token --profile blue"), fromVariable)
    // The flag comes first.
    assert.notStrictEqual(yield* prints(named, "token --profile green"), fromVariable)
    deepStrictEqual([yield* blue.clients, yield* green.clients], [["blue"], ["green"]])
    // It is named by status and check.
    assert.match(
      yield* prints(user, "status --profile blue"),
      /^profile {2}blue\nfolder {3}.*\n/
    )
    const json = JSON.parse(yield* prints(user, "status --json --profile blue")) as object
    deepStrictEqual(Object.entries(json)[0], ["profile", "blue"])
    assert.include(yield* prints(named, "check /orders"), "all from the profile blue")
  })

  test.live("is mixed neither with the environment nor with .env: no secret goes to the address of another", function*() {
    const { blue, green, save, user, write } = yield* started
    // Each of these alone would lead a secret astray, were it read.
    save("without-secret", blue.lines.slice(0, 3))
    save("without-address", blue.lines.slice(2))
    const inEnvironment = having(user, green.lines)
    for (const who of [inEnvironment, user]) {
      if (who === user) write(".env", green.lines)
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
    deepStrictEqual([yield* blue.clients, yield* green.clients], [["blue", "blue"], []])
    // Without the profile, what stands in the environment is used: it would have been found.
    yield* prints(inEnvironment, "token")
    deepStrictEqual(yield* green.clients, ["green"])
    // On a terminal the missing secret is asked for, although another one is set.
    const typed = { shows: true, stdout: "pipe", typed: `${secret}\r` } as const
    const { code, stdout } = yield* onTerminal(inEnvironment, [
      "token",
      "--profile",
      "without-secret"
    ], typed)
    deepStrictEqual([code, stdout], [0, yield* prints(user, "token --profile blue")])
  })

  test.live("takes flags, a secret from a file or a pipe, and the folder of tokens from the environment", function*() {
    const { blue, save, user, write } = yield* started
    save("bare", blue.lines.slice(0, 3), 0o644)
    write("secret", secret)
    yield* prints(user, "token --profile bare --secret-file secret")
    yield* prints(user, "token --profile bare --secret-file - --no-cache", { stdin: secret })
    yield* refuses(user, "token --profile blue --client-id other", 4, /401/)
    deepStrictEqual(yield* blue.clients, ["blue", "blue", "other"])
    const tokens = join(user.cwd, "elsewhere")
    const status = yield* run(withEnv(user, { STORE_API_TOKEN_FOLDER: tokens }), [
      "status",
      "--profile",
      "blue"
    ])
    assert.include(status.stdout, `\nfolder   ${tokens}\n`)
  })

  test.live("that is not there is a fault that lists those that are", function*() {
    const { blue, folder, save, user } = yield* started
    save("a.b_c-1", blue.lines)
    Fs.writeFileSync(join(folder, "notes.txt"), "")
    yield* refuses(
      user,
      "token --profile red",
      3,
      "There is no profile red. Known: a.b_c-1, blue and green."
    )
    yield* prints(user, "token --profile a.b_c-1")
    const hint = "There is no profile red. Create it: store-api profile add red."
    yield* refuses(yield* newUser({}), "token --profile red", 3, hint)
  })

  test.live("has a name that leads nowhere else", function*() {
    const { user } = yield* started
    const sentence =
      "must consist of letters, digits, \"-\", \"_\" and \".\", and not start with a \".\"."
    const absolute = join(user.cwd, "secret")
    for (
      const name of [
        "",
        "..",
        ".hidden",
        "../blue",
        "a/b",
        "a\\b",
        absolute,
        "caf\u00e9",
        "a\nb"
      ]
    ) {
      yield* refuses(
        withEnv(user, { STORE_API_PROFILE: name }),
        "token",
        3,
        `STORE_API_PROFILE ${sentence}`
      )
    }
    for (const name of ["", "../blue"]) {
      yield* refuses(user, ["token", "--profile", name], 2, `--profile ${sentence}`)
    }
    const both = "Use either --dotenv or --profile: a profile has its own file."
    yield* refuses(user, "token --profile blue --dotenv .env", 2, both)
  })
})

describe("store-api profile", () => {
  test.live("add saves the settings that count, so that they work by name; list and remove", function*() {
    const { blue, folder, user } = yield* started
    const secret = "it's a \"secret\" $HOME #1"
    const emulator = yield* Emulator.make({
      clients: [{ clientId: "me", clientSecret: Redacted.make(secret) }]
    })
    const owner = { ...user, secrets: Effect.succeed([secret]) }
    const saved =
      /^store-api: The profile mine is saved in .*mine\.env: --auth-url and --client-id from the flags; the secret from standard input\. The service issued a token\.\n$/
    const line = `profile add mine --auth-url ${emulator.url} --client-id me --secret-file -`
    yield* refuses(owner, line, 0, saved, `${secret}\n`)
    yield* prints(owner, "token --profile mine")
    assert.lengthOf(yield* emulator.requests, 1)
    assert.strictEqual(yield* prints(user, "profile list"), "blue\ngreen\nmine\n")
    Fs.writeFileSync(join(folder, "mine.env.part"), secret)
    deepStrictEqual((yield* run(user, ["profile", "remove", "mine"])).code, 0)
    deepStrictEqual(Fs.readdirSync(folder).sort(), ["blue.env", "green.env"])
    assert.strictEqual(yield* prints(user, "profile list"), "blue\ngreen\n")
    yield* refuses(
      user,
      "profile remove mine",
      3,
      "There is no profile mine. Known: blue and green."
    )
    for (const name of ["blue", "green"]) yield* run(user, ["profile", "remove", name])
    yield* refuses(user, "profile list", 0, "No profile is saved.")
    deepStrictEqual(yield* blue.clients, [])
  })

  test.live("add asks on a terminal for what is missing; settings that get no token are not saved", function*() {
    const { blue, folder, user } = yield* started
    const addBy = (typed: string, ...args: ReadonlyArray<string>) =>
      onTerminal(user, ["profile", "add", "mine", ...args], { typed, columns: 300 })
    const wrong = yield* addBy(`${blue.url}\r\rblue\rx\bno\r`)
    assert.strictEqual(wrong.code, 4)
    assert.match(
      wrong.screen,
      /: check the client id and secret.* Nothing is saved, unless you add --no-verify\./
    )
    assert.isFalse(Fs.existsSync(join(folder, "mine.env")))
    const asked = [
      "URL of the token service: auth.example",
      "The value must start with https://.",
      `URL of the token service: ${blue.url}`,
      "URL of the API (optional): ",
      "Client id: blue",
      "Client secret (not shown): "
    ]
    for (const [last, flag] of [[secret, "--force"], ["no", "--no-verify"]] as const) {
      const { code, screen } = yield* addBy(
        `auth.example\r${blue.url}\r\rblue\r${last}\r`,
        flag
      )
      deepStrictEqual([
        code,
        screen.replace(/\r|\u001b\[\d*[GJ]/g, "").split("\n").slice(0, 6)
      ], [
        0,
        asked
      ])
      yield* run(user, ["profile", "remove", "mine"])
    }
    const sentence =
      /^store-api: STORE_API_AUTH_URL, .* are not set\. Set them in the environment or in \.env, .*-file\.\n$/
    yield* refuses(user, "profile add mine", 3, sentence)
  })

  test.live("default applies where no setting is given; show prints all but the secret", function*() {
    const { blue, green, user, write } = yield* started
    yield* refuses(
      user,
      "profile show",
      3,
      "There is no profile default. Known: blue and green."
    )
    yield* refuses(
      having(user, blue.lines),
      "profile add",
      0,
      /The profile default is saved in .*default\.env: all from /
    )
    const lines = [...blue.lines.slice(0, 3), "STORE_API_CLIENT_SECRET=(not shown)"].sort()
    for (const line of ["profile show", "profile show default"]) {
      const text = yield* prints(user, line)
      assert.match(text, /^profile {2}default\nfile {5}\/.*default\.env\n/)
      deepStrictEqual(
        text.trimEnd().split("\n").slice(2).filter((line) => !line.includes("FOLDER")),
        lines
      )
    }
    assert.strictEqual(clientOf(yield* prints(user, "call /orders")), "blue")
    assert.strictEqual(
      clientOf(yield* prints(having(user, green.lines), "call /orders")),
      "green"
    )
    write(".env", green.lines)
    assert.strictEqual(clientOf(yield* prints(user, "call /orders")), "green")
    write(".env", "")
    const flags = [
      "--client-id blue",
      `--auth-url ${green.url}`,
      "--api-url http://127.0.0.1:9",
      "--dotenv .env"
    ]
    for (const flag of flags) {
      yield* refuses(
        user,
        `call / ${flag}`,
        3,
        / profile is not used .* --profile default\.\n$/
      )
    }
    yield* run(user, ["profile", "remove", "default"])
    yield* refuses(user, "call /orders", 3, /STORE_API_AUTH_URL, .* are not set/)
  })

  test.live("add replaces a profile only with --force, and writes a file for this user alone", function*() {
    const { folder, green, user } = yield* started
    const owner = having(user, green.lines)
    const file = join(folder, "blue.env")
    const before = Fs.readFileSync(file, "utf8")
    yield* refuses(
      owner,
      "profile add blue",
      2,
      "The profile blue exists. Use --force to replace it."
    )
    assert.strictEqual(Fs.readFileSync(file, "utf8"), before)
    Fs.chmodSync(file, 0o644)
    deepStrictEqual((yield* run(owner, ["profile", "add", "blue", "--force"])).code, 0)
    assert.strictEqual(Fs.statSync(file).mode & 0o777, 0o600)
    assert.strictEqual(clientOf(yield* prints(user, "call /orders --profile blue")), "green")
    deepStrictEqual((yield* run(owner, ["profile", "add", "../blue"])).code, 2)
    deepStrictEqual(Fs.readdirSync(folder).sort(), ["blue.env", "green.env"])
    // A file that cannot replace the other leaves no copy of the secret.
    const nest = join(folder, "nest.env")
    Fs.mkdirSync(join(nest, "egg"), { recursive: true })
    yield* refuses(owner, "profile add nest --force", 3, `Cannot write ${nest}.`)
    yield* refuses(owner, "profile remove nest", 3, `Cannot remove ${nest}.`)
    deepStrictEqual(Fs.readdirSync(folder).sort(), ["blue.env", "green.env", "nest.env"])
  })

  test.live("add saves the folder of the cache, and no URL that cannot be used", function*() {
    const { folder, green, user } = yield* started
    const owner = having(user, green.lines)
    deepStrictEqual(
      (yield* run(owner, ["profile", "add", "mine", "--cache-dir", "its own cache"])).code,
      0
    )
    yield* prints(user, "token --profile mine")
    const cache = join(user.cwd, "its own cache")
    assert.include(yield* prints(user, "status --profile mine"), `folder   ${cache}\n`)
    for (
      const given of [
        "--auth-url auth.example",
        "--auth-url http://auth.example",
        "--api-url https://api/?a=b"
      ]
    ) {
      const [flag = ""] = given.split(" ")
      yield* refuses(
        owner,
        `profile add wrong ${given}`,
        3,
        new RegExp(`^store-api: ${flag} (must|is) .*\\n$`)
      )
    }
    deepStrictEqual(Fs.readdirSync(folder).sort(), ["blue.env", "green.env", "mine.env"])
  })
})

const readable = "it holds a secret and other users may read its file"
const writable = "other users may write to its file"

describe.skipIf(process.platform === "win32")("a profile that is not the user's alone", () => {
  test.live.each<[mode: number, lines: number, why: string]>([
    [0o640, 4, readable],
    [0o604, 4, readable],
    [0o620, 4, writable],
    [0o602, 3, writable]
  ])("is not used: mode %o, with %i lines", function*([mode, count, why]) {
    const { blue, save, user } = yield* started
    save("open", blue.lines.slice(0, count), mode)
    const sentence =
      `The profile open is not used, because ${why}\\. Make .* yours, with mode 600\\.`
    const line = "token --profile open --secret-file -"
    yield* refuses(user, line, 3, new RegExp(`^store-api: ${sentence}\n$`), secret)
    deepStrictEqual(yield* blue.clients, [])
    save("open", blue.lines, 0o400)
    yield* prints(user, "token --profile open")
  })

  test.live("such as one that is a folder, or of another user", function*() {
    const { folder, save, user } = yield* started
    const nest = join(folder, "nest.env")
    Fs.mkdirSync(nest, { mode: 0o700 })
    yield* refuses(user, "token --profile nest", 3, `Cannot read the profile nest, ${nest}.`)
    // Only root can give a file away. Other users find one of root.
    if (process.getuid?.() === 0) {
      save("theirs", [])
      Fs.chownSync(join(folder, "theirs.env"), 12_345, 12_345)
    } else Fs.symlinkSync("/etc/passwd", join(folder, "theirs.env"))
    yield* refuses(
      user,
      "token --profile theirs",
      3,
      /because its file belongs to another user/
    )
  })
})
