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
import { httpReason } from "@store-api/testing/effectMajor"
import * as Canary from "@store-api/testing/leaksIn"
import { render } from "@store-api/testing/renderings"
import { test } from "@store-api/testing/test"
import { Cause, Effect, Exit, Schema, Stream } from "effect"
import { token } from "../support/scriptedSource.js"

const canary = Canary.token()

/** An authorized client over a client that `answer` implements. */
const makeClient = (
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

const respond = (
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

const fail = (request: HttpClientRequest.HttpClientRequest) =>
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
    const naive = HttpClient.make((request) => respond(404, "{}")(request)).pipe(
      HttpClient.mapRequest(HttpClientRequest.bearerToken(canary.value))
    )
    const response = yield* naive.get("https://api.store.example/v1/orders")
    assert.isAbove(leaksOf(response).length, 0)
    assert.isAbove(
      leaksOf(yield* Effect.flip(HttpClientResponse.filterStatusOk(response))).length,
      0
    )
  })

  /** A response, and the request with the header that was sent for it. */
  const post = Effect.gen(function*() {
    const requests: Array<HttpClientRequest.HttpClientRequest> = []
    const client = yield* makeClient((request) => {
      requests.push(request)
      return respond(200, `{"orders":[1]}`, {
        "content-type": "application/json",
        "set-cookie": "a=b"
      })(request)
    })
    const response = yield* client.post("/orders", {
      urlParams: { page: "1" },
      headers: { "x-mine": "1" },
      body: HttpBody.text("{}", "application/vnd.invented+json")
    })
    const sent = requests.find(({ headers }) => "authorization" in headers)
    return { response, sent: sent ?? assert.fail("nothing was sent") }
  })

  test("a response lacks the header", function*() {
    const { response, sent } = yield* post
    assert.strictEqual(sent.headers["authorization"], `Bearer ${canary.value}`)
    deepStrictEqual(leaksOf(response), [])
    assert.isFalse("authorization" in response)
  })

  test("a response and an error lack a proof that was added below, which is as private", function*() {
    const proof = Canary.token()
    const prove = HttpClient.mapRequest(HttpClientRequest.setHeader("dpop", proof.value))
    const client = yield* makeClient(respond(404, "{}"), {}, prove)
    const response = yield* client.get("/orders")
    const error = yield* Effect.flip(HttpClientResponse.filterStatusOk(response))
    const leaks = (value: unknown) => Canary.leaksInOutputs(render("it", value), [proof])
    deepStrictEqual([...leaks(response), ...leaks(error)], [])
    const naive = prove(HttpClient.make((request) => respond(404, "{}")(request)))
    assert.isNotEmpty(
      leaks(yield* naive.get("https://api.store.example/v1/orders")),
      "control"
    )
  })

  test("a response whose body was read lacks the header", function*() {
    const { response } = yield* post
    yield* response.json
    deepStrictEqual(leaksOf(response), [])
  })

  test("the request of a response is unchanged except for the header", function*() {
    const { response: { request }, sent } = yield* post
    const { authorization: _, ...others } = sent.headers
    deepStrictEqual({ ...request.headers }, others)
    deepStrictEqual([request.method, request.url, request.urlParams], [
      "POST",
      "https://api.store.example/v1/orders",
      sent.urlParams
    ])
    assert.strictEqual(request.body, sent.body)
    assert.strictEqual(request.pipe(HttpClientRequest.setMethod("PUT")).method, "PUT")
  })

  test("the fields of a response are unchanged", function*() {
    const { response } = yield* post
    assert.strictEqual(response.status, 200)
    assert.strictEqual(response.headers["content-type"], "application/json")
    assert.isTrue("a" in response.cookies.cookies)
    assert.strictEqual(response.remoteAddress._tag, "None")
    assert.include(String(response), "/v1/orders")
    assert.include(String(response), "HttpClientResponse")
    assert.strictEqual(response[HttpClientResponse.TypeId], HttpClientResponse.TypeId)
    assert.strictEqual(response[HttpIncomingMessage.TypeId], HttpIncomingMessage.TypeId)
    assert.isTrue(HttpClientResponse.TypeId in response)
  })

  test("the body can be read as JSON, text or by a schema", function*() {
    const { response } = yield* post
    const Orders = Schema.Struct({ orders: Schema.Array(Schema.Int) })
    deepStrictEqual(yield* response.json, { orders: [1] })
    assert.strictEqual(yield* response.text, `{"orders":[1]}`)
    deepStrictEqual(yield* HttpClientResponse.schemaBodyJson(Orders)(response), {
      orders: [1]
    })
  })

  test("the body can be read in its other forms", function*() {
    const client = yield* makeClient(
      respond(200, "a=b", { "content-type": "application/x-www-form-urlencoded" })
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
    const client = yield* makeClient((request) =>
      Effect.sync(() => HttpClientResponse.fromWeb(request, new Response(failing())))
    )
    for (const [form, read] of Object.entries(forms)) {
      const error = yield* Effect.flip(Effect.flatMap(client.get("/orders"), read))
      assert.isTrue(HttpClientError.isHttpClientError(error), form)
      deepStrictEqual(leaksOf(error), [], form)
    }
  })

  type Fails = Effect.Effect<unknown, HttpClientError.HttpClientError>

  const callWith = (...settings: Parameters<typeof makeClient>) =>
    Effect.flatMap(makeClient(...settings), (client) => client.get("/orders"))

  const noBody = (request: HttpClientRequest.HttpClientRequest) =>
    Effect.succeed(HttpClientResponse.fromWeb(request, new Response(null)))

  test.each<readonly [string, reason: string, call: Effect.Effect<unknown, unknown>]>([
    [
      "a body that is not JSON",
      "Decode",
      Effect.flatMap(callWith(respond(200, "{broken")), ({ json }) => json)
    ],
    [
      "a body that is not a form",
      "Decode",
      Effect.flatMap(callWith(respond(200, "{broken")), ({ formData }) => formData)
    ],
    [
      "a missing body",
      "EmptyBody",
      Effect.flatMap(callWith(noBody), ({ stream }) => Stream.runDrain(stream))
    ],
    [
      "filterStatusOk over the client",
      "StatusCode",
      Effect.flatMap(callWith(respond(403, "{}")), HttpClientResponse.filterStatusOk)
    ],
    [
      "filterStatusOk under the client",
      "StatusCode",
      callWith(respond(403, "{}"), {}, HttpClient.filterStatusOk)
    ],
    [
      "filterStatusOk under the client with a 401",
      "StatusCode",
      callWith(respond(401, "{}"), {}, HttpClient.filterStatusOk)
    ],
    ["the transport", "Transport", callWith(fail)]
  ])("the error of %s lacks the header", function*([, reason, call]) {
    const error = yield* Effect.flip(call as Fails)
    assert.isTrue(HttpClientError.isHttpClientError(error))
    assert.strictEqual(httpReason(error), reason)
    assert.strictEqual(error.request.url, "https://api.store.example/v1/orders")
    const { response } = error as { readonly response?: HttpClientResponse.HttpClientResponse }
    assert.isUndefined(response?.request.headers["authorization"])
    deepStrictEqual([...leaksOf(error), ...leaksOf(response)], [])
  })

  test("an error keeps its message with its cause", function*() {
    const error = yield* Effect.flip(callWith(fail) as Fails)
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
    const client = yield* makeClient(fail, {}, wrapping)
    const error = yield* Effect.flip(client.get("/orders"))
    deepStrictEqual(leaksOf(error), [])
    let cause: unknown = error
    for (let depth = 0; depth < 3; depth++) cause = (cause as Error).cause
    assert.strictEqual((cause as Error).message, "the cause")
  })

  test("an error that the given client turned into a defect lacks the header", function*() {
    const client = yield* makeClient(fail, {}, HttpClient.transformResponse(Effect.orDie))
    const exit = yield* Effect.exit(client.get("/orders"))
    assert.isTrue(Exit.isFailure(exit) && Cause.isDie(exit.cause))
    deepStrictEqual(leaksOf(exit), [])
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
      firstError(HttpClient.make(fail)),
      {
        apiUrl: "https://api.store.example"
      }
    ).pipe(Effect.provide(provider))
    const error = yield* Effect.flip(client.get("/orders"))
    assert.isTrue(HttpClientError.isHttpClientError(error))
    deepStrictEqual([acquired, leaksOf(error)], [2, []])
  })

  test("a response lacks a header with another name", function*() {
    const client = yield* makeClient(respond(200, "{}"), {
      header: { name: "X-Store-Token", format: (value) => value }
    })
    deepStrictEqual(leaksOf(yield* client.get("/orders")), [])
  })

  test("an error of another request is passed on unchanged", function*() {
    const other = new HttpClientError.RequestError({
      request: HttpClientRequest.get("/other"),
      reason: "Encode"
    })
    const nested = yield* makeClient(() => Effect.fail(other))
    const error = yield* Effect.flip(nested.get("/"))
    assert.isTrue(HttpClientError.isHttpClientError(error) && error.request === other.request)
  })
})
