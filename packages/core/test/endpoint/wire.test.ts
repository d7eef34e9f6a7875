import { HttpBody } from "@effect/platform"
import { assert, describe } from "@effect/vitest"
import { deepStrictEqual } from "@effect/vitest/utils"
import { AuthorizedHttpClient, StoreAuth, TokenEndpoint, TokenSource } from "@store-api/core"
import * as Canary from "@store-api/testing/leaksIn"
import { until } from "@store-api/testing/network"
import { test } from "@store-api/testing/test"
import { Effect, Fiber, Layer, Redacted } from "effect"
import * as CaptureServer from "../support/captureServer.js"
import { type ClientLayer, onEachClient } from "../support/clients.js"
import {
  clientId,
  clientSecret,
  credentialsOf,
  printable,
  tokenBody
} from "../support/wire.js"

const token = CaptureServer.answer(200, tokenBody())
const credentials = Effect.succeed(credentialsOf(clientId, clientSecret))

/** One acquisition over a real HTTP client that stays open until the test ends. Only the library closes its sockets. */
const acquire = (
  client: ClientLayer,
  authUrl: string,
  options: Partial<TokenEndpoint.Options> = {}
) =>
  Effect.gen(function*() {
    const context = yield* Layer.build(client)
    const source = yield* Effect.provide(
      TokenEndpoint.make({ authUrl, credentials, ...options }),
      context
    )
    return yield* source.acquire(TokenSource.missing)
  })

// The scenarios in `outcomes` test redirects, broken connections and floods with each client.
describe("TokenEndpoint", () => {
  onEachClient((client) => {
    test.live.each([" a ", "a%2B+b", printable.join("")])(
      "matches the specification byte for byte with the secret %s",
      function*(secret) {
        const server = yield* CaptureServer.make(token)
        yield* acquire(client, server.url, {
          credentials: Effect.succeed(credentialsOf("an-id", secret))
        })
        const [request, ...more] = yield* server.requests
        assert.lengthOf(more, 0)
        assert.strictEqual(request?.requestLine, "POST /v1/oauth/accesstoken HTTP/1.1")
        const body = `grant_type=client_credentials&client_id=an-id&client_secret=${secret}`
        assert.strictEqual(request?.body.toString("latin1"), body)
        deepStrictEqual(
          ["content-type", "content-length", "authorization"].map((name) =>
            CaptureServer.valuesOf(request, name)
          ),
          [["application/x-www-form-urlencoded"], [String(body.length)], []]
        )
      }
    )

    test.live("control: the check for closed sockets sees an open one", function*() {
      const server = yield* CaptureServer.make(CaptureServer.silence)
      const fiber = yield* Effect.fork(acquire(client, server.url))
      yield* until("a request arrives", Effect.map(server.count, (count) => count > 0))
      assert.strictEqual(yield* server.openSockets, 1)
      yield* Fiber.interruptFork(fiber)
      yield* server.allClosed
    })

    test.live("fails with ECONNREFUSED after retries when no server listens", function*() {
      const error = yield* Effect.flip(acquire(client, CaptureServer.nothing))
      assert(error._tag === "TokenRequestError")
      deepStrictEqual([error.reason, error.code], ["Transport", "ECONNREFUSED"])
      assert.isAtLeast(error.attempts, 2)
    })

    const head = (status: number, headers: Readonly<Record<string, string>>) =>
      CaptureServer.head(status, { "content-type": "application/json", ...headers })
    const closing = head(200, { connection: "close" })
    const chunked = head(200, { "transfer-encoding": "chunked", connection: "close" })
    const tooShort = head(200, { "content-length": "40", connection: "close" })
    const body = tokenBody()
    const chunks = [body.slice(0, 9), body.slice(9), ""].map((part) =>
      `${part.length.toString(16)}\r\n${part}\r\n`
    )
    const refused = head(401, { "content-length": "1000" }) + "{"

    test.live.each<readonly [what: string, outcome: string, answer: CaptureServer.Answer]>([
      [
        "with a byte order mark and white space",
        "a token",
        CaptureServer.answer(200, `\ufeff \n${body}\r\n`)
      ],
      ["in two chunks", "a token", CaptureServer.raw(chunked + chunks.join(""))],
      ["without a content-length", "a token", CaptureServer.raw(closing + body)],
      [
        "of another type",
        "a token",
        CaptureServer.answer(200, body, { "content-type": "text/plain; charset=utf-16" })
      ],
      ["of no chunks", "TokenResponseError", CaptureServer.raw(`${chunked}0\r\n\r\n`)],
      [
        "cut short without a content-length",
        "TokenResponseError",
        CaptureServer.raw(closing + body.slice(0, 40))
      ],
      [
        "longer than its content-length",
        "TokenResponseError",
        CaptureServer.raw(tooShort + body)
      ],
      [
        "shorter than its content-length, with status 401,",
        "InvalidClient (401)",
        CaptureServer.raw(refused)
      ],
      ["reset, with status 401,", "InvalidClient (401)", CaptureServer.rawThenReset(refused)],
      [
        "that stalls, with status 401,",
        "InvalidClient (401)",
        CaptureServer.rawThenSilence(refused)
      ]
    ])(
      "a body %s leads to %s after one request, whose socket closes",
      function*([, expected, answer]) {
        const server = yield* CaptureServer.make(answer)
        const outcome = yield* Effect.match(acquire(client, server.url), {
          onFailure: (error) =>
            error._tag === "TokenRefusedError"
              ? `${error.reason} (${error.httpStatus})`
              : error._tag,
          onSuccess: ({ value }) =>
            Redacted.value(value) === "invented-token-0001" ? "a token" : "another token"
        })
        deepStrictEqual([outcome, yield* server.count], [expected, 1])
        yield* server.allClosed
      }
    )
  })
})

const secret = Canary.secret()
const issued = Canary.token()
const tokenResponse = CaptureServer.answer(200, tokenBody({ access_token: issued.value }))

/** Sends a token request and one call with a body to a server that returns a token and then `answer`. */
const call = (client: ClientLayer, answer: CaptureServer.Answer) =>
  Effect.gen(function*() {
    const server = yield* CaptureServer.make(tokenResponse, answer)
    const layer = StoreAuth.layer({
      authUrl: `${server.url}/auth`,
      apiUrl: `${server.url}/api`,
      clientId: "invented-client",
      clientSecret: Redacted.make(secret.value)
    }).pipe(Layer.provide(client))
    const exit = yield* Effect.flatMap(
      AuthorizedHttpClient.AuthorizedHttpClient,
      (client) =>
        client.post("/orders", {
          urlParams: { page: "1" },
          body: HttpBody.unsafeJson({ id: 1 })
        })
    ).pipe(Effect.provide(layer), Effect.exit)
    return { exit, requests: yield* server.requests }
  })

/** The parts of the requests that hold a canary: line, headers or body, by the number of the request. */
const placesOf = (
  canary: Canary.Canary,
  requests: ReadonlyArray<CaptureServer.CapturedRequest>
) =>
  requests.flatMap(({ body, headers, requestLine }, index) =>
    Object.entries({ body: String(body), requestLine, ...Object.fromEntries(headers) })
      .filter(([, text]) => Canary.find(text, [canary]).length > 0)
      .map(([part]) => `${part} of ${index}`)
  )

describe("where the secret and the token are", () =>
  onEachClient((client) => {
    test.live("the secret is in the body of the token request alone", function*() {
      const { requests } = yield* call(client, CaptureServer.answer(200, "{}"))
      deepStrictEqual(placesOf(secret, requests), ["body of 0"])
    })

    test.live("the token is in the Authorization header of the call alone", function*() {
      const { requests } = yield* call(client, CaptureServer.answer(200, "{}"))
      deepStrictEqual(requests.map(({ requestLine }) => requestLine), [
        "POST /auth/v1/oauth/accesstoken HTTP/1.1",
        "POST /api/orders?page=1 HTTP/1.1"
      ])
      deepStrictEqual(placesOf(issued, requests), ["authorization of 1"])
      deepStrictEqual(CaptureServer.valuesOf(requests[1], "authorization"), [
        `Bearer ${issued.value}`
      ])
    })

    test.live("a call is not repeated when its connection fails", function*() {
      const { exit, requests } = yield* call(client, CaptureServer.rawThenReset())
      assert.isTrue(exit._tag === "Failure")
      assert.lengthOf(requests, 2)
    })
  }))
