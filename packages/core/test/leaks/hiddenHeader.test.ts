import {
  HttpBody,
  HttpClient,
  HttpClientError,
  HttpClientRequest,
  HttpClientResponse,
  HttpIncomingMessage
} from "@effect/platform"
import { assert, describe } from "@effect/vitest"
import { deepStrictEqual } from "@effect/vitest/utils"
import { AccessTokenError, AccessTokenProvider, AuthorizedHttpClient } from "@store-api/core"
import { httpReason } from "@store-api/testing/effectLine"
import * as Canary from "@store-api/testing/leaksIn"
import { render } from "@store-api/testing/renderings"
import { test } from "@store-api/testing/test"
import { Effect, Schema, Stream } from "effect"
import { token } from "../support/scriptedSource.js"

const canary = Canary.token()

/** An authorized client over a client that `answer` implements. */
const make = (
  answer: (request: HttpClientRequest.HttpClientRequest) => Effect.Effect<
    HttpClientResponse.HttpClientResponse,
    HttpClientError.HttpClientError
  >,
  options: Partial<AuthorizedHttpClient.Options> = {},
  decorate: (client: HttpClient.HttpClient) => HttpClient.HttpClient = (client) => client
) =>
  authorize(decorate(HttpClient.make((request) => answer(request))), {
    apiUrl: "https://api.store.example/v1",
    ...options
  })

const authorize = (client: HttpClient.HttpClient, options: AuthorizedHttpClient.Options) =>
  AuthorizedHttpClient.withAccessToken(client, options).pipe(
    Effect.provide(AccessTokenProvider.layerTest(token(canary.value)))
  )

const responding = (
  status: number,
  body: string,
  headers: HeadersInit = { "content-type": "application/json" }
) =>
(
  request: HttpClientRequest.HttpClientRequest
) =>
  Effect.sync(() =>
    HttpClientResponse.fromWeb(request, new Response(body, { status, headers }))
  )

const failing = (request: HttpClientRequest.HttpClientRequest) =>
  Effect.fail(
    new HttpClientError.RequestError({
      request,
      reason: "Transport",
      cause: new Error("the cause"),
      description: "the description"
    })
  )

const forms: Readonly<
  Record<
    string,
    (response: HttpClientResponse.HttpClientResponse) => Effect.Effect<unknown, unknown>
  >
> = {
  json: ({ json }) => json,
  text: ({ text }) => text,
  urlParamsBody: ({ urlParamsBody }) => urlParamsBody,
  formData: ({ formData }) => formData,
  arrayBuffer: ({ arrayBuffer }) => arrayBuffer,
  stream: ({ stream }) => Stream.runDrain(stream)
}

const leaksOf = (value: unknown) => Canary.leaksInOutputs(render("it", value), [canary])

describe("the results of the authorized client lack the header", () => {
  test("control: a naive client shows the header in the same places", function*() {
    const naive = HttpClient.make((request) => responding(404, "{}")(request)).pipe(
      HttpClient.mapRequest(HttpClientRequest.bearerToken(canary.value))
    )
    const response = yield* naive.get("https://api.store.example/v1/orders")
    assert.isAbove(leaksOf(response).length, 0)
    assert.isAbove(
      leaksOf(yield* Effect.flip(HttpClientResponse.filterStatusOk(response))).length,
      0
    )
  })

  test("a response and its request lack the header and are otherwise unchanged", function*() {
    const requests: Array<HttpClientRequest.HttpClientRequest> = []
    const client = yield* make((request) => {
      requests.push(request)
      return responding(200, `{"orders":[1]}`, {
        "content-type": "application/json",
        "set-cookie": "a=b"
      })(request)
    })
    const response = yield* client.post("/orders", {
      urlParams: { page: "1" },
      headers: { "x-mine": "1" },
      body: HttpBody.text("{}", "application/vnd.invented+json")
    })
    const sent = requests.find(({ headers }) => "authorization" in headers) ??
      assert.fail("nothing was sent")
    assert.strictEqual(sent.headers["authorization"], `Bearer ${canary.value}`)
    deepStrictEqual(leaksOf(response), [])
    const { authorization: _, ...others } = sent.headers
    deepStrictEqual({ ...response.request.headers }, others)
    deepStrictEqual([response.request.method, response.request.url], [
      "POST",
      "https://api.store.example/v1/orders"
    ])
    deepStrictEqual(response.request.urlParams, sent.urlParams)
    assert.strictEqual(response.request.body, sent.body)
    deepStrictEqual([
      response.request.pipe(HttpClientRequest.setMethod("PUT")).method,
      response.status
    ], ["PUT", 200])
    assert.strictEqual(response.headers["content-type"], "application/json")
    assert.isTrue("a" in response.cookies.cookies)
    deepStrictEqual(response.remoteAddress._tag, "None")
    deepStrictEqual(yield* response.json, { orders: [1] })
    assert.strictEqual(yield* response.text, `{"orders":[1]}`)
    const Orders = Schema.Struct({ orders: Schema.Array(Schema.Int) })
    deepStrictEqual(yield* HttpClientResponse.schemaBodyJson(Orders)(response), {
      orders: [1]
    })
    assert.include(String(response), "/v1/orders")
    assert.include(String(response), "HttpClientResponse")
    assert.isTrue(HttpClientResponse.TypeId in response && !("authorization" in response))
    assert.strictEqual(response[HttpClientResponse.TypeId], HttpClientResponse.TypeId)
    assert.strictEqual(response[HttpIncomingMessage.TypeId], HttpIncomingMessage.TypeId)
    deepStrictEqual(leaksOf(response), [])
  })

  test("the body can be read in its other forms", function*() {
    const client = yield* make(
      responding(200, "a=b", { "content-type": "application/x-www-form-urlencoded" })
    )
    deepStrictEqual([
      ...yield* Effect.flatMap(client.get("/"), ({ urlParamsBody }) => urlParamsBody)
    ], [["a", "b"]])
    const form = yield* Effect.flatMap(client.get("/"), ({ formData }) => formData)
    assert.strictEqual(form.get("a"), "b")
    const buffer = yield* Effect.flatMap(client.get("/"), ({ arrayBuffer }) => arrayBuffer)
    assert.strictEqual(Buffer.from(buffer).toString(), "a=b")
    const text = yield* Stream.mkString(
      Stream.decodeText(HttpClientResponse.stream(client.get("/")))
    )
    assert.strictEqual(text, "a=b")
  })

  test("the errors of a failing body lack the header, in each form of the body", function*() {
    const failing = () =>
      new ReadableStream({ pull: (to) => to.error(new Error("the end of a connection")) })
    const client = yield* make((request) =>
      Effect.sync(() => HttpClientResponse.fromWeb(request, new Response(failing())))
    )
    for (const [form, read] of Object.entries(forms)) {
      const error = yield* Effect.flip(Effect.flatMap(client.get("/orders"), read))
      assert.isTrue(HttpClientError.isHttpClientError(error), form)
      deepStrictEqual(leaksOf(error), [], form)
    }
  })

  test("errors of the body, the transport and a status filter over or under the client lack the header", function*() {
    const noJson = yield* Effect.flatMap(
      make(responding(200, "{broken")),
      (client) => client.get("/orders")
    )
    const empty = yield* Effect.flatMap(
      make((request) =>
        Effect.succeed(HttpClientResponse.fromWeb(request, new Response(null)))
      ),
      (client) => client.get("/orders")
    )
    const over = yield* make(responding(403, "{}"))
    const under = yield* make(responding(403, "{}"), {}, HttpClient.filterStatusOk)
    const rejected = yield* make(responding(401, "{}"), {}, HttpClient.filterStatusOk)
    const transport = yield* make(failing)
    const failures = [
      ...[["Decode", noJson.json], ["Decode", noJson.formData], [
        "EmptyBody",
        Stream.runDrain(empty.stream)
      ]] as const,
      ["StatusCode", HttpClient.filterStatusOk(over).get("/orders")],
      ...[under, rejected].map((client) => ["StatusCode", client.get("/orders")] as const),
      ["Transport", transport.get("/orders")]
    ] as const
    for (const [kind, effect] of failures) {
      const error = yield* Effect.flip(
        effect as Effect.Effect<unknown, HttpClientError.HttpClientError>
      )
      assert.strictEqual(httpReason(error), kind)
      assert.isTrue(HttpClientError.isHttpClientError(error))
      assert.strictEqual(error.request.url, "https://api.store.example/v1/orders")
      deepStrictEqual(leaksOf(error), [], kind)
      const { response } = error as {
        readonly response?: HttpClientResponse.HttpClientResponse
      }
      if (response !== undefined) {
        assert.isUndefined(response.request.headers["authorization"])
        deepStrictEqual(leaksOf(response), [])
      }
    }
    const error = yield* Effect.flip(transport.get("/orders"))
    assert.isTrue(
      HttpClientError.isHttpClientError(error) && httpReason(error) === "Transport"
    )
    assert.strictEqual(
      error.message,
      "Transport: the description (GET https://api.store.example/v1/orders)"
    )
    assert.strictEqual((error.cause as Error).message, "the cause")
  })

  test("an error lacks the header in its cause too", function*() {
    const wrapping = HttpClient.transform((
      sending: ReturnType<HttpClient.HttpClient["execute"]>,
      request
    ) =>
      Effect.mapError(sending, (cause) =>
        new HttpClientError.RequestError({
          request,
          reason: "Transport",
          cause: new HttpClientError.RequestError({ request, reason: "Transport", cause })
        }))
    )
    const client = yield* make(failing, {}, wrapping)
    const error = yield* Effect.flip(client.get("/orders"))
    deepStrictEqual(leaksOf(error), [])
    let cause: unknown = error
    for (let depth = 0; depth < 3; depth++) cause = (cause as Error).cause
    assert.strictEqual((cause as Error).message, "the cause")
  })

  test("the error of an earlier attempt of the given client lacks the header", function*() {
    const firstError = HttpClient.transformResponse((
      send: ReturnType<HttpClient.HttpClient["execute"]>
    ) => Effect.catchAll(send, (first) => Effect.mapError(send, () => first)))
    let acquired = 0
    const unavailable = new AccessTokenError.TokenRequestError({
      reason: "Transport",
      attempts: 1
    })
    const provider = AccessTokenProvider.layerTest(
      Effect.suspend(() => acquired++ === 0 ? token(canary.value) : Effect.fail(unavailable))
    )
    const client = yield* AuthorizedHttpClient.withAccessToken(
      firstError(HttpClient.make(failing)),
      {
        apiUrl: "https://api.store.example"
      }
    ).pipe(Effect.provide(provider))
    const error = yield* Effect.flip(client.get("/orders"))
    assert.isTrue(HttpClientError.isHttpClientError(error))
    deepStrictEqual([acquired, leaksOf(error)], [2, []])
  })

  test("a response lacks a header with another name and format", function*() {
    const client = yield* make(responding(200, "{}"), {
      header: { name: "X-Store-Token", format: (value) => value }
    })
    deepStrictEqual(leaksOf(yield* client.get("/orders")), [])
  })

  test("an error of another request is passed on unchanged", function*() {
    const other = new HttpClientError.RequestError({
      request: HttpClientRequest.get("/other"),
      reason: "Encode"
    })
    const nested = yield* make(() => Effect.fail(other))
    const error = yield* Effect.flip(nested.get("/"))
    assert.isTrue(HttpClientError.isHttpClientError(error) && error.request === other.request)
  })
})
