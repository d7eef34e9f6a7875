/** No output contains what a request of `TokenRequest.make` carries, even if the endpoint repeats it. */
import { randomUUID } from "node:crypto"
import { inspect } from "node:util"
import { HttpClient, HttpClientRequest } from "@effect/platform"
import { assert, describe } from "@effect/vitest"
import { deepStrictEqual } from "@effect/vitest/utils"
import {
  AccessTokenProvider,
  ClientCredentials,
  TokenEndpoint,
  TokenRequest
} from "@store-api/core"
import * as Canary from "@store-api/testing/leaksIn"
import { type Output, render } from "@store-api/testing/renderings"
import { test } from "@store-api/testing/test"
import { Effect, Layer, Metric, Redacted, TestClock } from "effect"
import * as dialects from "../../src/internal/endpoint/dialects.js"
import * as FakeClient from "../support/fakeClient.js"
import { capture } from "../support/telemetry.js"
import { tokenBody } from "../support/wire.js"

const secret = Canary.secret()
const inQuery: Canary.Canary = { name: "query", value: Canary.secret().value }
// Only such a word can be a code.
const inHeader: Canary.Canary = { name: "header", value: randomUUID() }
const inBody: Canary.Canary = { name: "body", value: Canary.secret().value }
const other: Canary.Canary = { name: "other", value: randomUUID() }
const canaries = [secret, inQuery, inHeader, inBody]

const authUrl = "https://auth.shop.example"

const request = TokenRequest.make({
  identity: "shop",
  request: ({ clientId, clientSecret }) =>
    Effect.succeed(
      HttpClientRequest.post(authUrl).pipe(
        HttpClientRequest.setUrlParams({
          appid: clientId,
          secret: Redacted.value(clientSecret),
          key: inQuery.value
        }),
        HttpClientRequest.setHeader("x-shop-key", inHeader.value),
        HttpClientRequest.bodyUrlParams({ client_assertion: inBody.value })
      )
    )
})

const credentials = ClientCredentials.make({
  clientId: "invented-client",
  clientSecret: Redacted.make(secret.value)
})

const repeat = (canary: Canary.Canary, status = 400) =>
  FakeClient.reply(
    status,
    JSON.stringify({ error: "invalid_request", error_description: `no ${canary.value} here` })
  )

/** Acquires a token from an endpoint that refuses, with this value in the field at this path. */
const errorAt = (path: ReadonlyArray<string>, value: string) => {
  const body = path.reduceRight<unknown>((inner, name) => ({ [name]: inner }), value)
  const client = FakeClient.make(FakeClient.reply(400, JSON.stringify(body)))
  return Effect.flip(FakeClient.acquire(client, { authUrl, credentials, request }))
}

/** Runs a renewal, a refresh and an acquisition that fail, and logs their errors. */
const journey = Effect.gen(function*() {
  const provider = yield* AccessTokenProvider.AccessTokenProvider
  const first = yield* provider.get
  yield* TestClock.adjust("59 minutes")
  const again = yield* provider.get
  yield* TestClock.adjust("1 seconds")
  const errors = [yield* Effect.flip(provider.refresh)]
  yield* TestClock.adjust("10 minutes")
  errors.push(yield* Effect.flip(provider.get))
  for (const error of errors) yield* Effect.logError("failed", error)
  return { errors, isServed: first === again }
})

/** All outputs of the journey at an endpoint that repeats a value of the request. */
const outputsOf = (canary: Canary.Canary) =>
  Effect.gen(function*() {
    const client = FakeClient.make(
      FakeClient.reply(200, tokenBody()),
      repeat(canary),
      repeat(canary, 401),
      repeat(canary)
    )
    const layer = AccessTokenProvider.layer().pipe(
      Layer.provide(TokenEndpoint.layer({ authUrl, credentials, request })),
      Layer.provide(client.layer)
    )
    const { exit, outputs } = yield* capture(Effect.provide(journey, layer))
    const { errors, isServed } = yield* exit
    assert.isTrue(isServed, "control: the token is served while its renewal fails")
    const metrics = inspect(yield* Metric.snapshot, { depth: 10, maxArrayLength: Infinity })
    const shown = errors.flatMap((error, index) => render(`error ${index}`, error))
    return { errors, outputs: [...outputs, ...shown, { name: "metrics", text: metrics }] }
  })

/** The names of the outputs that contain a text. */
const namesOf = (outputs: ReadonlyArray<Output>, text: string) =>
  new Set(outputs.filter((output) => output.text.includes(text)).map(({ name }) => name))

describe("a request of TokenRequest.make", () => {
  test.each(canaries)(
    "leaks in no output when the endpoint repeats its $name",
    function*(canary) {
      const { errors, outputs } = yield* outputsOf(canary)
      deepStrictEqual(Canary.leaksInOutputs(outputs, canaries), [])
      for (const error of errors) assert(error._tag === "TokenRefusedError")
      const sinks = [
        "logger string",
        "logger logfmt",
        "logger json",
        "logger structured",
        "console.log",
        "log record"
      ]
      for (const name of sinks) {
        assert.isTrue(
          namesOf(outputs, "invalid_request").has(name),
          `control: ${name}`
        )
      }
      assert.isTrue(
        namesOf(outputs, "renewal failed").has("logger string"),
        "control: the warning"
      )
      assert.isTrue(
        namesOf(outputs, "").has("span TokenEndpoint.request"),
        "control: the span"
      )
    }
  )

  const names = [...dialects.codes, ...dialects.texts]
  const places = [[], ...dialects.containers.map((container) => [container])]

  test.each(names)(
    "an error shows no secret that the endpoint repeats in the field %s",
    function*(name) {
      for (const place of places) {
        const shownOf = (value: string) =>
          Effect.map(
            errorAt([...place, name], value),
            (error) => Canary.leaksInOutputs(render("error", error), [inHeader, other])
          )
        deepStrictEqual(yield* shownOf(inHeader.value), [])
        assert.isNotEmpty(yield* shownOf(other.value), `control: ${place.join()}`)
      }
    }
  )

  test("control: the search finds a text that the endpoint does not repeat in the same places", function*() {
    const { outputs } = yield* outputsOf(other)
    const names = new Set(
      Canary.leaksInOutputs(outputs, [other]).map((leak) => leak.split(" shows ")[0])
    )
    const sinks = [
      "logger string",
      "logger json",
      "span TokenEndpoint.request",
      "error 0: message",
      "error 1: JSON"
    ]
    for (const name of sinks) assert.isTrue(names.has(name), name)
  })

  test("control: the span of an HTTP client shows the query", function*() {
    const client = FakeClient.make(FakeClient.token)
    const send = Effect.gen(function*() {
      const sent = yield* Effect.flatMap(credentials, request.request)
      return yield* HttpClient.execute(sent)
    })
    const { outputs } = yield* capture(Effect.provide(send, client.layer))
    const [leak = ""] = Canary.leaksInOutputs(outputs, [inQuery])
    assert.match(leak, /^span (http\.client )?POST shows the query/)
  })
})
