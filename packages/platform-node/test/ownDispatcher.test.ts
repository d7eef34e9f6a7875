import { HttpBody } from "@effect/platform"
import { Undici } from "@effect/platform-node"
import { assert, describe } from "@effect/vitest"
import { deepStrictEqual } from "@effect/vitest/utils"
import { NodeHttp, NodeStoreAuth, PromiseStoreAuth } from "@store-api/platform-node"
import { at } from "@store-api/testing/loopback"
import { test } from "@store-api/testing/test"
import { Effect, Layer, Redacted } from "effect"

const url = "https://api.store.example"

/** Only its responses arrive: undici's `MockAgent` opens no connection. */
const makeMock = Effect.acquireRelease(
  Effect.sync(() => {
    const agent = new Undici.MockAgent()
    agent.disableNetConnect()
    const pool = agent.get(url)
    pool.intercept({ path: "/v1/oauth/accesstoken", method: "POST" })
      .reply(200, {
        access_token: "an-invented-token",
        token_type: "Bearer",
        expires_in: 3599
      })
    pool.intercept({ path: "/orders?page=2", method: "POST" }).reply(
      201,
      ({ body, headers }) => ({
        body: typeof body === "string" ? body : new TextDecoder().decode(body as Uint8Array),
        authorization: (headers as Record<string, string>)["authorization"]
      }),
      { headers: { "content-type": "application/json", "set-cookie": ["a=1", "b=2"] } }
    )
    return agent
  }),
  (agent) => Effect.promise(() => agent.close())
)

const expected = { body: "{\"id\":1}", authorization: "Bearer an-invented-token" }

describe("a dispatcher of the user", () => {
  test.live("sends both kinds of requests of NodeStoreAuth", function*() {
    const dispatcher = yield* makeMock
    const { client } = yield* NodeStoreAuth.make({ ...at(url), http: { dispatcher } })
    const response = yield* client.post("/orders?page=2", {
      body: HttpBody.text(expected.body)
    })
    deepStrictEqual(yield* response.json, expected)
    dispatcher.assertNoPendingInterceptors()
  })

  test.live("sends both kinds of requests of PromiseStoreAuth", function*() {
    const dispatcher = yield* makeMock
    const { dispose, fetch } = PromiseStoreAuth.make({ ...at(url), http: { dispatcher } })
    const init = { method: "POST", body: expected.body }
    const response = yield* Effect.promise(() => fetch("/orders?page=2", init))
    assert.strictEqual(response.status, 201)
    deepStrictEqual(response.headers.getSetCookie(), ["a=1", "b=2"])
    deepStrictEqual(yield* Effect.promise(() => response.json()), expected)
    dispatcher.assertNoPendingInterceptors()
    yield* Effect.promise(dispose)
  })

  test.live("lets fetch reject if a redirect is an error", function*() {
    const dispatcher = yield* makeMock
    dispatcher.get(url).intercept({ path: "/moved" }).reply(302, "", {
      headers: { location: "/elsewhere" }
    }).times(2)
    const { dispose, fetch } = PromiseStoreAuth.make({ ...at(url), http: { dispatcher } })
    const response = yield* Effect.promise(() => fetch("/moved"))
    assert.strictEqual(response.status, 302)
    const error = yield* Effect.flip(Effect.tryPromise({
      try: () => fetch("/moved", { redirect: "error" }),
      catch: (error) => error
    }))
    assert.instanceOf(error, TypeError)
    yield* Effect.promise(dispose)
  })

  const endings: ReadonlyArray<
    readonly [
      name: string,
      use: (dispatcher: Undici.MockAgent) => Effect.Effect<unknown, unknown>
    ]
  > = [
    [
      "the scope of NodeStoreAuth closes",
      (dispatcher) =>
        Effect.scoped(Effect.flatMap(
          NodeStoreAuth.make({ ...at(url), http: { dispatcher } }),
          ({ provider }) => provider.get
        ))
    ],
    [
      "dispose of PromiseStoreAuth ends",
      (dispatcher) =>
        Effect.promise(async () => {
          const { dispose, getToken } = PromiseStoreAuth.make({
            ...at(url),
            http: { dispatcher }
          })
          await getToken()
          await dispose()
        })
    ]
  ]

  test.live.each(endings)("stays open when %s", function*([, use]) {
    const dispatcher = yield* makeMock
    yield* use(dispatcher)
    dispatcher.get(url).intercept({ path: "/" }).reply(200, "still open")
    const { body } = yield* Effect.promise(() =>
      dispatcher.request({ origin: url, path: "/", method: "GET" })
    )
    assert.strictEqual(yield* Effect.promise(() => body.text()), "still open")
  })

  test.live("is refused together with another option, which the error names", function*() {
    const dispatcher = yield* makeMock
    const others: ReadonlyArray<NodeHttp.Options> = [
      { connections: 1 },
      { proxy: "none" },
      { ca: "a text" },
      { cert: "a text" },
      { key: Redacted.make("a text") }
    ]
    for (const other of others) {
      const error = yield* Effect.flip(Layer.launch(NodeHttp.layer({ ...other, dispatcher })))
      deepStrictEqual([error.option, error.reason], [
        "http.dispatcher",
        `must not be given together with http.${Object.keys(other).join()}`
      ])
    }
  })
})
