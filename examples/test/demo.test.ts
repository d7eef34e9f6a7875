/** The demo of `npm start`, in this process. */
import { format } from "node:util"
import { assert, describe, it } from "@effect/vitest"
import { deepStrictEqual } from "@effect/vitest/utils"
import { Emulator } from "@store-api/emulator"
import { inTime, onVirtualTime } from "@store-api/testing/network"
import { Effect, Redacted } from "effect"
import { vi } from "vitest"
import { main } from "../src/demo/main.js"

interface Finished {
  readonly status: number
  readonly stdout: string
  readonly stderr: string
}

/** Runs the demo with only these STORE_API_ variables. With `columns`, the output is a terminal of that width. */
const demo = (env: Record<string, string> = {}, columns?: number): Effect.Effect<Finished> => {
  const written = { stdout: "", stderr: "" }
  const { columns: hadColumns, isTTY } = process.stdout
  const replace = Effect.sync(() => {
    const set = Object.keys(process.env).filter((name) => name.startsWith("STORE_API_"))
    for (const name of [...set, "NO_COLOR"]) vi.stubEnv(name, undefined)
    for (const [name, value] of Object.entries(env)) vi.stubEnv(name, value)
    Object.assign(process.stdout, { isTTY: columns !== undefined, columns })
    for (const [method, stream] of [["log", "stdout"], ["error", "stderr"]] as const) {
      vi.spyOn(console, method).mockImplementation((...args) => {
        written[stream] += `${format(...args)}\n`
      })
    }
  })
  const restore = Effect.sync(() => {
    vi.unstubAllEnvs()
    vi.restoreAllMocks()
    Object.assign(process.stdout, { isTTY, columns: hadColumns })
  })
  return Effect.map(
    Effect.acquireUseRelease(replace, () => main, () => restore),
    (status) => ({ status, ...written })
  )
}

/** The format of the emulator's access tokens. No other output of the demo matches it. */
const tokenLike = /[A-Za-z0-9+/]{43}=/

const secret = Redacted.value(Emulator.demoClient.clientSecret)

const assertNoSecrets = ({ stderr, stdout }: Finished, secrets: ReadonlyArray<string>) => {
  const text = stdout + stderr
  assert.notMatch(text, tokenLike)
  for (const secret of secrets) {
    for (
      const form of [
        secret,
        encodeURIComponent(secret),
        Buffer.from(secret).toString("base64")
      ]
    ) {
      assert.notInclude(text, form)
    }
  }
}

/** Asserts exit code 1 and one sentence on stderr that names the variables. */
const assertSentence = ({ status, stderr }: Finished, ...named: ReadonlyArray<string>) => {
  assert.strictEqual(status, 1)
  assert.match(stderr, /^[A-Z][^\n]*\.\n$/)
  for (const name of named) assert.include(stderr, name)
  assert.notMatch(stderr, /\n\s+at |Error:|node_modules/)
}

const wrong = "an-invented-wrong-one"

/** Variables, and what the sentence names. */
type Wrong = readonly [env: Record<string, string>, ...named: ReadonlyArray<string>]

const assertSentences = (all: ReadonlyArray<Wrong>) =>
  Effect.gen(function*() {
    for (const [env, ...named] of all) {
      const finished = yield* demo(env)
      assertSentence(finished, ...named)
      assertNoSecrets(finished, [secret, wrong])
    }
  })

const environment = (url: string) => ({
  STORE_API_AUTH_URL: url,
  STORE_API_URL: url,
  STORE_API_CLIENT_ID: Emulator.demoClient.clientId,
  STORE_API_CLIENT_SECRET: secret
})

describe("the demo with the emulator", () => {
  it.live("shows acquisition, cache, expiry and revocation of a token, and no secret", () =>
    Effect.gen(function*() {
      // Its tokens are valid for 2 seconds, which a busy machine may need for a call.
      const finished = yield* onVirtualTime((virtual) => inTime(virtual, demo()))
      assert.strictEqual(finished.status, 0, finished.stderr)
      const { stdout } = finished
      assert.match(stdout, /application +Demo application\n/)
      assert.match(stdout, /developer +d\*\*\*@e\*\*\*\.invalid\n/)
      assert.match(stdout, /client id +demo-client\n/)
      assert.match(stdout, /expires +\d{4}-\d\d-\d\dT/)
      assert.match(stdout, /cached token +is not used: TokenExpiredError, Elapsed\n/)
      assert.match(stdout, /on the wire +api 401, then token 200, then api 200\n/)
      const counts = [...stdout.matchAll(/token requests +(\d+) in all/g)].map(([, count]) =>
        count
      )
      deepStrictEqual(counts, ["1", "1", "2", "3"])
      const acquired = [...stdout.matchAll(/acquired +([^,\n]+),/g)].map(([, at]) => at)
      assert.strictEqual(acquired.length, 2)
      assert.strictEqual(acquired[0], acquired[1])
      assert.match(stdout, /token 1 +━+╌*\| expires\n/)
      assert.match(stdout, /token 2 +━+╌*× revoked\n/)
      assert.match(stdout, /token 3 +━+╌*> in use\n/)
      assert.notInclude(stdout, "\u001b")
      assertNoSecrets(finished, [secret])
    }))
})

describe("the demo with a service", () => {
  it.scopedLive(
    "shows one acquisition, a call, and no secret, e-mail address or terminal code",
    () =>
      Effect.gen(function*() {
        const emulator = yield* Emulator.make({
          clients: [{
            ...Emulator.demoClient,
            applicationName: "Evil\u001b[2J\u202e\r\nname",
            developerEmail: "some.person@company.example"
          }]
        })
        const finished = yield* demo({
          ...environment(emulator.url),
          STORE_API_DEMO_PATH: "/orders?page=1"
        })
        assert.strictEqual(finished.status, 0, finished.stderr)
        const { stdout } = finished
        assert.match(stdout, /application +Evil\[2Jname\n/)
        assert.match(stdout, /GET \/orders +200, in /)
        assert.match(stdout, /calls +•/)
        const acquired = [...stdout.matchAll(/acquired +([^,\n]+),/g)].map(([, at]) => at)
        assert.strictEqual(acquired.length, 2)
        assert.strictEqual(acquired[0], acquired[1])
        const tokens = (yield* emulator.tokens).map(({ value }) => Redacted.value(value))
        assert.strictEqual(tokens.length, 1)
        assert.match(tokens.join(), tokenLike)
        assertNoSecrets(finished, [secret, ...tokens, "some.person", "company"])
      })
  )

  it.scopedLive("says so when there is no call to make", () =>
    Effect.gen(function*() {
      const emulator = yield* Emulator.make()
      const { status, stdout } = yield* demo(environment(emulator.url))
      assert.strictEqual(status, 0)
      assert.match(stdout, /skipped +STORE_API_DEMO_PATH/)
      assert.match(stdout, /Timeline\n/)
      assert.notMatch(stdout, /calls|•/)
    }))

  it.scopedLive("draws the timeline to the width of the terminal, or not at all", () =>
    Effect.gen(function*() {
      const emulator = yield* Emulator.make()
      const variables = {
        ...environment(emulator.url),
        STORE_API_DEMO_PATH: "/orders",
        NO_COLOR: "1"
      }
      const drawn = (columns: number) =>
        Effect.map(demo(variables, columns), ({ stdout }) => stdout.split("\nTimeline\n")[1])
      const longest = (text = "") => Math.max(...text.split("\n").map((line) => line.length))
      const wide = yield* drawn(200)
      assert.isAbove(longest(wide), 72)
      assert.strictEqual(longest(yield* drawn(0)), longest(wide))
      for (const columns of [80, 60, 42]) {
        const text = yield* drawn(columns)
        assert.match(text ?? "", /token 1 +━+╌+\| expires\n/)
        assert.include(text, "• a call")
        assert.isAtMost(longest(text), columns)
      }
      assert.isUndefined(yield* drawn(41))
    }))

  it.scopedLive("names the variables to correct when a service refuses a request", () =>
    Effect.gen(function*() {
      const working = environment((yield* Emulator.make()).url)
      yield* assertSentences([
        [
          { ...working, STORE_API_CLIENT_SECRET: wrong },
          "STORE_API_CLIENT_ID and STORE_API_CLIENT_SECRET"
        ],
        [
          { ...working, STORE_API_DEMO_PATH: "https://elsewhere.example/orders" },
          "STORE_API_DEMO_PATH"
        ],
        [{ ...working, STORE_API_DEMO_PATH: "/v1/oauth/accesstoken" }, "STORE_API_DEMO_PATH"],
        [
          { ...working, STORE_API_URL: "http://127.0.0.1:9", STORE_API_DEMO_PATH: "/" },
          "STORE_API_URL"
        ]
      ])
    }))
})

describe("the demo with a configuration that fails", () => {
  const whole = environment("https://store.example")
  const names = Object.keys(whole)
  const { STORE_API_AUTH_URL, ...others } = whole
  const empty = Object.fromEntries(names.map((name) => [name, ""]))
  const listed = (names: ReadonlyArray<string>) =>
    names.join(", ").replace(/, (\w+)$/, " and $1")

  it.live("names all variables that are missing, empty or mistyped at once", () =>
    assertSentences([
      ...Object.entries(whole).map(([set, value]): Wrong => [
        { [set]: value },
        `${set} is set, so the real service is used, but ${
          listed(names.filter((name) => name !== set))
        } are missing:`
      ]),
      [
        { ...others, STORE_API_AUTHURL: STORE_API_AUTH_URL },
        "STORE_API_AUTHURL",
        "used, but STORE_API_AUTH_URL is missing:"
      ],
      [{ STORE_API_AUTHURL: "/orders" }, "STORE_API_AUTHURL is set, so the real", ...names],
      [
        { STORE_API_DEMO_PATH: "/orders" },
        "STORE_API_DEMO_PATH is set, so the real",
        ...names
      ],
      [empty, `${listed(names)} are empty:`],
      [
        { STORE_API_AUTH_URL: "", STORE_API_CLIENT_ID: "an-id", STORE_API_CLIENT_SECRET: "" },
        "STORE_API_CLIENT_ID is set, so",
        "STORE_API_URL is missing, and STORE_API_AUTH_URL and STORE_API_CLIENT_SECRET are empty:"
      ]
    ]))

  it.live("says of empty variables neither that they are set nor that they are missing", () =>
    Effect.map(demo(empty), ({ stderr }) => assert.notMatch(stderr, /is set|are set|missing/)))

  it.live("names a variable that is unusable, without its value", () =>
    Effect.gen(function*() {
      for (
        const [name, value] of [
          ["STORE_API_AUTH_URL", "ftp://store.example"],
          ["STORE_API_URL", "https://someone:password@store.example"],
          ["STORE_API_CLIENT_ID", "an&id"],
          ["STORE_API_CLIENT_SECRET", "an-invented\nsecret"]
        ] as const
      ) {
        const finished = yield* demo({ ...whole, [name]: value })
        assertSentence(finished, name)
        assert.strictEqual(finished.stdout, "")
        assert.notInclude(finished.stderr, value)
      }
    }))

  it.live("names the variable of a token endpoint that is not there", () =>
    assertSentences([[
      { ...whole, STORE_API_AUTH_URL: "http://127.0.0.1:9" },
      "STORE_API_AUTH_URL"
    ]]))
})
