import { AssertionError } from "node:assert"
import { inspect } from "node:util"
import { assert, describe } from "@effect/vitest"
import { deepStrictEqual } from "@effect/vitest/utils"
import { Emulator, Fault } from "@store-api/emulator"
import { leaksIn } from "@store-api/testing/leaksIn"
import { test } from "@store-api/testing/test"
import { Effect, Inspectable, Option, Redacted } from "effect"
import {
  askToken,
  callApi,
  demoBody,
  demoSecret,
  formType,
  getToken,
  send,
  tokenPath
} from "./utils.js"

/** The secrets that the value shows, printed in all common ways. */
const leaks = (value: unknown, ...secrets: ReadonlyArray<string>) =>
  [
    inspect(value, { depth: 20, showHidden: true }),
    inspect(value, { depth: 20, customInspect: false, showHidden: true, getters: true }),
    JSON.stringify(value),
    String(value),
    Inspectable.toStringUnknown(value),
    Inspectable.format(value),
    new AssertionError({ actual: value, expected: undefined, operator: "deepStrictEqual" })
      .message
  ].flatMap((text) => leaksIn(text, secrets))

describe("the request log", () => {
  test.live("holds every request in order, with its content and the status of its response", function*() {
    const { clearRequests, requests, url } = yield* Emulator.make()
    const token = yield* getToken(url)
    yield* callApi(url, token, { method: "DELETE", path: "/orders/7?force=1" })
    yield* send(url, {
      path: "/orders?keyword=shoes&tokens=3",
      headers: { "X-Two": ["a", "b"] }
    })
    const log = yield* requests
    deepStrictEqual(
      log.map((
        { bodyBytes, kind, method, status, url }
      ) => [kind, method, url, Option.getOrNull(status), bodyBytes]),
      [
        ["token", "POST", tokenPath, 200, demoBody.length],
        ["api", "DELETE", "/orders/7?force=1", 200, 0],
        ["api", "GET", "/orders?keyword=shoes&tokens=3", 401, 0]
      ]
    )
    const [
      tokenRequest = assert.fail(),
      apiRequest = assert.fail(),
      withoutToken = assert.fail()
    ] = log
    assert.strictEqual(Redacted.value(tokenRequest.body), demoBody)
    assert.strictEqual(tokenRequest.headers["content-type"], formType)
    assert.isTrue(Option.isNone(tokenRequest.authorization))
    assert.strictEqual(Redacted.value(apiRequest.rawUrl), "/orders/7?force=1")
    deepStrictEqual(
      Option.map(apiRequest.authorization, Redacted.value),
      Option.some(`Bearer ${token}`)
    )
    assert.strictEqual(withoutToken.headers["x-two"], "a, b")
    yield* Effect.zipRight(clearRequests, askToken(url))
    assert.lengthOf(yield* requests, 1)
  })

  test.live("shows where each token request has its credentials", function*() {
    const encoded = { body: demoBody.replace(demoSecret, encodeURIComponent(demoSecret)) }
    const header = {
      headers: { "Content-Type": formType, Authorization: "Basic aW52ZW50ZWQ6aW52ZW50ZWQ=" }
    }
    const methodsOf = (options: Emulator.Options) =>
      Effect.gen(function*() {
        const { fail, requests, url } = yield* Emulator.make(options)
        yield* fail(Fault.status(503))
        for (
          const changes of [encoded, header, { ...header, body: "" }, { body: "" }]
        ) yield* askToken(url, changes)
        yield* callApi(url, "none", encoded)
        return (yield* requests).map(({ clientAuthentication }) =>
          clientAuthentication.join("+")
        )
      })
    deepStrictEqual(
      yield* methodsOf({}),
      ["specification", "client_secret_basic+specification", "client_secret_basic", "", ""]
    )
    deepStrictEqual(
      yield* methodsOf({ clientAuthentication: "client_secret_basic" }),
      [
        "client_secret_post",
        "client_secret_basic+client_secret_post",
        "client_secret_basic",
        "",
        ""
      ]
    )
  })

  test.live("counts all bytes of a body that is too large, and keeps those within the limit", function*() {
    const { requests, url } = yield* Emulator.make()
    yield* askToken(url, { body: "x".repeat(100_000) })
    const [recorded = assert.fail()] = yield* requests
    assert.strictEqual(recorded.bodyBytes, 100_000)
    assert.lengthOf(Redacted.value(recorded.body), 64 * 1024)
  })

  test.live("shows no secret and no token, whatever part of a request holds them", function*() {
    const { requests, url } = yield* Emulator.make()
    const token = yield* getToken(url)
    const wrong = "a-real-secret-sent-by-mistake"
    const encoded = encodeURIComponent(token)
    const inBase64 = Buffer.from(`demo-client:${demoSecret}`).toString("base64")
    yield* askToken(url, { body: demoBody.replace(demoSecret, wrong) })
    for (const query of [demoBody, `client_secret=${wrong}`, `client%5Fsecret=${wrong}`]) {
      yield* askToken(url, { path: `${tokenPath}?${query}` })
    }
    yield* askToken(url, { headers: { Authorization: `Basic ${inBase64}` } })
    yield* callApi(url, token, { method: "POST", body: token })
    for (
      const path of [
        `/orders?access_token=${encoded}`,
        `/orders?q=${encoded}`,
        `/orders/${encoded}`
      ]
    ) {
      yield* callApi(url, token, { path })
    }
    yield* callApi(url, wrong)
    yield* send(url, {
      path: "/orders",
      headers: {
        "X-Mine": `t=${token}`,
        "X-Other": demoSecret,
        Cookie: wrong,
        "X-Api-Key": wrong
      }
    })
    const log = yield* requests
    assert.lengthOf(log, 12)
    for (const value of [log, ...log]) {
      deepStrictEqual(leaks(value, token, demoSecret, wrong, inBase64), [])
    }
    // The redacted value is still available.
    const last = log[log.length - 1]?.headers["x-mine"]
    assert.strictEqual(Redacted.isRedacted(last) && Redacted.value(last), `t=${token}`)
  })
})

test.live("the list of tokens, the service and the demo client show no secret when they are printed", function*() {
  const service = yield* Emulator.make()
  const token = yield* getToken(service.url)
  const list = yield* service.tokens
  for (const value of [list, service, Emulator.demoClient]) {
    deepStrictEqual(leaks(value, token, demoSecret), [])
  }
  deepStrictEqual(list.map(({ value }) => Redacted.value(value)), [token])
  // Control: `String` of an object never shows its content.
  assert.lengthOf(leaks([{ headers: { authorization: `Bearer ${token}` } }], token), 6)
  assert.lengthOf(leaks(token, token), 7)
})
