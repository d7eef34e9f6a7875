/** Settings of a client that authenticates with the assertion in a file. */
import * as Fs from "node:fs"
import { join } from "node:path"
import { assert } from "@effect/vitest"
import { deepStrictEqual } from "@effect/vitest/utils"
import { Emulator } from "@store-api/emulator"
import { test } from "@store-api/testing/test"
import { Effect, Redacted } from "effect"
import { newKeys, signAssertion } from "../support/assertions.js"
import {
  check,
  expectFailedStep,
  expectRefusal,
  expectSuccess,
  newUser,
  profilesOf,
  run,
  tokenRequests,
  withEnv,
  without
} from "../support/cli.js"

const secret = "an-invented-secret"
const variable = "STORE_API_CLIENT_ASSERTION_FILE"

/** A service that knows a key, and a user with an assertion in a file, which the environment names. */
const started = Effect.gen(function*() {
  const { privateKey, publicKey } = newKeys()
  const emulator = yield* Emulator.make({
    clientAuthentication: "private_key_jwt",
    clients: [{ clientId: "key-client", clientSecret: Redacted.make(secret), publicKey }]
  })
  const assertions: Array<string> = []
  const user = yield* newUser(
    {
      STORE_API_AUTH_URL: emulator.url,
      STORE_API_URL: emulator.url,
      STORE_API_CLIENT_ID: "key-client",
      [variable]: "assertion.jwt"
    },
    Effect.map(emulator.tokens, (tokens) => [
      secret,
      ...assertions,
      ...tokens.map(({ value }) => Redacted.value(value))
    ])
  )
  const write = (name: string, text: string) => Fs.writeFileSync(join(user.cwd, name), text)
  const writeAssertion = (secondsLeft?: number, name = "assertion.jwt") => {
    const endpoint = `${emulator.url}/v1/oauth/accesstoken`
    const assertion = signAssertion("key-client", endpoint, privateKey, secondsLeft)
    assertions.push(assertion)
    write(name, `${assertion}\n`)
  }
  writeAssertion()
  return { emulator, user, write, writeAssertion }
})

test.live("a token request sends the assertion in the file of the variable", function*() {
  const { emulator, user } = yield* started
  yield* expectSuccess(user, "token")
  const [request] = yield* emulator.requests
  assert.include(Redacted.value(request?.body ?? assert.fail()), "client_assertion=")
})

test.live("--assertion-file precedes the variable", function*() {
  const { user, write, writeAssertion } = yield* started
  writeAssertion(60, "other.jwt")
  write("assertion.jwt", "not-an-assertion")
  yield* expectSuccess(user, "token --assertion-file other.jwt")
})

test.live("call sends a token of an assertion", function*() {
  const { user } = yield* started
  assert.include(yield* expectSuccess(user, "call /orders"), "key-client")
})

test.live("a token of an assertion is not cached", function*() {
  const { emulator, user, writeAssertion } = yield* started
  yield* expectSuccess(user, "token")
  writeAssertion()
  yield* expectSuccess(user, "token")
  assert.strictEqual(yield* tokenRequests(emulator), 2)
})

test.live.each(["status", "logout"])(
  "%s says that the tokens of an assertion are not cached",
  function*(command) {
    const { user } = yield* started
    const { stderr } = yield* run(user, [command])
    assert.include(stderr, "Tokens of a client with an assertion are not cached.")
  }
)

test.live("an assertion and a secret are refused together", function*() {
  const { emulator, user } = yield* started
  const both = withEnv(user, { STORE_API_CLIENT_SECRET: secret })
  const message = `${variable} and STORE_API_CLIENT_SECRET are both set: use only one of them.`
  yield* expectRefusal(both, "token", 3, message)
  deepStrictEqual(yield* emulator.requests, [])
})

test.live("an empty name of the file is refused", function*() {
  const { user } = yield* started
  const empty = withEnv(user, { [variable]: "" })
  yield* expectRefusal(empty, "token", 3, `${variable} is empty: name a file.`)
})

test.live("a .env that was not named does not choose a file that is sent", function*() {
  const { emulator, user, write } = yield* started
  write(".env", `${variable}=assertion.jwt`)
  const message = `${variable} of a .env that you did not name is not used. ` +
    "If you trust the file, use --dotenv .env."
  yield* expectRefusal(without(user, variable), "token", 3, message)
  deepStrictEqual(yield* emulator.requests, [])
})

test.live("a .env that --dotenv names may choose the file", function*() {
  const { user, write } = yield* started
  write(".env", `${variable}=assertion.jwt`)
  yield* expectSuccess(without(user, variable), "token --dotenv .env")
})

test.live("no assertion is sent to the address of a .env that was not named", function*() {
  const { emulator, user, write } = yield* started
  write(".env", `STORE_API_AUTH_URL=${emulator.url}`)
  const astray = without(user, "STORE_API_AUTH_URL")
  const stderr = yield* expectRefusal(astray, "token", 3, /--dotenv \.env/)
  assert.include(stderr, "is not used with the assertion from the environment.")
  deepStrictEqual(yield* emulator.requests, [])
})

test.live("a profile keeps the path of the file, for use in any folder", function*() {
  const { user, writeAssertion } = yield* started
  assert.include((yield* run(user, ["profile", "add", "keyed"])).stderr, "is saved")
  const text = Fs.readFileSync(join(profilesOf(user), "keyed.env"), "utf8")
  assert.include(text, `${variable}='${join(user.cwd, "assertion.jwt")}'`)
  assert.notInclude(text, "STORE_API_CLIENT_SECRET")
  writeAssertion()
  const bare = without(
    user,
    "STORE_API_AUTH_URL",
    "STORE_API_URL",
    "STORE_API_CLIENT_ID",
    variable
  )
  yield* expectSuccess(bare, "token --profile keyed")
})

test.live("a check passes with an assertion", function*() {
  const { user } = yield* started
  deepStrictEqual((yield* check(user)).code, 0)
})

test.live("a check names the file that is missing", function*() {
  const { user } = yield* started
  Fs.rmSync(join(user.cwd, "assertion.jwt"))
  yield* expectFailedStep(user, [], [
    3,
    "token request",
    /^nothing was sent$/,
    /^STORE_API_CLIENT_ASSERTION_FILE cannot be read from its file \(ENOENT\)/
  ])
})

test.live("a check says that the assertion has expired", function*() {
  const { user, writeAssertion } = yield* started
  writeAssertion(-600)
  yield* expectFailedStep(user, [], [
    4,
    "token request",
    /responded with 401/,
    /By this machine's clock, the assertion expired 10 min \d s ago: check what writes its file\.$/
  ])
})

test.live("a check says nothing of the time of an assertion that is refused for another reason", function*() {
  const { user, write } = yield* started
  write("assertion.jwt", "not-an-assertion")
  yield* expectFailedStep(user, [], [4, "token request", /responded with 401/, /the clock\.$/])
  const { failed } = yield* check(user)
  assert.notInclude(failed[0]?.remedy ?? assert.fail(), "expired")
})
