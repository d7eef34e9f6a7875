import { inspect } from "node:util"
import { HttpBody, HttpClient, HttpClientError, HttpClientResponse } from "@effect/platform"
import { assert, describe, it } from "@effect/vitest"
import { deepStrictEqual } from "@effect/vitest/utils"
import { AccessTokenError, AccessTokenProvider, AuthorizedHttpClient } from "@store-api/core"
import { Context, Effect, Fiber, Layer, Schema, Stream, TestClock } from "effect"
import * as httpErrors from "../src/internal/httpErrors.js"
import * as CaptureServer from "./support/captureServer.js"
import { onEachClient } from "./support/clients.js"
import { httpReason } from "./support/effectLine.js"
import { answering, token } from "./support/scriptedSource.js"

const apiUrl = "https://api.store.example/v1"

const unavailable = Effect.fail(new AccessTokenError.TokenRequestError({ reason: "Transport", attempts: 1 }))

/** A body that counts how often it is read. */
const countingReads = (text: string) => {
  const state = { reads: 0 }
  const stream = new ReadableStream<Uint8Array>({
    pull: (controller) => {
      state.reads++
      controller.enqueue(new TextEncoder().encode(text))
      controller.close()
    }
  }, { highWaterMark: 0 })
  return { stream, state }
}

/** An authorized client over `base`. The source returns `token-1`, then `second`. */
const authorize = (
  base: HttpClient.HttpClient,
  second: Parameters<typeof answering>[0],
  options: Partial<AuthorizedHttpClient.Options> = {}
) =>
  Effect.gen(function*() {
    const source = yield* answering((n, replacing) => n === 1 ? token("token-1") : second(n, replacing))
    const provider = yield* Layer.build(Layer.provide(AccessTokenProvider.layer(), source.layer))
    const client = yield* AuthorizedHttpClient.withAccessToken(base, { apiUrl, ...options }).pipe(
      Effect.provide(provider)
    )
    return { client, tokenRequests: source.calls }
  })

/** An API that responds to `token-1` with this 401, and to any other token with 200. */
const rejecting = (unauthorized: () => Response) =>
  HttpClient.make((request) =>
    Effect.sync(() => {
      const rejected = request.headers["authorization"] === "Bearer token-1"
      return HttpClientResponse.fromWeb(request, rejected ? unauthorized() : new Response("{}"))
    })
  )

/** The response to a call when no other token is available. */
const callRejected = (
  body: BodyInit | null,
  headers: HeadersInit = {},
  decorate: (client: HttpClient.HttpClient) => HttpClient.HttpClient = (client) => client
) =>
  Effect.flatMap(
    authorize(decorate(rejecting(() => new Response(body, { status: 401, headers }))), () => unavailable),
    ({ client }) => client.get("/orders")
  )

describe("AuthorizedHttpClient, the body of a 401", () => {
  it.scoped("is read before another token is acquired", () =>
    Effect.gen(function*() {
      const { state, stream } = countingReads("{}")
      const before: Array<number> = []
      const { client } = yield* authorize(
        rejecting(() => new Response(stream, { status: 401 })),
        () => Effect.zipRight(Effect.sync(() => before.push(state.reads)), token("token-2"))
      )
      assert.strictEqual((yield* client.get("/orders")).status, 200)
      deepStrictEqual(before, [1])
    }))

  it.scoped("is not read when the 401 is returned without recovery", () =>
    Effect.gen(function*() {
      const headers = { "www-authenticate": "Bearer error=\"insufficient_scope\"" }
      for (
        const [why, body, options, response] of [
          ["a request that cannot be repeated", HttpBody.raw("once"), {}, {}],
          ["the option", HttpBody.empty, { retryUnauthorized: false }, {}],
          ["the challenge", HttpBody.empty, {}, { headers }]
        ] as const
      ) {
        const { state, stream } = countingReads("an invented error")
        const { client, tokenRequests } = yield* authorize(
          rejecting(() => new Response(stream, { status: 401, ...response })),
          () => token("token-2"),
          options
        )
        const received = yield* client.post("/orders", { body })
        deepStrictEqual([received.status, state.reads, yield* tokenRequests], [401, 0, 1], why)
        assert.strictEqual(yield* received.text, "an invented error", why)
      }
    }))

  it.scoped("is not read when the provider keeps the rejected token", () =>
    Effect.gen(function*() {
      const reads: Array<() => number> = []
      const { client, tokenRequests } = yield* authorize(
        rejecting(() => {
          const { state, stream } = countingReads("an invented error")
          reads.push(() => state.reads)
          return new Response(stream, { status: 401 })
        }),
        () => token("token-1")
      )
      const first = yield* client.get("/orders")
      const second = yield* client.get("/orders")
      deepStrictEqual([yield* tokenRequests, ...reads.map((read) => read())], [2, 1, 0])
      for (const { status, text } of [first, second]) {
        deepStrictEqual([status, yield* text], [401, "an invented error"])
      }
    }))

  it.scoped("can be read repeatedly and in every form when no other token is available", () =>
    Effect.gen(function*() {
      const text = "{\"a\":\"\u00e9\"}"
      const response = yield* callRejected(text, {
        "content-type": "application/json",
        "x-request-id": "7",
        "set-cookie": "a=1; Path=/"
      })
      deepStrictEqual([response.status, response.headers["x-request-id"]], [401, "7"])
      assert.strictEqual(response.cookies.cookies["a"]?.value, "1")
      for (const _ of [1, 2]) {
        assert.strictEqual(yield* response.text, text)
        deepStrictEqual(yield* response.json, { a: "\u00e9" })
        assert.strictEqual(new TextDecoder().decode(yield* response.arrayBuffer), text)
        assert.strictEqual(yield* Stream.mkString(Stream.decodeText(response.stream)), text)
      }
      deepStrictEqual(
        yield* HttpClientResponse.schemaBodyJson(Schema.Struct({ a: Schema.String }))(response),
        { a: "\u00e9" }
      )
      const form = yield* callRejected("a=1&a=2", { "content-type": "application/x-www-form-urlencoded" })
      deepStrictEqual([...yield* form.urlParamsBody], [["a", "1"], ["a", "2"]])
      deepStrictEqual((yield* form.formData).getAll("a"), ["1", "2"])
    }))

  it.scoped("is cut after 64 KiB", () =>
    Effect.gen(function*() {
      const response = yield* callRejected("a".repeat(65_536) + "b".repeat(1_000_000))
      assert.strictEqual(yield* response.text, "a".repeat(65_536))
    }))

  it.scoped("can be read from the error of a client that fails on statuses", () =>
    Effect.gen(function*() {
      const error = yield* Effect.flip(callRejected("an invented error", {}, HttpClient.filterStatusOk))
      if (!HttpClientError.isHttpClientError(error)) return assert.fail(`not an HttpClientError: ${error._tag}`)
      assert.strictEqual(httpReason(error), "StatusCode")
      const response = httpErrors.statusResponse(error)
      assert.strictEqual(response?.status, 401)
      assert.strictEqual(yield* response?.text ?? Effect.void, "an invented error")
    }))

  it.scoped("fails to decode with an error that has the response and not the token", () =>
    Effect.gen(function*() {
      const response = yield* callRejected("<html>", { "x-request-id": "7" })
      const error = yield* Effect.flip(response.json)
      assert.strictEqual(httpReason(error), "Decode")
      assert.strictEqual(error.response, response)
      assert.notInclude(inspect(error, { depth: 9 }) + JSON.stringify(error), "token-1")
    }))

  it.scoped("can be empty, or have a content type that Response does not accept", () =>
    Effect.gen(function*() {
      for (const body of [null, ""]) {
        const response = yield* callRejected(body)
        deepStrictEqual([yield* response.text, yield* response.json], ["", null])
      }
      const base = HttpClient.mapRequest((request) => request)(rejecting(() => new Response("{}", { status: 401 })))
      const { client } = yield* authorize(
        HttpClient.transformResponse(
          base,
          Effect.map((response) =>
            Object.defineProperty(response, "headers", { value: { "content-type": "text/\u4e16" } })
          )
        ),
        () => unavailable
      )
      assert.strictEqual(yield* Effect.flatMap(client.get("/orders"), ({ text }) => text), "{}")
    }))

  it.scoped("does not stop the recovery when it never ends, cannot be cancelled or fails", () =>
    Effect.gen(function*() {
      const never = () => new Promise<never>(() => undefined)
      const bodies: ReadonlyArray<readonly [string, UnderlyingDefaultSource<Uint8Array>]> = [
        ["never arrives", {}],
        ["cannot be cancelled", { cancel: never }],
        ["cannot be cancelled after 64 KiB", {
          pull: (controller) => controller.enqueue(new Uint8Array(100_000)),
          cancel: never
        }],
        ["never ends", { pull: (controller) => controller.enqueue(new Uint8Array(1000)) }],
        ["fails", { pull: (controller) => controller.error(new Error("reset")) }]
      ]
      for (const [what, source] of bodies) {
        for (const region of [Effect.interruptible, Effect.uninterruptible]) {
          const { client, tokenRequests } = yield* authorize(
            rejecting(() => new Response(new ReadableStream(source), { status: 401 })),
            () => token("token-2")
          )
          const calling = yield* Effect.fork(region(client.get("/orders")))
          yield* TestClock.adjust("1 seconds")
          assert.strictEqual((yield* Fiber.join(calling)).status, 200, what)
          assert.strictEqual(yield* tokenRequests, 2)
        }
      }
    }))

  onEachClient((layer) => {
    it.scopedLive("may be empty, even in an uninterruptible region", () =>
      Effect.gen(function*() {
        const base = Context.get(yield* Layer.build(layer), HttpClient.HttpClient)
        const withoutBody = CaptureServer.raw(CaptureServer.head(401, { "content-length": "7", connection: "close" }))
        for (const [call, unauthorized] of [["get", CaptureServer.answer(401, "")], ["head", withoutBody]] as const) {
          for (const second of [() => token("token-2"), () => unavailable]) {
            const api = yield* CaptureServer.make(
              unauthorized,
              CaptureServer.raw(CaptureServer.head(204, { connection: "close" }))
            )
            const { client } = yield* authorize(base, second, { apiUrl: api.url })
            const response = yield* Effect.uninterruptible(client[call]("/orders"))
            const status = (yield* api.count) === 2 ? 204 : 401
            deepStrictEqual([response.status, yield* response.text], [status, ""])
          }
        }
      }))

    it.scopedLive("does not stop the recovery when the given client has read it, and can be read again", () =>
      Effect.gen(function*() {
        const base = HttpClient.tap(Context.get(yield* Layer.build(layer), HttpClient.HttpClient), ({ text }) => text)
        for (const second of [() => token("token-2"), () => unavailable]) {
          const api = yield* CaptureServer.make(
            CaptureServer.answer(401, "an invented error"),
            CaptureServer.answer(200, "{}")
          )
          const { client } = yield* authorize(base, second, { apiUrl: api.url })
          const response = yield* client.get("/orders")
          const recovered = (yield* api.count) === 2
          deepStrictEqual(
            [response.status, yield* response.text],
            recovered ? [200, "{}"] : [401, "an invented error"]
          )
        }
      }))
  })
})
