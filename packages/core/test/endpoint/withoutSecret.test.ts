/** Clients without a shared secret: by an assertion (RFC 7523), by a certificate (RFC 8705), with DPoP (RFC 9449). */
import { assert, describe } from "@effect/vitest"
import { deepStrictEqual } from "@effect/vitest/utils"
import {
  AccessToken,
  AccessTokenError,
  ClientCredentials,
  type TokenEndpoint,
  TokenRequest
} from "@store-api/core"
import { shows } from "@store-api/testing/renderings"
import { test } from "@store-api/testing/test"
import { Effect, Fiber, Redacted, Ref, TestClock } from "effect"
import * as FakeClient from "../support/fakeClient.js"
import { clientId, clientSecret, tokenBody } from "../support/wire.js"

const credentials = ClientCredentials.withoutSecret(clientId)

const assertionType = "urn%3Aietf%3Aparams%3Aoauth%3Aclient-assertion-type%3Ajwt-bearer"

/** A request whose assertions are `assertion-1`, `assertion-2` and so on. */
const numbered = Effect.map(Ref.make(0), (count) =>
  TokenRequest.clientAssertion(
    () =>
      Effect.map(
        Ref.updateAndGet(count, (number) => number + 1),
        (number) => Redacted.make(`assertion-${number}`)
      ),
    { scope: "orders:read" }
  ))

/** Acquires a token while time passes. */
const acquire = (client: FakeClient.FakeClient, options: Partial<TokenEndpoint.Options>) =>
  Effect.gen(function*() {
    const fiber = yield* Effect.fork(FakeClient.acquire(client, { credentials, ...options }))
    yield* TestClock.adjust("1 minute")
    return yield* Fiber.join(fiber)
  })

/** The end of the message about a client that the endpoint does not accept. */
const adviceFor = (request: TokenRequest.TokenRequest, options = {}) =>
  Effect.gen(function*() {
    const client = FakeClient.make(FakeClient.reply(401, `{"error":"invalid_client"}`))
    const error = yield* Effect.flip(acquire(client, { request, ...options }))
    return error.message.replace(/.*: check/, "check")
  })

describe("a refused client without a secret", () => {
  test("is told to check its assertion", function*() {
    assert.strictEqual(
      yield* adviceFor(yield* numbered),
      "check the client id, the assertion (its key, audience and lifetime, and whether it was sent before), " +
        "and the clock."
    )
  })

  test("is told to check its assertion also if the secret is the key that signs it", function*() {
    const signing = ClientCredentials.make({ clientId, clientSecret: Redacted.make("a-key") })
    assert.include(
      yield* adviceFor(yield* numbered, { credentials: signing }),
      "the assertion"
    )
  })

  test("is told to check its certificate if it sent only its id", function*() {
    assert.strictEqual(
      yield* adviceFor(TokenRequest.clientId()),
      "check the client id, and that the HTTP client sends the certificate that the server knows."
    )
  })

  test("is told to check what its own request names", function*() {
    const request = TokenRequest.make({
      ...TokenRequest.clientId(),
      authentication: "the client id and the API key"
    })
    assert.strictEqual(yield* adviceFor(request), "check the client id and the API key.")
  })

  test("is told to check its assertion also if the endpoint does not allow it this grant", function*() {
    const client = FakeClient.make(FakeClient.reply(400, `{"error":"unauthorized_client"}`))
    const error = yield* Effect.flip(acquire(client, { request: yield* numbered }))
    assert.include(error.message, "the assertion")
  })
})

describe("clientAssertion", () => {
  test("sends the parameters, the client id and the assertion", function*() {
    const client = FakeClient.make(FakeClient.token)
    yield* acquire(client, { request: yield* numbered })
    deepStrictEqual(client.bodies, [
      `grant_type=client_credentials&client_assertion_type=${assertionType}` +
      "&scope=orders%3Aread&client_id=invented-client&client_assertion=assertion-1"
    ])
  })

  test("sends no assertion twice", function*() {
    const client = FakeClient.make(
      FakeClient.reply(503),
      FakeClient.reply(400, `{"error":"use_dpop_nonce"}`),
      FakeClient.token
    )
    yield* acquire(client, { request: yield* numbered })
    deepStrictEqual(
      client.bodies.map((body) => body.replace(/.*=/, "")),
      ["assertion-1", "assertion-2", "assertion-3"]
    )
  })

  test("does not send a client secret, which may be the key that signs", function*() {
    const client = FakeClient.make(FakeClient.token)
    const key = "-----BEGIN PRIVATE KEY-----\nan invented key\n-----END PRIVATE KEY-----\n"
    yield* acquire(client, {
      credentials: ClientCredentials.make({ clientId, clientSecret: Redacted.make(key) }),
      request: TokenRequest.clientAssertion(({ clientSecret }) =>
        Effect.succeed(Redacted.make(`signed with ${Redacted.value(clientSecret).length}`))
      )
    })
    deepStrictEqual(
      client.bodies.map((body) => [body.includes("invented%20key"), /signed/.test(body)]),
      [[false, true]]
    )
  })

  test.each<readonly [value: unknown, reason: string]>([
    [Redacted.make(""), "is empty"],
    ["an invented assertion", "must be wrapped with Redacted.make"],
    [undefined, "must be wrapped with Redacted.make"],
    [Redacted.make(5), "must be wrapped with Redacted.make"]
  ])("fails without a request for the unusable assertion %j", function*([value, reason]) {
    const client = FakeClient.make(FakeClient.token)
    const request = TokenRequest.clientAssertion(() =>
      Effect.succeed(value as Redacted.Redacted)
    )
    const error = yield* Effect.flip(acquire(client, { request }))
    assert.instanceOf(error, AccessTokenError.CredentialsError)
    deepStrictEqual([error.field, error.reason], ["clientAssertion", reason])
    deepStrictEqual(client.requests, [])
  })

  test("fails with the error of the assertion", function*() {
    const missing = new AccessTokenError.CredentialsError({
      field: "clientAssertion",
      reason: "cannot be read from its file"
    })
    const request = TokenRequest.clientAssertion(() => missing)
    const error = yield* Effect.flip(acquire(FakeClient.make(FakeClient.token), { request }))
    assert.strictEqual(
      error.message,
      "The clientAssertion cannot be read from its file: check the configuration of the assertion."
    )
  })

  test("hides an assertion that the endpoint repeats", function*() {
    const reply = `{"error":"invalid_client","error_description":"not valid: assertion-1"}`
    const client = FakeClient.make(FakeClient.reply(401, reply))
    const error = yield* Effect.flip(acquire(client, { request: yield* numbered }))
    assert.isFalse(shows(error, "assertion-1"))
    assert.isTrue(shows(reply, "assertion-1"), "control")
  })

  test("sends another type of assertion if the parameters have one", function*() {
    const client = FakeClient.make(FakeClient.token)
    const request = TokenRequest.clientAssertion(
      () => Effect.succeed(Redacted.make("assertion")),
      { client_assertion_type: "saml" }
    )
    yield* acquire(client, { request })
    const sent = new URLSearchParams(client.bodies[0])
    deepStrictEqual(sent.getAll("client_assertion_type"), ["saml"])
  })
})

describe("clientId", () => {
  test("sends the parameters and the client id alone", function*() {
    const client = FakeClient.make(FakeClient.token)
    yield* acquire(client, { request: TokenRequest.clientId({ scope: "orders:read" }) })
    deepStrictEqual(client.bodies, [
      "grant_type=client_credentials&scope=orders%3Aread&client_id=invented-client"
    ])
  })

  test("does not send a client secret", function*() {
    const client = FakeClient.make(FakeClient.token)
    yield* acquire(client, {
      credentials: ClientCredentials.make({
        clientId,
        clientSecret: Redacted.make(clientSecret)
      }),
      request: TokenRequest.clientId()
    })
    deepStrictEqual(client.bodies, [
      "grant_type=client_credentials&client_id=invented-client"
    ])
  })
})

describe("withoutSecret", () => {
  test.each<readonly [name: string, request: TokenRequest.TokenRequest]>([
    ["specification", TokenRequest.specification],
    ["clientSecretPost", TokenRequest.clientSecretPost()],
    ["clientSecretBasic", TokenRequest.clientSecretBasic()]
  ])("is refused by the request %s, which sends a secret", function*([, request]) {
    const client = FakeClient.make(FakeClient.token)
    const error = yield* Effect.flip(acquire(client, { request }))
    assert.instanceOf(error, AccessTokenError.CredentialsError)
    deepStrictEqual([error.field, error.reason], ["clientSecret", "is empty"])
    deepStrictEqual(client.requests, [])
  })

  test("needs a client id", function*() {
    const error = yield* Effect.flip(ClientCredentials.withoutSecret(""))
    deepStrictEqual([error.field, error.reason], ["clientId", "is empty"])
  })
})

describe("a token of the type DPoP", () => {
  const request: TokenRequest.TokenRequest = {
    ...TokenRequest.clientId(),
    tokenType: "DPoP"
  }
  const reply = (token_type: unknown) => FakeClient.reply(200, tokenBody({ token_type }))

  test.each(["DPoP", "dpop", " DPoP "])(
    "is accepted if the request expects it: %s",
    function*(type) {
      const token = yield* acquire(FakeClient.make(reply(type)), { request })
      assert.strictEqual(
        Redacted.value(AccessToken.authorization(token)),
        "DPoP invented-token-0001"
      )
    }
  )

  test.each(["Bearer", undefined, "MAC", "DPoP-bound", "not DPoP"])(
    "is the only one that such a request accepts: %s is an error",
    function*(type) {
      const error = yield* Effect.flip(acquire(FakeClient.make(reply(type)), { request }))
      assert.instanceOf(error, AccessTokenError.TokenResponseError)
      deepStrictEqual(error.problems, [{ path: "token_type", expected: "DPoP" }])
    }
  )

  test("is an error if the request expects Bearer", function*() {
    const error = yield* Effect.flip(
      acquire(FakeClient.make(reply("DPoP")), { request: TokenRequest.clientId() })
    )
    assert.instanceOf(error, AccessTokenError.TokenResponseError)
  })

  test("cannot be expected under another name", function*() {
    const other = { ...request, tokenType: "MAC" } as unknown as TokenRequest.TokenRequest
    const error = yield* Effect.flip(
      FakeClient.source(FakeClient.make(FakeClient.token), { request: other })
    )
    assert.strictEqual(error.option, "endpoint.request.tokenType")
  })
})

describe("the code use_dpop_nonce of the token endpoint", () => {
  const challenge = FakeClient.reply(400, `{"error":"use_dpop_nonce"}`)

  test("leads to another attempt at once", function*() {
    const client = FakeClient.make(challenge, FakeClient.token)
    yield* acquire(client, { request: TokenRequest.clientId() })
    deepStrictEqual(client.times, [0, 0])
  })

  test("leads to at most six requests, with delays from the third on", function*() {
    const client = FakeClient.make(challenge)
    const error = yield* Effect.flip(acquire(client, { request: TokenRequest.clientId() }))
    assert.instanceOf(error, AccessTokenError.TokenRefusedError)
    assert.lengthOf(client.times, 6)
    assert.isTrue(
      client.times.slice(2).every((time, index) => time > (client.times[index + 1] ?? 0))
    )
  })
})
