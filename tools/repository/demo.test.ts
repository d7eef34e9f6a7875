/** The demo of `npm start`, in this process. */
import { format } from "node:util"
import { assert, describe, it } from "@effect/vitest"
import { Effect, Redacted } from "effect"
import { vi } from "vitest"
import { main } from "../../examples/src/demo/main.js"
import { Emulator } from "../../packages/emulator/src/index.js"

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
  return Effect.map(Effect.acquireUseRelease(replace, () => main, () => restore), (status) => ({ status, ...written }))
}

/** The format of the emulator's access tokens. No other output of the demo matches it. */
const tokenLike = /[A-Za-z0-9+/]{43}=/

const secret = Redacted.value(Emulator.demoClient.clientSecret)

const assertNoSecrets = ({ stderr, stdout }: Finished, secrets: ReadonlyArray<string>) => {
  const text = stdout + stderr
  assert.notMatch(text, tokenLike)
  for (const secret of secrets) {
    for (const form of [secret, encodeURIComponent(secret), Buffer.from(secret).toString("base64")]) {
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

const environment = (url: string) => ({
  STORE_API_AUTH_URL: url,
  STORE_API_URL: url,
  STORE_API_CLIENT_ID: Emulator.demoClient.clientId,
  STORE_API_CLIENT_SECRET: secret
})

describe("the demo with the emulator", () => {
  it.live("shows acquisition, cache, expiry and revocation of a token, and no secret", () =>
    Effect.gen(function*() {
      const finished = yield* demo()
      assert.strictEqual(finished.status, 0, finished.stderr)
      const { stdout } = finished
      assert.match(stdout, /application +Demo application\n/)
      assert.match(stdout, /developer +d\*\*\*@e\*\*\*\.invalid\n/)
      assert.match(stdout, /client id +demo-client\n/)
      assert.match(stdout, /expires +\d{4}-\d\d-\d\dT/)
      assert.match(stdout, /cached token +is not used: TokenExpiredError, Elapsed\n/)
      assert.match(stdout, /on the wire +api 401, then token 200, then api 200\n/)
      const counts = [...stdout.matchAll(/token requests +(\d+) in all/g)].map(([, count]) => count)
      assert.deepStrictEqual(counts, ["1", "1", "2", "3"])
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
        const finished = yield* demo({ ...environment(emulator.url), STORE_API_DEMO_PATH: "/orders?page=1" })
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
      const drawn = (columns: number) =>
        Effect.map(
          demo({ ...environment(emulator.url), STORE_API_DEMO_PATH: "/orders", NO_COLOR: "1" }, columns),
          ({ status, stderr, stdout }) => {
            assert.strictEqual(status, 0, stderr)
            return stdout.split("\nTimeline\n")[1]
          }
        )
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
      const emulator = yield* Emulator.make()
      const working = environment(emulator.url)
      const refused = yield* demo({ ...working, STORE_API_CLIENT_SECRET: "an-invented-wrong-one" })
      assertSentence(refused, "STORE_API_CLIENT_ID and STORE_API_CLIENT_SECRET")
      assertNoSecrets(refused, ["an-invented-wrong-one"])
      assertSentence(
        yield* demo({ ...working, STORE_API_DEMO_PATH: "https://elsewhere.example/orders" }),
        "STORE_API_DEMO_PATH"
      )
      assertSentence(yield* demo({ ...working, STORE_API_DEMO_PATH: "/v1/oauth/accesstoken" }), "STORE_API_DEMO_PATH")
      assertSentence(
        yield* demo({ ...working, STORE_API_URL: "http://127.0.0.1:9", STORE_API_DEMO_PATH: "/" }),
        "STORE_API_URL"
      )
    }))
})

describe("the demo with a configuration that fails", () => {
  const whole = environment("https://store.example")

  it.live("names all missing variables at once, also when only one is set", () =>
    Effect.gen(function*() {
      for (const set of Object.keys(whole) as ReadonlyArray<keyof typeof whole>) {
        const finished = yield* demo({ [set]: whole[set] })
        const missing = Object.keys(whole).filter((name) => name !== set)
        assertSentence(
          finished,
          `${set} is set, so the real service is used, but ${
            missing.join(", ").replace(/, (\w+)$/, " and $1")
          } are missing:`
        )
        assertNoSecrets(finished, [secret])
      }
    }))

  it.live("names the variable that is set if it is mistyped or not enough", () =>
    Effect.gen(function*() {
      const { STORE_API_AUTH_URL, ...others } = whole
      const mistyped = yield* demo({ ...others, STORE_API_AUTHURL: STORE_API_AUTH_URL })
      assertSentence(mistyped, "STORE_API_AUTHURL", "used, but STORE_API_AUTH_URL is missing:")
      assertNoSecrets(mistyped, [secret])
      for (const name of ["STORE_API_AUTHURL", "STORE_API_DEMO_PATH"]) {
        assertSentence(yield* demo({ [name]: "/orders" }), `${name} is set, so the real`, ...Object.keys(whole))
      }
    }))

  it.live("names all variables that are empty at once", () =>
    Effect.gen(function*() {
      const empty = { STORE_API_AUTH_URL: "", STORE_API_URL: "", STORE_API_CLIENT_ID: "", STORE_API_CLIENT_SECRET: "" }
      const all = yield* demo(empty)
      assertSentence(all, ...Object.keys(whole), "are empty:")
      assert.notMatch(all.stderr, /is set|are set|missing/)
      const { STORE_API_URL: _, ...others } = empty
      assertSentence(
        yield* demo({ ...others, STORE_API_CLIENT_ID: "an-id" }),
        "STORE_API_CLIENT_ID is set, so",
        "STORE_API_URL is missing, and STORE_API_AUTH_URL and STORE_API_CLIENT_SECRET are empty:"
      )
    }))

  it.live.each([
    ["STORE_API_AUTH_URL", "ftp://store.example"],
    ["STORE_API_URL", "https://someone:password@store.example"],
    ["STORE_API_CLIENT_ID", "an&id"],
    ["STORE_API_CLIENT_SECRET", "an-invented\nsecret"]
  ])("names %s when it is unusable", ([name = "", value = ""]) =>
    Effect.gen(function*() {
      const finished = yield* demo({ ...whole, [name]: value })
      assertSentence(finished, name)
      assert.strictEqual(finished.stdout, "")
      if (value !== "") assert.notInclude(finished.stderr, value)
    }))

  it.live("names the variable of a token endpoint that is not there", () =>
    Effect.gen(function*() {
      const finished = yield* demo({ ...whole, STORE_API_AUTH_URL: "http://127.0.0.1:9" })
      assertSentence(finished, "STORE_API_AUTH_URL")
      assertNoSecrets(finished, [secret])
    }))
})
