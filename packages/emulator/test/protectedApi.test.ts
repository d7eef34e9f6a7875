import { assert, describe, it } from "@effect/vitest"
import { deepStrictEqual } from "@effect/vitest/utils"
import { Emulator } from "@store-api/emulator"
import { Effect, Option, Redacted, TestClock } from "effect"
import { callApi, getToken, json, send, type Sending } from "./utils.js"

const bare = `Bearer realm="store-api"`
const invalid = (what: string) => `${bare}, error="invalid_token", error_description="The access token ${what}"`

describe("with a live token", () => {
  it.scopedLive("the API tells what arrived, and never the token", () =>
    Effect.gen(function*() {
      const { url } = yield* Emulator.make()
      const token = yield* getToken(url)
      const answer = yield* callApi(url, token, {
        method: "PUT",
        path: `/orders/7?page=2&also=%20&token=${encodeURIComponent(token)}`,
        body: `{"note":"${token}"}`
      })
      assert.strictEqual(answer.status, 200)
      deepStrictEqual(json(answer), {
        method: "PUT",
        path: "/orders/7",
        query: "page=2&also=%20&token=<redacted>",
        clientId: "demo-client",
        body: `{"note":"<redacted>"}`
      })
      assert.notInclude(answer.text, token)
    }))

  it.scopedLive("the API leaves out a body that is not there", () =>
    Effect.gen(function*() {
      const { url } = yield* Emulator.make({ basePath: "/store" })
      const answer = yield* callApi(url, yield* getToken(url))
      deepStrictEqual(json(answer), {
        method: "GET",
        path: "/store/orders",
        query: "",
        clientId: "demo-client"
      })
    }))

  for (const scheme of ["bearer", "BEARER", "bEaReR"]) {
    it.scopedLive(`the API accepts the scheme ${scheme}`, () =>
      Effect.gen(function*() {
        const { url } = yield* Emulator.make()
        const headers = { Authorization: `${scheme} ${yield* getToken(url)}` }
        assert.strictEqual((yield* send(url, { path: "/orders", headers })).status, 200)
      }))
  }

  it.scopedLive("HEAD is answered without a body", () =>
    Effect.gen(function*() {
      const { url } = yield* Emulator.make()
      const answer = yield* callApi(url, yield* getToken(url), { method: "HEAD" })
      deepStrictEqual([answer.status, answer.text], [200, ""])
    }))

  it.scopedLive("a body of more than a MiB is 413", () =>
    Effect.gen(function*() {
      const { url } = yield* Emulator.make()
      const token = yield* getToken(url)
      const body = new Uint8Array(1024 * 1024)
      assert.strictEqual((yield* callApi(url, token, { method: "POST", body })).status, 200)
      const larger = new Uint8Array(1024 * 1024 + 1)
      assert.strictEqual((yield* callApi(url, token, { method: "POST", body: larger })).status, 413)
    }))
})

describe("without a token the API is 401 with a challenge that names no error", () => {
  const headers: Record<string, (token: string) => Sending["headers"]> = {
    "no header": () => ({}),
    "an empty header": () => ({ Authorization: "" }),
    "another scheme": () => ({ Authorization: "Basic aW52ZW50ZWQ6aW52ZW50ZWQ=" }),
    "the token alone": (token) => ({ Authorization: token }),
    "the scheme alone": () => ({ Authorization: "Bearer" }),
    "another header": (token) => ({ "X-Authorization": `Bearer ${token}` })
  }
  for (const [name, make] of Object.entries(headers)) {
    it.scopedLive(name, () =>
      Effect.gen(function*() {
        const { url } = yield* Emulator.make()
        const token = yield* getToken(url)
        const answer = yield* send(url, { path: "/orders", headers: make(token) ?? {} })
        assert.strictEqual(answer.status, 401)
        assert.strictEqual(answer.headers["www-authenticate"], bare)
        assert.notProperty(json(answer), "error")
        assert.notInclude(answer.text, token)
        assert.strictEqual((yield* callApi(url, token)).status, 200)
      }))
  }
})

describe("with a token that is no good the API is 401 with invalid_token", () => {
  it.scopedLive("unknown", () =>
    Effect.gen(function*() {
      const { url } = yield* Emulator.make()
      const answer = yield* callApi(url, "invented-token")
      assert.strictEqual(answer.status, 401)
      assert.strictEqual(answer.headers["www-authenticate"], invalid("is unknown"))
      assert.strictEqual(json(answer)["error"], "invalid_token")
      assert.notInclude(answer.text, "invented-token")
    }))

  it.scopedLive("a live one with a second space before it", () =>
    Effect.gen(function*() {
      const { url } = yield* Emulator.make()
      const token = yield* getToken(url)
      assert.strictEqual((yield* callApi(url, ` ${token}`)).headers["www-authenticate"], invalid("is unknown"))
    }))

  it.scopedLive("of another emulator", () =>
    Effect.gen(function*() {
      const [one, other] = [yield* Emulator.make(), yield* Emulator.make()]
      assert.strictEqual((yield* callApi(one.url, yield* getToken(other.url))).status, 401)
    }))

  it.scopedLive("revoked", () =>
    Effect.gen(function*() {
      const { revoke, tokens, url } = yield* Emulator.make()
      const token = yield* getToken(url)
      assert.strictEqual((yield* callApi(url, token)).status, 200)
      assert.strictEqual(yield* revoke(Redacted.make(token)), 1)
      const answer = yield* callApi(url, token)
      assert.strictEqual(answer.status, 401)
      assert.strictEqual(answer.headers["www-authenticate"], invalid("was revoked"))
      deepStrictEqual((yield* tokens).map(({ revoked }) => revoked), [true])
    }))

  it.scoped("expired: good until its last millisecond, and not after 60 minutes", () =>
    Effect.gen(function*() {
      const { url } = yield* Emulator.make()
      const token = yield* getToken(url)
      yield* TestClock.adjust("3599999 millis")
      assert.strictEqual((yield* callApi(url, token)).status, 200)
      yield* TestClock.adjust("1 millis")
      const answer = yield* callApi(url, token)
      assert.strictEqual(answer.status, 401)
      assert.strictEqual(answer.headers["www-authenticate"], invalid("expired"))
    }))

  it.scoped("forgotten an hour after its end, so that an emulator may run for days", () =>
    Effect.gen(function*() {
      const { tokens, url } = yield* Emulator.make({ tokenLife: "1 minute" })
      yield* getToken(url)
      yield* TestClock.adjust("60 minutes")
      yield* getToken(url)
      assert.lengthOf(yield* tokens, 2)
      yield* TestClock.adjust("1 minute")
      yield* getToken(url)
      assert.lengthOf(yield* tokens, 2)
    }))

  it.scopedLive("expired, on the real clock", () =>
    Effect.gen(function*() {
      const { url } = yield* Emulator.make({ tokenLife: "100 millis" })
      const token = yield* getToken(url)
      yield* Effect.sleep("110 millis")
      assert.strictEqual((yield* callApi(url, token)).headers["www-authenticate"], invalid("expired"))
    }))
})

it.scopedLive("a token that is sent twice is 400 invalid_request", () =>
  Effect.gen(function*() {
    const { url } = yield* Emulator.make()
    const value = `Bearer ${yield* getToken(url)}`
    const headers = ["Host", "localhost", "Authorization", value, "Authorization", value]
    const answer = yield* send(url, { path: "/orders", headers })
    assert.strictEqual(answer.status, 400)
    assert.include(answer.headers["www-authenticate"], `error="invalid_request"`)
  }))

describe("revoke", () => {
  it.scoped("ends all live tokens and counts only those", () =>
    Effect.gen(function*() {
      const { revoke, url } = yield* Emulator.make()
      yield* getToken(url)
      yield* TestClock.adjust("61 minutes")
      const tokens = [yield* getToken(url), yield* getToken(url)]
      assert.strictEqual(yield* revoke(), 2)
      assert.strictEqual(yield* revoke(), 0)
      assert.strictEqual(yield* revoke("invented-token"), 0)
      for (const token of tokens) assert.strictEqual((yield* callApi(url, token)).status, 401)
    }))
})

describe("another header", () => {
  it.scopedLive("is where the token is looked for", () =>
    Effect.gen(function*() {
      const { requests, url } = yield* Emulator.make({ header: { name: "X-Store-Token", prefix: "" } })
      const token = yield* getToken(url)
      assert.strictEqual((yield* send(url, { path: "/a", headers: { "x-store-token": token } })).status, 200)
      assert.strictEqual((yield* callApi(url, token)).status, 401)
      const [, sent] = yield* requests
      assert.isDefined(sent)
      deepStrictEqual(Option.map(sent.authorization, Redacted.value), Option.some(token))
      assert.isTrue(Redacted.isRedacted(sent.headers["x-store-token"]))
    }))
})
