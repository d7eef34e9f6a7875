import { assert, describe, it } from "@effect/vitest"
import { Effect, Redacted } from "effect"
import { Emulator } from "../packages/emulator/src/index.js"
import { type Finished, run } from "./support/command.js"

const demo = (env: Record<string, string> = {}) =>
  Effect.promise(() => run(process.execPath, ["examples/dist/demo.js"], { env }))

/** What an access token of the emulator looks like; nothing that is meant to be read does. */
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

/** One sentence on stderr that names the variables, exit 1, no report. */
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
  it.live("tells the life of a token, and nothing that is secret", () =>
    Effect.gen(function*() {
      const started = Date.now()
      const finished = yield* demo()
      assert.strictEqual(finished.status, 0, finished.stderr)
      assert.isBelow(Date.now() - started, 15_000)
      const { stdout } = finished
      assert.match(stdout, /application +Demo application\n/)
      assert.match(stdout, /developer +d\*\*\*@e\*\*\*\.invalid\n/)
      assert.match(stdout, /client id +demo-client\n/)
      assert.match(stdout, /expires +\d{4}-\d\d-\d\dT/)
      assert.match(stdout, /the token held +is refused: TokenExpiredError, Elapsed\n/)
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
    }), 30_000)
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
        const acquired = [...stdout.matchAll(/acquired +([^,\n]+),/g)].map(([, at]) => at)
        assert.strictEqual(acquired.length, 2)
        assert.strictEqual(acquired[0], acquired[1])
        const tokens = (yield* emulator.tokens).map(({ value }) => Redacted.value(value))
        assert.strictEqual(tokens.length, 1)
        assert.match(tokens.join(), tokenLike)
        assertNoSecrets(finished, [secret, ...tokens, "some.person", "company"])
      }),
    30_000
  )

  it.scopedLive("says so when there is no call to make", () =>
    Effect.gen(function*() {
      const emulator = yield* Emulator.make()
      const { status, stdout } = yield* demo(environment(emulator.url))
      assert.strictEqual(status, 0)
      assert.match(stdout, /skipped +STORE_API_DEMO_PATH/)
    }), 30_000)

  it.scopedLive("names the variables behind what the services refuse", () =>
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
    }), 60_000)
})

describe("the demo with a configuration that fails", () => {
  const whole = environment("https://store.example")

  it.live("names all missing variables at once, also when only one is set", () =>
    Effect.gen(function*() {
      for (const set of Object.keys(whole) as ReadonlyArray<keyof typeof whole>) {
        const finished = yield* demo({ [set]: whole[set] })
        const missing = Object.keys(whole).filter((name) => name !== set)
        assertSentence(finished, ...missing)
        const [before] = finished.stderr.split(":")
        assert.deepStrictEqual(before?.match(/STORE_API_\w+/g), missing)
        assertNoSecrets(finished, [secret])
      }
      assertSentence(yield* demo({ STORE_API_DEMO_PATH: "/orders" }), ...Object.keys(whole))
    }), 60_000)

  it.live.each([
    ["STORE_API_AUTH_URL", "ftp://store.example"],
    ["STORE_API_AUTH_URL", "http://store.example"],
    ["STORE_API_URL", "https://someone:password@store.example"],
    ["STORE_API_URL", ""],
    ["STORE_API_CLIENT_ID", "an&id"],
    ["STORE_API_CLIENT_SECRET", ""],
    ["STORE_API_CLIENT_SECRET", "an-invented\nsecret"]
  ])("names %s when it is unusable", ([name = "", value = ""]) =>
    Effect.gen(function*() {
      const finished = yield* demo({ ...whole, [name]: value })
      assertSentence(finished, name)
      assert.strictEqual(finished.stdout, "")
      if (value !== "") assert.notInclude(finished.stderr, value)
    }), 30_000)

  it.live("names the variable of a token endpoint that is not there", () =>
    Effect.gen(function*() {
      const finished = yield* demo({ ...whole, STORE_API_AUTH_URL: "http://127.0.0.1:9" })
      assertSentence(finished, "STORE_API_AUTH_URL")
      assertNoSecrets(finished, [secret])
    }), 30_000)
})
