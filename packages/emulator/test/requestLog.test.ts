import { AssertionError } from "node:assert"
import { inspect } from "node:util"
import { assert, describe, it } from "@effect/vitest"
import { deepStrictEqual } from "@effect/vitest/utils"
import { Emulator } from "@store-api/emulator"
import { Inspectable, Option, Redacted } from "effect"
import { test } from "../../core/test/support/test.js"
import { askToken, callApi, demoBody, demoSecret, formType, getToken, send, tokenPath } from "./utils.js"

/** The value, printed in all common ways. */
const renderings = (value: unknown) => [
  inspect(value, { depth: 20, showHidden: true }),
  inspect(value, { depth: 20, customInspect: false, showHidden: true, getters: true }),
  JSON.stringify(value),
  String(value),
  Inspectable.toStringUnknown(value),
  Inspectable.format(value),
  new AssertionError({ actual: value, expected: undefined, operator: "deepStrictEqual" }).message
]

const encodings = (secret: string) => [
  secret,
  encodeURIComponent(secret),
  JSON.stringify(secret).slice(1, -1),
  Buffer.from(secret).toString("base64"),
  Buffer.from(secret).toString("hex")
]

const leaks = (value: unknown, secrets: ReadonlyArray<string>) =>
  renderings(value).filter((text) => secrets.flatMap(encodings).some((secret) => text.includes(secret)))

describe("the request log", () => {
  test.live("holds every request in order, with its content and the status of its response", function*() {
    const { requests, url } = yield* Emulator.make()
    const token = yield* getToken(url)
    yield* callApi(url, token, { method: "DELETE", path: "/orders/7?force=1" })
    yield* send(url, { path: "/orders", headers: { "X-Two": ["a", "b"] } })
    const log = yield* requests
    deepStrictEqual(
      log.map(({ bodyBytes, kind, method, status, url }) => [kind, method, url, Option.getOrNull(status), bodyBytes]),
      [
        ["token", "POST", tokenPath, 200, demoBody.length],
        ["api", "DELETE", "/orders/7?force=1", 200, 0],
        ["api", "GET", "/orders", 401, 0]
      ]
    )
    const [tokenRequest, apiRequest, withoutToken] = log
    assert.isDefined(tokenRequest)
    assert.isDefined(apiRequest)
    assert.isDefined(withoutToken)
    assert.strictEqual(Redacted.value(tokenRequest.body), demoBody)
    assert.strictEqual(tokenRequest.headers["content-type"], formType)
    assert.isTrue(Option.isNone(tokenRequest.authorization))
    assert.strictEqual(Redacted.value(apiRequest.rawUrl), "/orders/7?force=1")
    deepStrictEqual(Option.map(apiRequest.authorization, Redacted.value), Option.some(`Bearer ${token}`))
    assert.strictEqual(withoutToken.headers["x-two"], "a, b")
  })

  test.live("is empty after clearRequests", function*() {
    const { clearRequests, requests, url } = yield* Emulator.make()
    yield* askToken(url)
    yield* clearRequests
    assert.lengthOf(yield* requests, 0)
    yield* askToken(url)
    assert.lengthOf(yield* requests, 1)
  })

  test.live("counts all bytes of a body that is too large, and keeps those within the limit", function*() {
    const { requests, url } = yield* Emulator.make()
    yield* askToken(url, { body: "x".repeat(100_000) })
    const [recorded] = yield* requests
    assert.isDefined(recorded)
    assert.strictEqual(recorded.bodyBytes, 100_000)
    assert.lengthOf(Redacted.value(recorded.body), 64 * 1024)
  })
})

describe("printing", () => {
  test.live("the log shows no secret and no token, whatever part of a request holds them", function*() {
    const { requests, url } = yield* Emulator.make()
    const token = yield* getToken(url)
    const wrong = "a-real-secret-sent-by-mistake"
    const encoded = encodeURIComponent(token)
    yield* askToken(url, { body: demoBody.replace(demoSecret, wrong) })
    yield* askToken(url, { path: `${tokenPath}?${demoBody}` })
    yield* askToken(url, { path: `${tokenPath}?client_secret=${wrong}` })
    yield* askToken(url, { path: `${tokenPath}?client%5Fsecret=${wrong}` })
    yield* callApi(url, token, { method: "POST", body: token })
    yield* callApi(url, token, { path: `/orders?access_token=${encoded}` })
    yield* callApi(url, token, { path: `/orders?q=${encoded}` })
    yield* callApi(url, token, { path: `/orders/${encoded}` })
    yield* callApi(url, wrong)
    yield* send(url, {
      path: "/orders",
      headers: { "X-Mine": `t=${token}`, "X-Other": demoSecret, Cookie: wrong, "X-Api-Key": wrong }
    })
    const log = yield* requests
    assert.lengthOf(log, 11)
    assert.lengthOf(leaks(log, [token, demoSecret, wrong]), 0)
    for (const entry of log) assert.lengthOf(leaks(entry, [token, demoSecret, wrong]), 0)
    // The redacted value is still available.
    const last = log[log.length - 1]?.headers["x-mine"]
    assert.strictEqual(Redacted.isRedacted(last) && Redacted.value(last), `t=${token}`)
  })

  test.live("the list of tokens shows no token", function*() {
    const { tokens, url } = yield* Emulator.make()
    const token = yield* getToken(url)
    const list = yield* tokens
    assert.lengthOf(leaks(list, [token]), 0)
    deepStrictEqual(list.map(({ value }) => Redacted.value(value)), [token])
  })

  test.live("the service or the demo client shows no secret", function*() {
    const service = yield* Emulator.make()
    const token = yield* getToken(service.url)
    assert.lengthOf(leaks(service, [token, demoSecret]), 0)
    assert.lengthOf(leaks(Emulator.demoClient, [demoSecret]), 0)
  })

  it("control: this search finds a secret in any encoding", () => {
    // `String` of an object never shows its content.
    assert.lengthOf(leaks([{ headers: { authorization: "Bearer canary+/=" } }], ["canary+/="]), 6)
    for (const hidden of encodings("canary+/=")) {
      assert.isAtLeast(leaks({ body: hidden }, ["canary+/="]).length, 5, hidden)
    }
    assert.lengthOf(leaks("canary+/=", ["canary+/="]), 7)
  })

  test.live("the log shows a query and a header without secrets", function*() {
    const { requests, url } = yield* Emulator.make()
    yield* send(url, { path: "/orders?keyword=shoes&tokens=3", headers: { "X-Trace": "7" } })
    const [recorded] = yield* requests
    assert.strictEqual(recorded?.url, "/orders?keyword=shoes&tokens=3")
    assert.strictEqual(recorded?.headers["x-trace"], "7")
  })
})
