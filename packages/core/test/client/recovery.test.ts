import { HttpBody, HttpClient, HttpClientResponse } from "@effect/platform"
import { assert, describe } from "@effect/vitest"
import { deepStrictEqual } from "@effect/vitest/utils"
import {
  AccessToken,
  AccessTokenProvider,
  AuthorizedHttpClient,
  StoreAuth
} from "@store-api/core"
import { inTime, onVirtualTime } from "@store-api/testing/network"
import { test } from "@store-api/testing/test"
import { Context, DateTime, Effect, Exit, Fiber, Layer, Redacted, TestClock } from "effect"
import * as CaptureServer from "../support/captureServer.js"
import { onEachClient } from "../support/clients.js"
import { makeSource, settle, token } from "../support/scriptedSource.js"
import { tokenBody } from "../support/wire.js"

const apiUrl = "https://api.store.example/v1"

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

describe("AuthorizedHttpClient, the body of a 401", () => {
  test("is not read when the caller gets the 401", function*() {
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
      yield* settle
      deepStrictEqual([received.status, state.reads, yield* tokenRequests], [401, 0, 1], why)
      assert.strictEqual(yield* received.text, "an invented error", why)
    }
  })

  test("is not read when the provider keeps the token, nor when the repeated request gets it", function*() {
    const reads: Array<() => number> = []
    const api = rejecting(() => {
      const { state, stream } = countingReads("an invented error")
      reads.push(() => state.reads)
      return new Response(stream, { status: 401 })
    })
    const { client: repeating } = yield* authorize(api, () => token("token-1"))
    const keeping = yield* AuthorizedHttpClient.withAccessToken(api, { apiUrl }).pipe(
      Effect.updateService(AccessTokenProvider.AccessTokenProvider, (provider) => ({
        ...provider,
        invalidate: () => Effect.void
      })),
      Effect.provide(AccessTokenProvider.layerTest(token("token-1")))
    )
    const responses = [yield* repeating.get("/orders"), yield* keeping.get("/orders")]
    yield* settle
    deepStrictEqual(
      reads.map((read) => read()),
      [1, 0, 0],
      "only the 401 before the repeated request"
    )
    for (const { status, text } of responses) {
      deepStrictEqual([status, yield* text], [401, "an invented error"])
    }
  })

  test("delays neither the recovery nor an interruption, whether it never ends, cannot be cancelled or fails", function*() {
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
      const api = rejecting(() => new Response(new ReadableStream(source), { status: 401 }))
      for (const region of [Effect.interruptible, Effect.uninterruptible]) {
        const { client, tokenRequests } = yield* authorize(api, () => token("token-2"))
        // The test clock stands still.
        assert.strictEqual((yield* region(client.get("/orders"))).status, 200, what)
        assert.strictEqual(yield* tokenRequests, 2)
      }
      const { client, tokenRequests } = yield* authorize(api, () => Effect.never)
      const calling = yield* Effect.fork(client.get("/orders"))
      yield* Effect.repeat(Effect.zipRight(settle, tokenRequests), {
        until: (requests) => requests === 2
      })
      yield* Fiber.interrupt(calling)
      assert.isTrue(Exit.isInterrupted(yield* Fiber.await(calling)), what)
    }
  })

  test("tears no acquireRelease whose acquire recovers from a 401, at any moment of an interruption", function*() {
    const steps = (count: number) => Effect.repeatN(Effect.yieldNow(), count)
    const never = rejecting(() => new Response(new ReadableStream(), { status: 401 }))
    let early = 0
    for (let moment = 0; moment < 60; moment++) {
      const { client } = yield* authorize(
        HttpClient.tapRequest(never, () => steps(5)),
        () => token("token-2")
      )
      const events: Array<string> = []
      const using = yield* Effect.acquireRelease(
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
      yield* Fiber.interrupt(using)
      if (events.length === 0) early++
      else deepStrictEqual(events, ["acquire", "acquired 200", "release"], `moment ${moment}`)
    }
    assert.isBelow(early, 10, "control: most interruptions come after the start")
  })

  onEachClient((layer, _name, single) => {
    test.live("that never arrives leaves no socket open, even if the caller is interrupted", function*() {
      const base = Context.get(yield* Layer.build(layer), HttpClient.HttpClient)
      for (const isInterrupted of [false, true]) {
        const api = yield* CaptureServer.make(
          CaptureServer.rawThenSilence(
            CaptureServer.head(401, { "content-length": "1000" }) + "abc"
          ),
          CaptureServer.answer(200, "{}")
        )
        const second = () => isInterrupted ? Effect.never : token("token-2")
        const { client, tokenRequests } = yield* authorize(base, second, { apiUrl: api.url })
        const calling = yield* Effect.fork(
          Effect.flatMap(client.get("/orders"), ({ text }) => text)
        )
        yield* Effect.repeat(Effect.delay(tokenRequests, "10 millis"), {
          until: (requests) => requests === 2
        })
        if (isInterrupted) yield* Fiber.interrupt(calling)
        else assert.strictEqual(yield* Fiber.join(calling), "{}")
        yield* api.allClosed
      }
    })

    test.live("may be empty, even in an uninterruptible region", function*() {
      const base = Context.get(yield* Layer.build(layer), HttpClient.HttpClient)
      const withoutBody = CaptureServer.raw(
        CaptureServer.head(401, { "content-length": "7", connection: "close" })
      )
      for (
        const [call, unauthorized] of [["get", CaptureServer.answer(401, "")], [
          "head",
          withoutBody
        ]] as const
      ) {
        const api = yield* CaptureServer.make(
          unauthorized,
          CaptureServer.raw(CaptureServer.head(204, { connection: "close" }))
        )
        const { client } = yield* authorize(base, () => token("token-2"), { apiUrl: api.url })
        const response = yield* Effect.uninterruptible(client[call]("/orders"))
        deepStrictEqual([response.status, yield* response.text], [204, ""])
      }
    })

    test.live("does not stop the recovery when the given client has read it", function*() {
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
      "leaves the only connection to the token request when it %s",
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
  // An old token was acquired before the first 401, like one of another process. Its time is exact to a second.
  test.each(
    [
      ["for an old token is repeated once more", 1, 2, [401, 401, 200]],
      ["for a new token is not repeated", 0, 9, [401, 401]],
      ["for a second old token is not repeated", 9, 9, [401, 401, 401]]
    ] as const
  )("%s", function*([, old, rejects, statuses]) {
    yield* TestClock.adjust("1 minute")
    const now = yield* DateTime.now
    const received: Array<number> = []
    const api = HttpClient.make((request) =>
      Effect.sync(() => {
        const number = Number(request.headers["authorization"]?.slice("Bearer token-".length))
        const status = number <= rejects ? 401 : 200
        received.push(status)
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
    assert.strictEqual((yield* client.get("/orders")).status, statuses.at(-1))
    deepStrictEqual([received, yield* tokenRequests], [statuses, statuses.length])
    // Its last 401 is reported too, so that the next request gets another token.
    yield* client.get("/orders")
    assert.strictEqual((yield* tokenRequests) > statuses.length, statuses.at(-1) === 401)
  })
})
