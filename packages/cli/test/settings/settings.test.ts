/** Where settings come from: flags, the environment, a `.env` or a profile. */
import { spawnSync } from "node:child_process"
import * as Fs from "node:fs"
import { join } from "node:path"
import { parseEnv } from "node:util"
import { assert, describe } from "@effect/vitest"
import { deepStrictEqual } from "@effect/vitest/utils"
import { Emulator } from "@store-api/emulator"
import { test } from "@store-api/testing/test"
import { Effect, Redacted } from "effect"
import {
  expectRefusal,
  expectSuccess,
  newUser,
  onTerminal,
  profilesOf,
  run,
  start,
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
const withLines = (user: User, lines: ReadonlyArray<string>): User =>
  withEnv(
    user,
    Object.fromEntries(
      lines.map((line) => line.split(/=(.*)/s)).map((
        [name = "", value = ""]
      ) => [name, value.replace(/^"|"$/g, "")])
    )
  )

/** The settings of blue in the environment: with its secret, or the address and the client alone. */
const startedInBlue = Effect.map(started, (service) => ({
  ...service,
  complete: withLines(service.user, service.blue.lines.filter((_, n) => n !== 1)),
  inEnvironment: withLines(
    service.user,
    service.blue.lines.filter((_, n) => n === 0 || n === 2)
  )
}))

const fresh = "token --no-cache"

test.live("settings come from .env, as they stand there", function*() {
  const { blue, user, write } = yield* started
  write(".env", blue.lines)
  yield* expectSuccess(user, fresh)
})

test.live("settings come from the file of --dotenv instead of .env", function*() {
  const { blue, user, write } = yield* started
  write(".env", "STORE_API_CLIENT_ID=nobody")
  write("my.env", blue.lines.map((line) => `export ${line}\r`))
  yield* expectSuccess(user, `${fresh} --dotenv my.env`)
})

test.live("the environment precedes .env", function*() {
  const { blue, inEnvironment, write } = yield* startedInBlue
  write(".env", ["STORE_API_AUTH_URL=http://127.0.0.1:9", ...blue.lines.slice(3)])
  yield* expectSuccess(inEnvironment, fresh)
})

test.live("flags precede the environment", function*() {
  const { complete } = yield* startedInBlue
  const wrong = withEnv(complete, { STORE_API_CLIENT_ID: "nobody" })
  yield* expectRefusal(wrong, fresh, 4, /401/)
  yield* expectSuccess(wrong, `${fresh} --client-id blue`)
})

test.live("a .env that is a folder is skipped", function*() {
  const { complete, user } = yield* startedInBlue
  Fs.mkdirSync(join(user.cwd, ".env"))
  yield* expectSuccess(complete, fresh)
})

test.live("a .env that is a pipe without a writer is skipped", function*() {
  const { complete, user } = yield* startedInBlue
  assert.strictEqual(spawnSync("mkfifo", [join(user.cwd, ".env")]).status, 0)
  yield* expectSuccess(complete, fresh)
})

test.live("a file of --dotenv that is a folder is not skipped", function*() {
  const { complete, user } = yield* startedInBlue
  Fs.mkdirSync(join(user.cwd, ".env"))
  const message = "Cannot read .env, the file of --dotenv."
  yield* expectRefusal(complete, "token --dotenv .env", 3, message)
})

/** Users with the address of a `.env` that they did not name, and with a secret of another origin. */
const startedAstray = Effect.map(startedInBlue, ({ write, ...service }) => {
  const { blue, user } = service
  write(".env", [...blue.lines.slice(0, 3), "STORE_API_CLIENT_SECRET=another"])
  write("secret", secret)
  return { ...service, alone: withEnv(user, { STORE_API_CLIENT_SECRET: secret }) }
})
const authUrlIs = "STORE_API_AUTH_URL of a .env that you did not name is"
const apiUrlIs = "STORE_API_URL of a .env that you did not name is"
const bothAre = "STORE_API_AUTH_URL and STORE_API_URL of a .env that you did not name are"

test.live.each<
  [line: string, origin: string, subject: string, who: "alone" | "user" | "inEnvironment"]
>([
  ["token", "the environment", authUrlIs, "alone"],
  ["call /", "the environment", bothAre, "alone"],
  ["status", "the environment", authUrlIs, "alone"],
  ["token --secret-file secret", "secret", authUrlIs, "user"],
  ["token --secret-file -", "standard input", authUrlIs, "user"],
  ["call / --secret-file secret", "secret", apiUrlIs, "inEnvironment"],
  ["profile add books --secret-file secret", "secret", apiUrlIs, "inEnvironment"]
])(
  "no secret of another origin is sent to the address of a .env that was not named: %s",
  function*([line, origin, subject, who]) {
    const { blue, [who]: user } = yield* startedAstray
    const advice =
      /^store-api: [^\n]*--dotenv \.env; if not, give the address by flag [^\n]*[.]\n$/
    const stderr = yield* expectRefusal(user, line, 3, advice, secret)
    assert.include(stderr, `${subject} not used with the secret from ${origin}.`)
    deepStrictEqual(yield* blue.requests, [])
  }
)

test.live("a check fails at the address of a .env that was not named", function*() {
  const { code, stdout } = yield* run((yield* startedAstray).alone, ["check"])
  deepStrictEqual(code, 3)
  assert.match(stdout, /^FAIL configuration [^]*--dotenv \.env/)
})

test.live("the address of a .env that --dotenv names is used", function*() {
  yield* expectSuccess((yield* startedAstray).alone, `${fresh} --dotenv .env`)
})

test.live("a .env that was not named matters only if its address is used", function*() {
  const { alone, blue } = yield* startedAstray
  yield* expectSuccess(alone, `${fresh} --auth-url ${blue.url}`)
})

test.live("a .env that was not named may give the client id alone", function*() {
  const { complete, write } = yield* startedInBlue
  write(".env", "STORE_API_CLIENT_ID=blue")
  yield* expectSuccess(without(complete, "STORE_API_CLIENT_ID"), fresh)
})

test.live("the secret in a file may end with a line end", function*() {
  const { inEnvironment, write } = yield* startedInBlue
  write("secret", `${secret}\n`)
  yield* expectSuccess(inEnvironment, `${fresh} --secret-file secret`)
})

test.live("the secret in a pipe may end with a line end", function*() {
  const { inEnvironment } = yield* startedInBlue
  yield* expectSuccess(inEnvironment, `${fresh} --secret-file -`, { stdin: `${secret}\r\n` })
})

test.live("all missing settings are named at once", function*() {
  yield* expectRefusal(
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
  ["STORE_API_CLIENT_SECRET ends with a line break", { STORE_API_CLIENT_SECRET: "canary\n" }],
  ["STORE_API_CLIENT_ID ends with a line break", { STORE_API_CLIENT_ID: "canary\n" }],
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
    "token --auth-url https://canary.example?x"
  ],
  ["store-api: --secret-file ", {}, "token --secret-file bad"],
  ["Cannot read your.env, the file of --dotenv.", {}, "token --dotenv=your.env"],
  ["Cannot read nothing, the file of --secret-file.", {}, "token --secret-file nothing"],
  ["Cannot read ., the file of --secret-file.", {}, "token --secret-file ."],
  ["store-api: --secret-file is empty", {}, "token --secret-file -"]
])(
  "a wrong setting is named as the user gave it, without its value: %s %o %s",
  function*(row) {
    const [names, variables, line = "token"] = row
    const { complete, write } = yield* startedInBlue
    write("bad", "canary&")
    const stderr = yield* expectRefusal(
      withEnv(complete, variables),
      line,
      3,
      /^store-api: [^\n]*[.]\n$/
    )
    assert.include(stderr, names)
    assert.notInclude(stderr, "canary")
  }
)

test.live("a setting is named by its flag when the endpoint cannot be reached", function*() {
  yield* expectRefusal(
    (yield* startedInBlue).complete,
    "token --auth-url http://127.0.0.1:9",
    5,
    /check --auth-url, /
  )
})

test.live.each(
  ["token", "call", "check"].flatMap((command) =>
    [["--secret", secret], [`--client-secret=${secret}`], [`--SECRET=${secret}`]].map((
      args
    ) => [command, args] as const)
  )
)(
  "a secret that is given as a flag is refused without being printed: %s %o",
  function*([command, args]) {
    const { inEnvironment } = yield* startedInBlue
    yield* expectRefusal(inEnvironment, [command, ...args], 2, /A secret cannot be a flag/)
  }
)

const clientOf = (echo: string) => (JSON.parse(echo) as { readonly clientId: string }).clientId

test.live.each<[profile: Shop]>([["blue"], ["green"]])(
  "a call uses the profile that --profile names: %s",
  function*([profile]) {
    const { user } = yield* started
    const text = yield* expectSuccess(user, `call /orders --profile ${profile}`)
    assert.strictEqual(clientOf(text), profile)
  }
)

test.live("each profile has a cached token of its own", function*() {
  const { blue, green, user } = yield* started
  for (const profile of ["blue", "green", "blue", "green"]) {
    yield* expectSuccess(user, `token --profile=${profile}`)
  }
  deepStrictEqual([yield* blue.clients, yield* green.clients], [["blue"], ["green"]])
})

const inBlue = { STORE_API_PROFILE: "blue" }

test.live("STORE_API_PROFILE selects a profile", function*() {
  const { user } = yield* started
  assert.strictEqual(
    clientOf(yield* expectSuccess(withEnv(user, inBlue), "call /orders")),
    "blue"
  )
})

test.live("--profile precedes STORE_API_PROFILE", function*() {
  const { user } = yield* started
  const text = yield* expectSuccess(withEnv(user, inBlue), "call /orders --profile green")
  assert.strictEqual(clientOf(text), "green")
})

test.live("status names the profile", function*() {
  const { user } = yield* started
  const { stdout } = yield* run(user, ["status", "--profile", "blue"])
  assert.match(stdout, /^profile {2}blue\nfolder {3}.*\n/)
})

test.live("status --json names the profile", function*() {
  const { user } = yield* started
  const { stdout } = yield* run(user, ["status", "--json", "--profile", "blue"])
  assert.propertyVal(JSON.parse(stdout), "profile", "blue")
})

test.live("check names the profile", function*() {
  const { user } = yield* started
  const text = yield* expectSuccess(withEnv(user, inBlue), "check /orders")
  assert.include(text, "all from the profile blue")
})

/** Users with the settings of green in the environment, or in `.env`. */
const startedInGreen = Effect.map(started, (service) => ({
  ...service,
  users: {
    "the environment": Effect.succeed(withLines(service.user, service.green.lines)),
    ".env": Effect.sync(() => {
      service.write(".env", service.green.lines)
      return service.user
    })
  }
}))
const places = ["the environment", ".env"] as const

test.live.each(places.flatMap((place) =>
  [
    [place, "STORE_API_CLIENT_SECRET", 0, 3, "--secret-file"],
    [place, "STORE_API_AUTH_URL", 2, 4, "--auth-url"]
  ] as const
))(
  "a profile takes no setting of another client from %s: %s",
  function*([place, variable, start, end, flag]) {
    const { blue, green, save, users } = yield* startedInGreen
    save("part", blue.lines.slice(start, end))
    const remedy = `Set it in the profile part \\(.*\\), or use ${flag}`
    const message = new RegExp(`^store-api: ${variable} is not set\\. ${remedy}\\.\n$`)
    yield* expectRefusal(yield* users[place], "token --profile part", 3, message)
    deepStrictEqual([yield* blue.clients, yield* green.clients], [[], []])
  }
)

test.live.each(places)("a profile precedes %s", function*(place) {
  const { users } = yield* startedInGreen
  const user = yield* users[place]
  assert.strictEqual(
    clientOf(yield* expectSuccess(user, "call /orders --profile blue")),
    "blue"
  )
  assert.strictEqual(clientOf(yield* expectSuccess(user, "call /orders")), "green")
})

test.live("a profile without a secret asks for it, although the environment has one", function*() {
  const { blue, save, users } = yield* startedInGreen
  save("without-secret", blue.lines.slice(0, 3))
  const screen = { shows: true, stdout: "pipe", typed: `${secret}\r` } as const
  const user = yield* users["the environment"]
  const args = ["token", "--profile", "without-secret"]
  deepStrictEqual((yield* onTerminal(user, args, screen)).code, 0)
  deepStrictEqual(yield* blue.clients, ["blue"])
})

test.live("a profile without a secret takes it from --secret-file", function*() {
  const { blue, save, user, write } = yield* started
  save("bare", blue.lines.slice(0, 3), 0o644)
  write("secret", secret)
  yield* expectSuccess(user, "token --profile bare --secret-file secret")
})

test.live("a flag precedes the profile", function*() {
  const { blue, user } = yield* started
  yield* expectRefusal(user, "token --profile blue --client-id other", 4, /401/)
  deepStrictEqual(yield* blue.clients, ["other"])
})

test.live("a profile without a folder for the cache takes it from the environment", function*() {
  const { user } = yield* started
  const folder = join(user.cwd, "elsewhere")
  const inFolder = withEnv(user, { STORE_API_TOKEN_FOLDER: folder })
  const { stdout } = yield* run(inFolder, ["status", "--profile", "blue"])
  assert.include(stdout, `\nfolder   ${folder}\n`)
})

test.live("the message for an unknown profile lists the profiles", function*() {
  const { blue, folder, save, user } = yield* started
  save("a.b_c-1", blue.lines)
  Fs.writeFileSync(join(folder, "notes.txt"), "")
  const message = "There is no profile red. Known: a.b_c-1, blue and green."
  yield* expectRefusal(user, "token --profile red", 3, message)
  yield* expectSuccess(user, "token --profile a.b_c-1")
})

test.live("the message for an unknown profile says how to create the first one", function*() {
  const message = "There is no profile red. Create it: store-api profile add red."
  yield* expectRefusal(yield* newUser({}), "token --profile red", 3, message)
})

const nameRule =
  "must consist of letters, digits, \"-\", \"_\" and \".\", and not start with a \".\"."
const wrongNames = [
  "",
  "..",
  ".hidden",
  "../blue",
  "a/b",
  "a\\b",
  "/secret",
  "caf\u00e9",
  "a\nb"
]

test.live.each(wrongNames)(
  "STORE_API_PROFILE must name a file of the folder of profiles: %j",
  function*(name) {
    const user = withEnv((yield* started).user, { STORE_API_PROFILE: name })
    yield* expectRefusal(user, "token", 3, `STORE_API_PROFILE ${nameRule}`)
  }
)

test.live.each(["", "../blue"])(
  "--profile must name a file of the folder of profiles: %j",
  function*(name) {
    const { user } = yield* started
    yield* expectRefusal(user, ["token", "--profile", name], 2, `--profile ${nameRule}`)
  }
)

test.live("--profile excludes --dotenv", function*() {
  const message = "Use either --dotenv or --profile: a profile has its own file."
  yield* expectRefusal((yield* started).user, "token --profile blue --dotenv .env", 2, message)
})

const oddSecret = "it's a \"secret\" $HOME #1"
/** A user with the profile `mine`, whose settings came from flags and a pipe. */
const startedWithMine = Effect.gen(function*() {
  const service = yield* started
  const emulator = yield* Emulator.make({
    clients: [{ clientId: "me", clientSecret: Redacted.make(oddSecret) }]
  })
  const user = { ...service.user, secrets: Effect.succeed([oddSecret]) }
  const message =
    /^store-api: The profile mine is saved in .*mine\.env: --auth-url and --client-id from the flags; the secret from standard input; STORE_API_TOKEN_FOLDER from the environment\. The service issued a token\.\n$/
  const line = `profile add mine --auth-url ${emulator.url} --client-id me --secret-file -`
  yield* expectRefusal(user, line, 0, message, `${oddSecret}\n`)
  return { ...service, emulator, user }
})

test.live("profile add saves settings that then work by name", function*() {
  yield* expectSuccess((yield* startedWithMine).user, "token --profile mine --no-cache")
})

test.live("profile add caches the token of its test for the next run", function*() {
  const { emulator, user } = yield* startedWithMine
  yield* expectSuccess(user, "token --profile mine")
  assert.lengthOf(yield* emulator.requests, 1)
})

test.live("profile list prints the names in order", function*() {
  const { user } = yield* startedWithMine
  assert.strictEqual(yield* expectSuccess(user, "profile list"), "blue\ngreen\nmine\n")
})

test.live("profile list says that no profile is saved", function*() {
  yield* expectRefusal(yield* newUser({}), "profile list", 0, "No profile is saved.")
})

test.live("profile remove leaves no file of the profile", function*() {
  const { folder, user } = yield* startedWithMine
  Fs.writeFileSync(join(folder, "mine.env.part"), oddSecret)
  deepStrictEqual((yield* run(user, ["profile", "remove", "mine"])).code, 0)
  deepStrictEqual(Fs.readdirSync(folder).sort(), ["blue.env", "green.env"])
})

test.live("profile remove names the profiles if there is no such one", function*() {
  const message = "There is no profile mine. Known: blue and green."
  yield* expectRefusal((yield* started).user, "profile remove mine", 3, message)
})

const addOnTerminal = (user: User, typed: string, ...args: ReadonlyArray<string>) =>
  onTerminal(user, ["profile", "add", "mine", ...args], { typed, columns: 300 })

test.live("profile add does not save settings that get no token", function*() {
  const { blue, folder, user } = yield* started
  const { code, screen } = yield* addOnTerminal(user, `${blue.url}\r\rblue\rx\bno\r`)
  assert.strictEqual(code, 4)
  assert.match(
    screen,
    /: check the client id and secret.* Nothing is saved, unless you add --no-verify\./
  )
  assert.isFalse(Fs.existsSync(join(folder, "mine.env")))
})

test.live("profile add --no-verify saves settings without a request", function*() {
  const { blue, folder, user } = yield* started
  yield* addOnTerminal(user, `${blue.url}\r\rblue\rno\r`, "--no-verify")
  assert.isTrue(Fs.existsSync(join(folder, "mine.env")))
  deepStrictEqual(yield* blue.clients, [])
})

test.live("profile add asks on a terminal for each missing setting until it can be used", function*() {
  const { blue, user } = yield* started
  const typed = `auth.example\r${blue.url}\r\rblue\r${secret}\r`
  const { code, screen } = yield* addOnTerminal(user, typed)
  deepStrictEqual([
    code,
    screen.replace(/\r|\u001b\[\d*[GJ]/g, "").split("\n").slice(0, 6)
  ], [0, [
    "URL of the token service: auth.example",
    "The value must start with https://.",
    `URL of the token service: ${blue.url}`,
    "URL of the API (optional): ",
    "Client id: blue",
    "Client secret (not shown): "
  ]])
})

test.live.each([["\\r", "\r"], ["\\n", "\n"], ["\\r\\n", "\r\n"]])(
  "answers that are pasted at once answer all questions of profile add, with %s between them",
  function*([, lineBreak]) {
    const { blue, folder, user } = yield* started
    const { end, stdin } = yield* start(user, ["profile", "add", "mine"], { screen: {} })
    stdin.write(["auth.example", blue.url, "", "blue", secret, ""].join(lineBreak))
    const { code, stderr } = yield* end
    assert.strictEqual(code, 0, stderr)
    const saved = parseEnv(Fs.readFileSync(join(folder, "mine.env"), "utf8"))
    deepStrictEqual({ ...saved }, {
      STORE_API_AUTH_URL: blue.url,
      STORE_API_CLIENT_ID: "blue",
      STORE_API_CLIENT_SECRET: secret,
      STORE_API_TOKEN_FOLDER: join(user.cwd, "state", "store-api", "tokens")
    })
  }
)

test.live("profile add names the missing settings if it cannot ask", function*() {
  const message =
    /^store-api: STORE_API_AUTH_URL, .* are not set\. Set them in the environment or in \.env, .*-file\.\n$/
  yield* expectRefusal((yield* started).user, "profile add mine", 3, message)
})

test.live("profile show fails without the default profile", function*() {
  const message = "There is no profile default. Known: blue and green."
  yield* expectRefusal((yield* started).user, "profile show", 3, message)
})

test.live("profile add without a name saves the default profile", function*() {
  const { blue, user } = yield* started
  const message = /The profile default is saved in .*default\.env: all from /
  yield* expectRefusal(withLines(user, blue.lines), "profile add", 0, message)
})

/** The settings of blue are the default profile. */
const startedWithDefault = Effect.tap(
  started,
  ({ blue, save }) => Effect.sync(() => save("default", blue.lines))
)

test.live.each(["profile show", "profile show default"])(
  "%s prints each setting of the profile but its secret",
  function*(line) {
    const { blue, user } = yield* startedWithDefault
    const text = yield* expectSuccess(user, line)
    assert.match(text, /^profile {2}default\nfile {5}\/.*default\.env\n/)
    deepStrictEqual(
      text.trimEnd().split("\n").slice(2).sort(),
      [...blue.lines.slice(0, 3), "STORE_API_CLIENT_SECRET=(not shown)"].sort()
    )
  }
)

test.live.each(
  [
    ["status --cache-dir a\u001b]0;x\u0007b", "stdout", "a^[]0;x^Gb"],
    ["token --dotenv a\u001b]0;x\u0007b", "stderr", "a^[]0;x^Gb"],
    ["call /orders --cache-dir file/a\u001b]0;x\u0007b", "stderr", "a^[]0;x^Gb"],
    ["call -v /a\u001b]0;x\u0007b", "stderr", "a^[]0;x^Gb"],
    ["check --auth-url http://127.0.0.1:9/a\u001b]0;x\u0007b", "stdout", "a^[]0;x^Gb"]
  ] as const
)(
  "control characters of a path are shown in a harmless form: %j",
  function*([line, out, shown]) {
    const { owner, write } = yield* startedInOwn
    // A path below it cannot be used.
    write("file", "")
    const outcome = yield* run(owner, line.split(" "))
    assert.include(outcome[out], shown)
    assert.notInclude(outcome[out], "\u001b")
  }
)

describe.skipIf(process.platform === "win32")("a file of --secret-file", () => {
  test.live.each([[0o666, 1], [0o620, 1], [0o644, 0]])(
    "a note names a secret file that other users may change: mode %o, %i notes",
    function*([mode, count]) {
      const { owner: user, write } = yield* startedInOwn
      write("secret", secrets.green)
      Fs.chmodSync(join(user.cwd, "secret"), mode)
      const { code, stderr } = yield* run(user, ["call", "/orders", "--secret-file", "secret"])
      assert.strictEqual(code, 0, stderr)
      assert.lengthOf(
        stderr.match(/^store-api: Other users may change /gm) ?? [],
        count
      )
    }
  )
})

test.live("the default profile applies without any setting", function*() {
  const { user } = yield* startedWithDefault
  assert.strictEqual(clientOf(yield* expectSuccess(user, "call /orders")), "blue")
})

test.live("the default profile does not apply beside settings in the environment", function*() {
  const { green, user } = yield* startedWithDefault
  const text = yield* expectSuccess(withLines(user, green.lines), "call /orders")
  assert.strictEqual(clientOf(text), "green")
})

test.live("a note says that settings in .env apply instead of the default profile", function*() {
  const { green, user, write } = yield* startedWithDefault
  write(".env", green.lines)
  const { stderr, stdout } = yield* run(user, ["call", "/orders"])
  assert.strictEqual(clientOf(stdout), "green")
  assert.match(
    stderr,
    /^store-api: Settings are those of the \.env .*--profile default\.\n$/
  )
})

test.live("no note names a .env without settings", function*() {
  const { user, write } = yield* startedWithDefault
  write(".env", "OTHER=1")
  assert.strictEqual(clientOf(yield* expectSuccess(user, "call /orders")), "blue")
})

test.live.each([
  "--client-id blue",
  "--auth-url https://auth.example",
  "--api-url http://127.0.0.1:9",
  "--dotenv .env"
])("the default profile does not apply beside a flag: %s", function*(flag) {
  const { user, write } = yield* startedWithDefault
  write(".env", "")
  const message = / profile is not used .* --profile default\.\n$/
  yield* expectRefusal(user, `call / ${flag}`, 3, message)
})

const startedInOwn = Effect.map(started, (service) => ({
  ...service,
  owner: withLines(service.user, service.green.lines)
}))

test.live("profile add keeps a profile of this name", function*() {
  const { folder, owner } = yield* startedInOwn
  const file = join(folder, "blue.env")
  const before = Fs.readFileSync(file, "utf8")
  const message = "The profile blue exists. Use --force to replace it."
  yield* expectRefusal(owner, "profile add blue", 2, message)
  assert.strictEqual(Fs.readFileSync(file, "utf8"), before)
})

test.live("profile add --force replaces a profile", function*() {
  const { owner, user } = yield* startedInOwn
  deepStrictEqual((yield* run(owner, ["profile", "add", "blue", "--force"])).code, 0)
  assert.strictEqual(
    clientOf(yield* expectSuccess(user, "call /orders --profile blue")),
    "green"
  )
})

test.live("profile add writes a file that only this user can read", function*() {
  const { folder, owner } = yield* startedInOwn
  const file = join(folder, "blue.env")
  Fs.chmodSync(file, 0o644)
  yield* run(owner, ["profile", "add", "blue", "--force"])
  assert.strictEqual(Fs.statSync(file).mode & 0o777, 0o600)
})

test.live("profile add writes no file outside the folder of profiles", function*() {
  const { folder, owner } = yield* startedInOwn
  deepStrictEqual((yield* run(owner, ["profile", "add", "../blue"])).code, 2)
  deepStrictEqual(Fs.readdirSync(join(folder, "..")), ["store-api"])
})

test.live("profile add leaves no copy of the secret if it cannot write the file", function*() {
  const { folder, owner } = yield* startedInOwn
  const nest = join(folder, "nest.env")
  Fs.mkdirSync(join(nest, "egg"), { recursive: true })
  yield* expectRefusal(
    owner,
    "profile add nest --force",
    3,
    `Cannot write ${nest}: it is not a regular file.`
  )
  deepStrictEqual(Fs.readdirSync(folder).sort(), ["blue.env", "green.env", "nest.env"])
})

test.live("profile remove reports a file that it cannot remove", function*() {
  const { folder, owner } = yield* startedInOwn
  const nest = join(folder, "nest.env")
  Fs.mkdirSync(nest)
  yield* expectRefusal(owner, "profile remove nest", 3, `Cannot remove ${nest}.`)
})

test.live("profile add saves the folder of the cache for other folders", function*() {
  const { owner, user } = yield* startedInOwn
  yield* run(owner, ["profile", "add", "mine", "--cache-dir", "its own cache"])
  const cache = join(user.cwd, "its own cache")
  assert.include(
    yield* expectSuccess(user, "status --profile mine"),
    `folder   ${cache}\n`
  )
})

test.live("profile add names where the folder of the cache comes from", function*() {
  const { owner } = yield* startedInOwn
  const own = withEnv(owner, { STORE_API_TOKEN_FOLDER: "cache" })
  const { stderr } = yield* run(own, [
    "profile",
    "add",
    "mine",
    "--auth-url",
    owner.env["STORE_API_AUTH_URL"] ?? ""
  ])
  assert.match(stderr, /STORE_API_TOKEN_FOLDER[^;]* from the environment/)
})

test.live.each([
  ["--auth-url", "auth.example"],
  ["--auth-url", "http://auth.example"],
  ["--api-url", "https://api/?a=b"]
])("profile add does not save a URL that cannot be used: %s %s", function*([flag, url]) {
  const { folder, owner } = yield* startedInOwn
  const message = new RegExp(`^store-api: ${flag} (must|is) .*\\n$`)
  yield* expectRefusal(owner, `profile add wrong ${flag} ${url}`, 3, message)
  assert.isFalse(Fs.existsSync(join(folder, "wrong.env")))
})

const readable = "it holds a secret and other users may read its file"
const writable = "other users may write to its file"

describe.skipIf(process.platform === "win32")("a profile that is not the user's alone", () => {
  test.live.each<[mode: number, lines: number, why: string]>([
    [0o640, 4, readable],
    [0o604, 4, readable],
    [0o620, 4, writable],
    [0o602, 3, writable]
  ])(
    "a profile that other users can change, or read its secret, is not used: mode %o, %i lines",
    function*([mode, count, why]) {
      const { blue, save, user } = yield* started
      save("open", blue.lines.slice(0, count), mode)
      const sentence =
        `The profile open is not used, because ${why}\\. Make .* yours, with mode 600\\.`
      const line = "token --profile open --secret-file -"
      yield* expectRefusal(user, line, 3, new RegExp(`^store-api: ${sentence}\n$`), secret)
      deepStrictEqual(yield* blue.clients, [])
    }
  )

  test.live("a profile that only its owner can read is used", function*() {
    const { blue, save, user } = yield* started
    save("own", blue.lines, 0o400)
    yield* expectSuccess(user, "token --profile own")
  })

  test.live.each(["token --profile blue", "profile add new --force"])(
    "a folder of profiles that other users may write to is not used: %s",
    function*(line) {
      const { folder, owner, user: person } = yield* startedInOwn
      const user = line.startsWith("profile") ? owner : person
      Fs.chmodSync(folder, 0o777)
      const message =
        /No profile is used, because other users may write to their folder\. .* mode 700\.\n$/
      yield* expectRefusal(user, line, 3, message)
    }
  )

  test.live("a profile that is a folder is not used", function*() {
    const { folder, user } = yield* started
    const nest = join(folder, "nest.env")
    Fs.mkdirSync(nest, { mode: 0o700 })
    yield* expectRefusal(
      user,
      "token --profile nest",
      3,
      `Cannot read the profile nest, ${nest}.`
    )
  })

  test.live("a profile of another user is not used", function*() {
    const { folder, save, user } = yield* started
    // Only root can give a file away. Other users find one of root.
    if (process.getuid?.() === 0) {
      save("theirs", [])
      Fs.chownSync(join(folder, "theirs.env"), 12_345, 12_345)
    } else Fs.symlinkSync("/etc/passwd", join(folder, "theirs.env"))
    const message = /because its file belongs to another user/
    yield* expectRefusal(user, "token --profile theirs", 3, message)
  })
})
