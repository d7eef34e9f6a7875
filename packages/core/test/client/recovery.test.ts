import { HttpBody, HttpClient, HttpClientResponse } from "@effect/platform"
import { assert, describe } from "@effect/vitest"
import { deepStrictEqual } from "@effect/vitest/utils"
import {
  AccessToken,
  AccessTokenProvider,
  AuthorizedHttpClient,
  StoreAuth
} from "@store-api/core"
import { inTime, onVirtualTime, until } from "@store-api/testing/network"
import { test } from "@store-api/testing/test"
import { Context, DateTime, Effect, Exit, Fiber, Layer, Redacted, TestClock } from "effect"
import * as CaptureServer from "../support/captureServer.js"
import { onEachClient } from "../support/clients.js"
import { makeSource, settle, token } from "../support/scriptedSource.js"
import { tokenBody } from "../support/wire.js"

const apiUrl = "https://api.store.example/v1"

/** A body that counts how often it is read. */
const makeBody = (text: string) => {
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
  second: Parameters<typeof makeSource>[0],
  options: Partial<AuthorizedHttpClient.Options> = {}
) =>
  Effect.gen(function*() {
    const source = yield* makeSource((n, replacing) =>
      n === 1 ? token("token-1") : second(n, replacing)
    )
    const provider = yield* Layer.build(
      Layer.provide(AccessTokenProvider.layer(), source.layer)
    )
    const client = yield* AuthorizedHttpClient.withAccessToken(base, { apiUrl, ...options })
      .pipe(
        Effect.provide(provider)
      )
    return { client, tokenRequests: source.calls }
  })

/** An API that responds to `token-1` with this 401, and to any other token with 200. */
const rejecting = (unauthorized: () => Response) =>
  HttpClient.make((request) =>
    Effect.sync(() => {
      const rejected = request.headers["authorization"] === "Bearer token-1"
      return HttpClientResponse.fromWeb(
        request,
        rejected ? unauthorized() : new Response("{}")
      )
    })
  )

const headers = { "www-authenticate": "Bearer error=\"insufficient_scope\"" }

describe("AuthorizedHttpClient, the body of a 401", () => {
  test.each(
    [
      ["the request cannot be repeated", HttpBody.raw("once"), {}, {}],
      ["retryUnauthorized is false", HttpBody.empty, { retryUnauthorized: false }, {}],
      ["the challenge rules it out", HttpBody.empty, {}, { headers }]
    ] as const
  )("a 401 is returned with its body unread because %s", function*([, body, options, init]) {
    const { state, stream } = makeBody("an invented error")
    const { client, tokenRequests } = yield* authorize(
      rejecting(() => new Response(stream, { status: 401, ...init })),
      () => token("token-2"),
      options
    )
    const { status, text } = yield* client.post("/orders", { body })
    yield* settle
    deepStrictEqual([status, state.reads, yield* tokenRequests], [401, 0, 1])
    assert.strictEqual(yield* text, "an invented error")
  })

  /** An API that rejects every token, and how often each of its bodies was read. */
  const rejectingAll = () => {
    const reads: Array<() => number> = []
    const api = rejecting(() => {
      const { state, stream } = makeBody("an invented error")
      reads.push(() => state.reads)
      return new Response(stream, { status: 401 })
    })
    const readsOf = Effect.zipRight(settle, Effect.sync(() => reads.map((read) => read())))
    return { api, readsOf }
  }

  test("only the body of the 401 before the repeated request is read", function*() {
    const { api, readsOf } = rejectingAll()
    const { client } = yield* authorize(api, () => token("token-1"))
    const { status, text } = yield* client.get("/orders")
    deepStrictEqual(yield* readsOf, [1, 0])
    deepStrictEqual([status, yield* text], [401, "an invented error"])
  })

  test("the body of a 401 is not read when the provider keeps the token", function*() {
    const { api, readsOf } = rejectingAll()
    const client = yield* AuthorizedHttpClient.withAccessToken(api, { apiUrl }).pipe(
      Effect.updateService(AccessTokenProvider.AccessTokenProvider, (provider) => ({
        ...provider,
        invalidate: () => Effect.void
      })),
      Effect.provide(AccessTokenProvider.layerTest(token("token-1")))
    )
    const { status, text } = yield* client.get("/orders")
    deepStrictEqual(yield* readsOf, [0])
    deepStrictEqual([status, yield* text], [401, "an invented error"])
  })

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
  const rejectingWith = (source: UnderlyingDefaultSource<Uint8Array>) =>
    rejecting(() => new Response(new ReadableStream(source), { status: 401 }))

  test.each(bodies)("a body of a 401 that %s does not delay the recovery", function*(
    [, source]
  ) {
    for (const region of [Effect.interruptible, Effect.uninterruptible]) {
      const { client, tokenRequests } = yield* authorize(
        rejectingWith(source),
        () => token("token-2")
      )
      // The test clock stands still.
      assert.strictEqual((yield* region(client.get("/orders"))).status, 200)
      assert.strictEqual(yield* tokenRequests, 2)
    }
  })

  test.each(bodies)("a body of a 401 that %s does not delay an interruption", function*(
    [, source]
  ) {
    const { client, tokenRequests } = yield* authorize(
      rejectingWith(source),
      () => Effect.never
    )
    const caller = yield* Effect.fork(client.get("/orders"))
    yield* until(
      "the token is replaced",
      Effect.map(Effect.zipRight(settle, tokenRequests), (requests) => requests > 1)
    )
    yield* Fiber.interrupt(caller)
    assert.isTrue(Exit.isInterrupted(yield* Fiber.await(caller)))
  })

  test("an interruption tears no acquireRelease whose acquire recovers from a 401", function*() {
    const steps = (count: number) => Effect.repeatN(Effect.yieldNow(), count)
    let early = 0
    for (let moment = 0; moment < 60; moment++) {
      const { client } = yield* authorize(
        HttpClient.tapRequest(rejectingWith({}), () => steps(5)),
        () => token("token-2")
      )
      const events: Array<string> = []
      const user = yield* Effect.acquireRelease(
        Effect.suspend(() => {
          events.push("acquire")
          return Effect.map(
            client.get("/orders"),
            ({ status }) => events.push(`acquired ${status}`)
          )
        }),
        () => Effect.sync(() => events.push("release"))
      ).pipe(Effect.zipRight(Effect.never), Effect.scoped, Effect.fork)
      yield* steps(moment)
      yield* Fiber.interrupt(user)
      if (events.length === 0) early++
      else deepStrictEqual(events, ["acquire", "acquired 200", "release"], `moment ${moment}`)
    }
    assert.isBelow(early, 10, "control: most interruptions come after the start")
  })

  onEachClient((layer, _name, single) => {
    /** A call whose 401 has a body that never arrives. It waits for a second token. */
    const stall = (second: Parameters<typeof makeSource>[0]) =>
      Effect.gen(function*() {
        const base = Context.get(yield* Layer.build(layer), HttpClient.HttpClient)
        const head = CaptureServer.head(401, { "content-length": "1000" })
        const api = yield* CaptureServer.make(
          CaptureServer.rawThenSilence(`${head}abc`),
          CaptureServer.answer(200, "{}")
        )
        const { client, tokenRequests } = yield* authorize(base, second, { apiUrl: api.url })
        const caller = yield* Effect.fork(
          Effect.flatMap(client.get("/orders"), ({ text }) => text)
        )
        yield* until(
          "the token is replaced",
          Effect.map(tokenRequests, (requests) => requests > 1)
        )
        return { api, caller }
      })

    test.live("a body of a 401 that never arrives leaves no socket open", function*() {
      const { api, caller } = yield* stall(() => token("token-2"))
      assert.strictEqual(yield* Fiber.join(caller), "{}")
      yield* api.allClosed
    })

    test.live("an interruption leaves no socket open if the body of a 401 never arrives", function*() {
      const { api, caller } = yield* stall(() => Effect.never)
      yield* Fiber.interrupt(caller)
      yield* api.allClosed
    })

    test.live.each(
      [
        ["get", CaptureServer.answer(401, "")],
        [
          "head",
          CaptureServer.raw(
            CaptureServer.head(401, { "content-length": "7", connection: "close" })
          )
        ]
      ] as const
    )(
      "a 401 without a body does not delay the recovery, even in an uninterruptible region: %s",
      function*([method, unauthorized]) {
        const base = Context.get(yield* Layer.build(layer), HttpClient.HttpClient)
        const api = yield* CaptureServer.make(
          unauthorized,
          CaptureServer.raw(CaptureServer.head(204, { connection: "close" }))
        )
        const { client } = yield* authorize(base, () => token("token-2"), { apiUrl: api.url })
        const response = yield* Effect.uninterruptible(client[method]("/orders"))
        deepStrictEqual([response.status, yield* response.text], [204, ""])
      }
    )

    test.live("a body of a 401 that the given client has read does not stop the recovery", function*() {
      const base = HttpClient.tap(
        Context.get(yield* Layer.build(layer), HttpClient.HttpClient),
        ({ text }) => text
      )
      const api = yield* CaptureServer.make(
        CaptureServer.answer(401, "an invented error"),
        CaptureServer.answer(200, "{}")
      )
      const { client } = yield* authorize(base, () => token("token-2"), { apiUrl: api.url })
      const response = yield* client.get("/orders")
      deepStrictEqual([response.status, yield* response.text], [200, "{}"])
    })

    test.live.each<readonly [string, CaptureServer.Answer, boolean]>([
      ["is short", CaptureServer.keepAlive(401, "a".repeat(60_000)), true],
      ["is long", CaptureServer.keepAlive(401, "a".repeat(5_000_000)), false],
      ["never ends", CaptureServer.endless(401), false],
      [
        "stops",
        CaptureServer.rawThenSilence(
          CaptureServer.head(401, { "content-length": "7" }) + "abc"
        ),
        false
      ]
    ])(
      "the token request gets the only connection when the body of a 401 %s",
      function*([, unauthorized, isReused]) {
        const api = yield* CaptureServer.make(
          CaptureServer.keepAlive(200, tokenBody({ access_token: "token-1" })),
          unauthorized,
          CaptureServer.keepAlive(200, tokenBody({ access_token: "token-2" })),
          CaptureServer.keepAlive(200, "{}")
        )
        const { client } = yield* StoreAuth.make({
          authUrl: api.url,
          apiUrl: api.url,
          clientId: "demo-client",
          clientSecret: Redacted.make("an invented secret")
        }).pipe(Effect.provide(yield* Layer.build(single)))
        const call = Effect.timeout(client.get("/orders"), "5 seconds")
        const response = yield* onVirtualTime((virtual) => inTime(virtual, call))
        deepStrictEqual([response.status, yield* response.text, yield* api.count], [
          200,
          "{}",
          4
        ])
        assert.strictEqual((yield* api.connections) === 1, isReused)
      }
    )
  })
})

describe("AuthorizedHttpClient, a repeat that gets a 401", () => {
  /**
   * Calls an API that rejects the first tokens. The old ones of them were acquired before the first 401, like those of
   * another process. Their time is exact to a second.
   */
  const callWith = (old: number, rejects: number) =>
    Effect.gen(function*() {
      yield* TestClock.adjust("1 minute")
      const now = yield* DateTime.now
      const statuses: Array<number> = []
      const api = HttpClient.make((request) =>
        Effect.sync(() => {
          const number = Number(
            request.headers["authorization"]?.slice("Bearer token-".length)
          )
          const status = number <= rejects ? 401 : 200
          statuses.push(status)
          return HttpClientResponse.fromWeb(request, new Response("{}", { status }))
        })
      )
      const { client, tokenRequests } = yield* authorize(
        api,
        (number) =>
          Effect.map(token(`token-${number}`), (token) => {
            const acquiredAt = DateTime.subtract(now, {
              millis: number <= old + 1 ? 1001 : 1000
            })
            return new AccessToken.AccessToken({ ...token, acquiredAt })
          })
      )
      const { status } = yield* client.get("/orders")
      return { client, status, statuses, tokenRequests }
    })

  test.each(
    [
      ["with an old token is repeated once more", 1, 2, [401, 401, 200]],
      ["with a new token is not repeated", 0, 9, [401, 401]],
      ["with a second old token is not repeated", 9, 9, [401, 401, 401]]
    ] as const
  )("a repeat that gets a 401 %s", function*([, old, rejects, expected]) {
    const { status, statuses } = yield* callWith(old, rejects)
    deepStrictEqual<ReadonlyArray<number>>(statuses, expected)
    assert.strictEqual(status, expected.at(-1))
  })

  test("a token whose repeat gets the last 401 is rejected too", function*() {
    const { client, statuses, tokenRequests } = yield* callWith(9, 9)
    assert.strictEqual(yield* tokenRequests, statuses.length)
    yield* client.get("/orders")
    assert.isAbove(yield* tokenRequests, 3)
  })
})
