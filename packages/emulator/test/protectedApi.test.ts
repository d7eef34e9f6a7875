import { assert, describe } from "@effect/vitest"
import { deepStrictEqual } from "@effect/vitest/utils"
import { Emulator } from "@store-api/emulator"
import { Effect, Option, Redacted, TestClock } from "effect"
import { test } from "../../core/test/support/test.js"
import { callApi, getToken, type HttpRequest, json, send } from "./utils.js"

const challenge = `Bearer realm="store-api"`
const invalid = (reason: string) =>
  `${challenge}, error="invalid_token", error_description="The access token ${reason}"`

describe("the API, with a valid token", () => {
  test.live("describes the request without the token", function*() {
    const { url } = yield* Emulator.make()
    const token = yield* getToken(url)
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
    assert.notInclude(response.text, token)
  })

  test.live("omits the body if the request has none", function*() {
    const { url } = yield* Emulator.make({ basePath: "/store" })
    const response = yield* callApi(url, yield* getToken(url))
    deepStrictEqual(json(response), {
      method: "GET",
      path: "/store/orders",
      query: "",
      clientId: "demo-client"
    })
  })

  for (const scheme of ["bearer", "BEARER", "bEaReR"]) {
    test.live(`accepts the scheme ${scheme}`, function*() {
      const { url } = yield* Emulator.make()
      const headers = { Authorization: `${scheme} ${yield* getToken(url)}` }
      assert.strictEqual((yield* send(url, { path: "/orders", headers })).status, 200)
    })
  }

  test.live("responds to HEAD without a body", function*() {
    const { url } = yield* Emulator.make()
    const response = yield* callApi(url, yield* getToken(url), { method: "HEAD" })
    deepStrictEqual([response.status, response.text], [200, ""])
  })

  test.live("responds with 413 to a body of more than 1 MiB", function*() {
    const { url } = yield* Emulator.make()
    const token = yield* getToken(url)
    const body = new Uint8Array(1024 * 1024)
    assert.strictEqual((yield* callApi(url, token, { method: "POST", body })).status, 200)
    const larger = new Uint8Array(1024 * 1024 + 1)
    assert.strictEqual((yield* callApi(url, token, { method: "POST", body: larger })).status, 413)
  })
})

describe("the API responds with 401 and a challenge without an error code to", () => {
  const headers: Record<string, (token: string) => HttpRequest["headers"]> = {
    "no header": () => ({}),
    "an empty header": () => ({ Authorization: "" }),
    "another scheme": () => ({ Authorization: "Basic aW52ZW50ZWQ6aW52ZW50ZWQ=" }),
    "the token without a scheme": (token) => ({ Authorization: token }),
    "the scheme without a token": () => ({ Authorization: "Bearer" }),
    "another header": (token) => ({ "X-Authorization": `Bearer ${token}` })
  }
  for (const [name, make] of Object.entries(headers)) {
    test.live(name, function*() {
      const { url } = yield* Emulator.make()
      const token = yield* getToken(url)
      const response = yield* send(url, { path: "/orders", headers: make(token) ?? {} })
      assert.strictEqual(response.status, 401)
      assert.strictEqual(response.headers["www-authenticate"], challenge)
      assert.notProperty(json(response), "error")
      assert.notInclude(response.text, token)
      assert.strictEqual((yield* callApi(url, token)).status, 200)
    })
  }
})

describe("the API responds with 401 invalid_token to", () => {
  test.live("an unknown token", function*() {
    const { url } = yield* Emulator.make()
    const response = yield* callApi(url, "invented-token")
    assert.strictEqual(response.status, 401)
    assert.strictEqual(response.headers["www-authenticate"], invalid("is unknown"))
    assert.strictEqual(json(response)["error"], "invalid_token")
    assert.notInclude(response.text, "invented-token")
  })

  test.live("a valid token after two spaces", function*() {
    const { url } = yield* Emulator.make()
    const token = yield* getToken(url)
    assert.strictEqual((yield* callApi(url, ` ${token}`)).headers["www-authenticate"], invalid("is unknown"))
  })

  test.live("a token of another emulator", function*() {
    const [one, other] = [yield* Emulator.make(), yield* Emulator.make()]
    assert.strictEqual((yield* callApi(one.url, yield* getToken(other.url))).status, 401)
  })

  test.live("a revoked token", function*() {
    const { revoke, tokens, url } = yield* Emulator.make()
    const token = yield* getToken(url)
    assert.strictEqual((yield* callApi(url, token)).status, 200)
    assert.strictEqual(yield* revoke(Redacted.make(token)), 1)
    const response = yield* callApi(url, token)
    assert.strictEqual(response.status, 401)
    assert.strictEqual(response.headers["www-authenticate"], invalid("was revoked"))
    deepStrictEqual((yield* tokens).map(({ revoked }) => revoked), [true])
  })

  test("an expired token, but not before the last millisecond of its 60 minutes", function*() {
    const { url } = yield* Emulator.make()
    const token = yield* getToken(url)
    yield* TestClock.adjust("3599999 millis")
    assert.strictEqual((yield* callApi(url, token)).status, 200)
    yield* TestClock.adjust("1 millis")
    const response = yield* callApi(url, token)
    assert.strictEqual(response.status, 401)
    assert.strictEqual(response.headers["www-authenticate"], invalid("expired"))
  })

  test.live("an expired token, on the real clock", function*() {
    const { url } = yield* Emulator.make({ tokenLife: "100 millis" })
    const token = yield* getToken(url)
    yield* Effect.sleep("110 millis")
    assert.strictEqual((yield* callApi(url, token)).headers["www-authenticate"], invalid("expired"))
  })
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

test.live("the API responds with 400 invalid_request to a token that is sent twice", function*() {
  const { url } = yield* Emulator.make()
  const value = `Bearer ${yield* getToken(url)}`
  const headers = ["Host", "localhost", "Authorization", value, "Authorization", value]
  const response = yield* send(url, { path: "/orders", headers })
  assert.strictEqual(response.status, 400)
  assert.include(response.headers["www-authenticate"], `error="invalid_request"`)
})

describe("revoke", () => {
  test("revokes all valid tokens, and counts only those", function*() {
    const { revoke, url } = yield* Emulator.make()
    yield* getToken(url)
    yield* TestClock.adjust("61 minutes")
    const tokens = [yield* getToken(url), yield* getToken(url)]
    assert.strictEqual(yield* revoke(), 2)
    assert.strictEqual(yield* revoke(), 0)
    assert.strictEqual(yield* revoke("invented-token"), 0)
    for (const token of tokens) assert.strictEqual((yield* callApi(url, token)).status, 401)
  })
})

describe("the option header", () => {
  test.live("names the header in which the API expects the token", function*() {
    const { requests, url } = yield* Emulator.make({ header: { name: "X-Store-Token", prefix: "" } })
    const token = yield* getToken(url)
    assert.strictEqual((yield* send(url, { path: "/a", headers: { "x-store-token": token } })).status, 200)
    assert.strictEqual((yield* callApi(url, token)).status, 401)
    const [, sent] = yield* requests
    assert.isDefined(sent)
    deepStrictEqual(Option.map(sent.authorization, Redacted.value), Option.some(token))
    assert.isTrue(Redacted.isRedacted(sent.headers["x-store-token"]))
  })
})
