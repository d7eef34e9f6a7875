/** Credentials that a file of variables or an editor has changed, and the endpoint refuses. */
import { assert, describe } from "@effect/vitest"
import { deepStrictEqual } from "@effect/vitest/utils"
import { AccessTokenError, TokenRequest } from "@store-api/core"
import { shows } from "@store-api/testing/renderings"
import { test } from "@store-api/testing/test"
import { Effect, Redacted } from "effect"
import * as FakeClient from "../support/fakeClient.js"
import { credentialsOf } from "../support/wire.js"

/** The secret may be a key, with the line break at the end of its file. */
const unsigned = TokenRequest.clientAssertion(() =>
  Effect.succeed(Redacted.make("an-assertion"))
)

const refusalOf = (
  id: string,
  secret: string,
  status = 401,
  request = TokenRequest.clientSecretPost()
) =>
  Effect.gen(function*() {
    const error = yield* Effect.flip(
      FakeClient.acquire(FakeClient.make(FakeClient.reply(status)), {
        credentials: Effect.succeed(credentialsOf(id, secret)),
        request
      })
    )
    assert.instanceOf(error, AccessTokenError.TokenRefusedError)
    return error
  })

describe("a refused credential", () => {
  test.each<readonly [id: string, secret: string, sentence: string]>([
    ["demo", `"canary"`, "the client secret is in quotes"],
    ["demo", "'canary'", "the client secret is in quotes"],
    ["'canary'", "secret", "the client id is in quotes"],
    ["demo", "canary ", "the client secret starts or ends with a space"],
    [" canary", "secret", "the client id starts or ends with a space"],
    ["demo", "\uFEFFcanary", "the client secret starts with a byte order mark"]
  ])("is named in the message without its value: %j, %j", function*([id, secret, sentence]) {
    const error = yield* refusalOf(id, secret)
    assert.include(error.message, `check the client id and secret, because ${sentence}`)
    assert.isFalse(shows(error, "canary"))
  })

  test.each([["demo", "secret"], ["de mo", "se'cr\"et"], ["demo", "\"secret"]] as const)(
    "is not named if it looks right: %j, %j",
    function*([id, secret]) {
      assert.isUndefined((yield* refusalOf(id, secret)).suspect)
    }
  )

  test("is not named for a refusal with another reason", function*() {
    const error = yield* refusalOf("demo", `"canary"`, 403)
    deepStrictEqual([error.reason, error.suspect], ["Other", undefined])
  })

  test("is not named if it was not sent", function*() {
    const error = yield* refusalOf("demo", "a-key-that-signs\n", 401, unsigned)
    assert.isUndefined(error.suspect)
  })

  test("is named as the program names the option", function*() {
    const error = yield* refusalOf("demo", `"canary"`)
    assert.include(
      error.describe({ clientSecret: "MY_SECRET" }),
      "because MY_SECRET is in quotes"
    )
  })
})
