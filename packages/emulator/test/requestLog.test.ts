import { AssertionError } from "node:assert"
import { inspect } from "node:util"
import { assert } from "@effect/vitest"
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

const startWithThree = Effect.gen(function*() {
  const emulator = yield* Emulator.make()
  const token = yield* getToken(emulator.url)
  yield* callApi(emulator.url, token, { method: "DELETE", path: "/orders/7?force=1" })
  yield* send(emulator.url, {
    path: "/orders?keyword=shoes&tokens=3",
    headers: { "X-Two": ["a", "b"] }
  })
  const [ofToken = assert.fail(), ofApi = assert.fail(), withoutToken = assert.fail()] =
    yield* emulator.requests
  return {
    ...emulator,
    log: [ofToken, ofApi, withoutToken],
    ofApi,
    ofToken,
    token,
    withoutToken
  }
})

test.live("the log holds every request in order with the status of its response", function*() {
  const { log } = yield* startWithThree
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
})

test.live("the log holds the content of a request as it was sent", function*() {
  const { ofApi, ofToken, token, withoutToken } = yield* startWithThree
  assert.strictEqual(Redacted.value(ofToken.body), demoBody)
  assert.strictEqual(ofToken.headers["content-type"], formType)
  assert.strictEqual(Redacted.value(ofApi.rawUrl), "/orders/7?force=1")
  assert.strictEqual(withoutToken.headers["x-two"], "a, b")
  deepStrictEqual(
    [ofToken, ofApi].map(({ authorization }) => Option.map(authorization, Redacted.value)),
    [Option.none(), Option.some(`Bearer ${token}`)]
  )
})

test.live("clearRequests empties the log", function*() {
  const { clearRequests, requests, url } = yield* startWithThree
  yield* clearRequests
  yield* askToken(url)
  assert.lengthOf(yield* requests, 1)
})

test.live("the log shows where each token request has its credentials", function*() {
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

const startWithLongBody = Effect.gen(function*() {
  const { requests, url } = yield* Emulator.make()
  yield* askToken(url, { body: "x".repeat(100_000) })
  return (yield* requests)[0] ?? assert.fail()
})

test.live("the log counts all bytes of a body that is too large", function*() {
  assert.strictEqual((yield* startWithLongBody).bodyBytes, 100_000)
})

test.live("the log keeps the first 64 KiB of a body that is too large", function*() {
  assert.lengthOf(Redacted.value((yield* startWithLongBody).body), 64 * 1024)
})

test.live("the log shows no secret, whatever part of a request holds it", function*() {
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

test.live("printing the service, its tokens or the demo client shows no secret", function*() {
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
