import { assert } from "@effect/vitest"
import { deepStrictEqual } from "@effect/vitest/utils"
import { Emulator } from "@store-api/emulator"
import { test } from "@store-api/testing/test"
import { Effect, Option, Redacted, TestClock } from "effect"
import { callApi, getToken, type HttpRequest, json, send, withToken } from "./utils.js"

const challenge = `Bearer realm="store-api"`
const invalid = (reason: string) =>
  `${challenge}, error="invalid_token", error_description="The access token ${reason}"`

test.live("the API describes the request without the token", function*() {
  const { url, token } = yield* withToken()
  const response = yield* callApi(url, token, {
    method: "PUT",
    path: `/orders/7?page=2&also=%20&token=${encodeURIComponent(token)}`,
    body: `{"note":"${token}"}`
  })
  assert.strictEqual(response.status, 200)
  deepStrictEqual(json(response), {
    method: "PUT",
    path: "/orders/7",
    query: "page=2&also=%20&token=<redacted>",
    clientId: "demo-client",
    body: `{"note":"<redacted>"}`
  })
})

test.live("the API describes the request completely, whatever the token is", function*() {
  const { tokens } = yield* withToken()
  const value = "clientId"
  const ownTokens = (yield* tokens).map((token) => ({ ...token, value: Redacted.make(value) }))
  const { url } = yield* Emulator.make({ tokens: ownTokens })
  const description = { method: "GET", path: "/orders", query: "", clientId: "demo-client" }
  deepStrictEqual(json(yield* callApi(url, value)), description)
})

test.live("the API describes no body if the request has none", function*() {
  const { url, token } = yield* withToken({ basePath: "/store" })
  deepStrictEqual(json(yield* callApi(url, token)), {
    method: "GET",
    path: "/store/orders",
    query: "",
    clientId: "demo-client"
  })
})

test.live("the API responds to HEAD without a body", function*() {
  const { url, token } = yield* withToken()
  const response = yield* callApi(url, token, { method: "HEAD" })
  deepStrictEqual([response.status, response.text], [200, ""])
})

test.live("the API accepts the scheme in any case", function*() {
  const { url, token } = yield* withToken()
  for (const scheme of ["bearer", "BEARER", "bEaReR"]) {
    assert.strictEqual(
      (yield* callApi(url, token, { headers: { Authorization: `${scheme} ${token}` } }))
        .status,
      200
    )
  }
})

test.live("the API responds with 413 to a body of more than 1 MiB", function*() {
  const { url, token } = yield* withToken()
  for (const [length, status] of [[1024 * 1024, 200], [1024 * 1024 + 1, 413]] as const) {
    const body = new Uint8Array(length)
    assert.strictEqual((yield* callApi(url, token, { method: "POST", body })).status, status)
  }
})

test.live("the API expects the token in the header of the option", function*() {
  const { requests, url, token } = yield* withToken({
    header: { name: "X-Store-Token", prefix: "" }
  })
  assert.strictEqual(
    (yield* send(url, { path: "/a", headers: { "x-store-token": token } })).status,
    200
  )
  assert.strictEqual((yield* callApi(url, token)).status, 401)
  const [, sent = assert.fail("not recorded")] = yield* requests
  deepStrictEqual(Option.map(sent.authorization, Redacted.value), Option.some(token))
  assert.isTrue(Redacted.isRedacted(sent.headers["x-store-token"]))
})

const unauthorized: Readonly<Record<string, (token: string) => HttpRequest["headers"]>> = {
  "no header": () => ({}),
  "an empty header": () => ({ Authorization: "" }),
  "another scheme": () => ({ Authorization: "Basic aW52ZW50ZWQ6aW52ZW50ZWQ=" }),
  "the token without a scheme": (token) => ({ Authorization: token }),
  "the scheme without a token": () => ({ Authorization: "Bearer" }),
  "another header": (token) => ({ "X-Authorization": `Bearer ${token}` })
}

test.live.each(Object.entries(unauthorized))(
  "the API rejects %s with a challenge without an error code",
  function*([, headers]) {
    const { url, token } = yield* withToken()
    const response = yield* send(url, { path: "/orders", headers: headers(token) ?? {} })
    deepStrictEqual([response.status, response.headers["www-authenticate"]], [
      401,
      challenge
    ])
    assert.notProperty(json(response), "error")
    assert.notInclude(response.text, token)
    assert.strictEqual((yield* callApi(url, token)).status, 200)
  }
)

test.live("the API rejects a token that this emulator has not issued in this form", function*() {
  const [{ url }, other] = [yield* Emulator.make(), yield* Emulator.make()]
  for (
    const token of ["invented-token", ` ${yield* getToken(url)}`, yield* getToken(other.url)]
  ) {
    const response = yield* callApi(url, token)
    deepStrictEqual([response.status, json(response)["error"]], [401, "invalid_token"])
    assert.strictEqual(response.headers["www-authenticate"], invalid("is unknown"))
    assert.notInclude(response.text, token)
  }
})

test("the API rejects a token after the last millisecond of its 60 minutes, not before", function*() {
  const { url, token } = yield* withToken()
  yield* TestClock.adjust("3599999 millis")
  assert.strictEqual((yield* callApi(url, token)).status, 200)
  yield* TestClock.adjust("1 millis")
  const response = yield* callApi(url, token)
  deepStrictEqual([response.status, response.headers["www-authenticate"]], [
    401,
    invalid("expired")
  ])
})

test.live("the API rejects a token that is sent twice with 400 invalid_request", function*() {
  const { url } = yield* Emulator.make()
  const value = `Bearer ${yield* getToken(url)}`
  const headers = ["Host", "localhost", "Authorization", value, "Authorization", value]
  const response = yield* send(url, { path: "/orders", headers })
  assert.strictEqual(response.status, 400)
  assert.include(response.headers["www-authenticate"], `error="invalid_request"`)
})

/** Three valid tokens and an expired one before them. */
const withThreeTokens = Effect.gen(function*() {
  const emulator = yield* Emulator.make()
  yield* getToken(emulator.url)
  yield* TestClock.adjust("61 minutes")
  const valid = yield* Effect.replicateEffect(getToken(emulator.url), 3)
  return { ...emulator, valid }
})

test("the API rejects a revoked token", function*() {
  const { revoke, url, valid } = yield* withThreeTokens
  yield* revoke()
  for (const token of valid) {
    const { headers, status } = yield* callApi(url, token)
    deepStrictEqual([status, headers["www-authenticate"]], [401, invalid("was revoked")])
  }
})

test("revoke with a token revokes only this one", function*() {
  const { revoke, tokens, valid } = yield* withThreeTokens
  assert.strictEqual(yield* revoke(Redacted.make(valid[0] ?? "")), 1)
  deepStrictEqual((yield* tokens).map(({ revokedAt }) => Option.isSome(revokedAt)), [
    false,
    true,
    false,
    false
  ])
})

test("revoke counts only the valid tokens that it revokes", function*() {
  const { revoke } = yield* withThreeTokens
  const counts = [yield* revoke(), yield* revoke(), yield* revoke("invented-token")]
  deepStrictEqual(counts, [3, 0, 0])
})

test("an emulator deletes a token an hour after its end, so that it can run for days", function*() {
  const { tokens, url } = yield* Emulator.make({ tokenLife: "1 minute" })
  yield* getToken(url)
  yield* TestClock.adjust("60 minutes")
  yield* getToken(url)
  assert.lengthOf(yield* tokens, 2)
  yield* TestClock.adjust("1 minute")
  yield* getToken(url)
  assert.lengthOf(yield* tokens, 2)
})
