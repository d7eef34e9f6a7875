import { HttpBody } from "@effect/platform"
import { assert, describe } from "@effect/vitest"
import { deepStrictEqual } from "@effect/vitest/utils"
import { AuthorizedHttpClient, StoreAuth } from "@store-api/core"
import { Effect, Layer, Option, Redacted } from "effect"
import * as CaptureServer from "../support/captureServer.js"
import { type Client, clients } from "../support/clients.js"
import { test } from "../support/test.js"
import * as Canary from "./support/canary.js"
import { find } from "./support/canary.js"

const secret = Canary.secret()
const token = Canary.token()
const tokenResponse = CaptureServer.answer(
  200,
  JSON.stringify({ access_token: token.value, token_type: "bearer", expires_in: 3600 })
)

/** Sends a token request and one call with a body to a server that returns a token and then `answer`. */
const call = (client: Client, answer: CaptureServer.Answer) =>
  Effect.gen(function*() {
    const server = yield* CaptureServer.make(tokenResponse, answer)
    const layer = StoreAuth.layer({
      authUrl: `${server.url}/auth`,
      apiUrl: `${server.url}/api`,
      clientId: "invented-client",
      clientSecret: Redacted.make(secret.value)
    }).pipe(Layer.provide(client.layer(Option.none())))
    const exit = yield* Effect.flatMap(
      AuthorizedHttpClient.AuthorizedHttpClient,
      (client) => client.post("/orders", { urlParams: { page: "1" }, body: HttpBody.unsafeJson({ id: 1 }) })
    ).pipe(Effect.provide(layer), Effect.exit)
    return { exit, requests: yield* server.requests }
  })

const containsSecret = (text: string) => find(text, [secret]).length > 0
const containsToken = (text: string) => find(text, [token]).length > 0

describe.each(clients)("requests of $name", (client) => {
  test.live("the secret is in the body of the token request and nowhere else", function*() {
    const { requests } = yield* call(client, CaptureServer.answer(200, "{}"))
    const [first, ...others] = requests
    assert.lengthOf(others, 1)
    assert.isTrue(containsSecret(String(first?.body)), "control: the search finds it there")
    assert.isFalse(containsSecret(first?.requestLine ?? ""))
    assert.isFalse(containsSecret(JSON.stringify(first?.headers)))
    for (const { body, headers, requestLine } of others) {
      assert.isFalse(containsSecret(`${requestLine}\n${JSON.stringify(headers)}\n${String(body)}`))
    }
    assert.strictEqual(first?.requestLine, "POST /auth/v1/oauth/accesstoken HTTP/1.1")
  })

  test.live("the token is in the Authorization header of the call and nowhere else", function*() {
    const { requests } = yield* call(client, CaptureServer.answer(200, "{}"))
    const request = requests[1]
    const other = (request?.headers ?? []).filter(([header]) => header !== "authorization")
    deepStrictEqual(CaptureServer.valuesOf(request, "authorization"), [`Bearer ${token.value}`])
    assert.strictEqual(request?.requestLine, "POST /api/orders?page=1 HTTP/1.1")
    assert.isFalse(containsToken(`${JSON.stringify(other)}\n${String(request?.body)}`))
    assert.isTrue(containsToken(JSON.stringify(request?.headers)), "control: the search finds it there")
  })

  test.live("a call is not repeated when its connection fails", function*() {
    const { exit, requests } = yield* call(client, CaptureServer.rawThenReset())
    assert.isTrue(exit._tag === "Failure")
    assert.lengthOf(requests, 2)
  })
})
