import {
  FetchHttpClient,
  HttpClient,
  HttpClientError,
  HttpClientRequest,
  HttpClientResponse
} from "@effect/platform"
import { assert, describe } from "@effect/vitest"
import { deepStrictEqual } from "@effect/vitest/utils"
import {
  AccessToken,
  AccessTokenError,
  type TokenEndpoint,
  TokenSource
} from "@store-api/core"
import { settle, withHeadersOnSpans } from "@store-api/testing/effectMajor"
import { test } from "@store-api/testing/test"
import { make as virtualClock } from "@store-api/testing/virtualClock"
import {
  Clock,
  Deferred,
  Duration,
  Effect,
  Either,
  Exit,
  Fiber,
  Layer,
  Option,
  Random,
  Redacted,
  TestClock,
  type Tracer
} from "effect"
import * as FakeClient from "../support/fakeClient.js"
import { observed } from "../support/telemetry.js"
import { clientId, clientSecret, credentialsOf, tokenBody } from "../support/wire.js"

const { reply, transport } = FakeClient

type Replies = Parameters<typeof FakeClient.make>
type Options = Partial<TokenEndpoint.Options> & {
  readonly replacing?: string
  /** Jitter: with 0, its lower bound, the pauses take 150, 300, 600, 750 and 750 ms. */
  readonly random?: number
}

/** `token`, the reason of an error of the endpoint, with the attempts that it counts, or the tag of another error. */
const outcomeOf = (
  result: AccessToken.AccessToken | Effect.Effect.Error<ReturnType<typeof FakeClient.acquire>>
) => {
  if (result instanceof AccessToken.AccessToken) return "token"
  switch (result._tag) {
    case "TokenRequestError":
      return `${result.reason} (${result.attempts})`
    case "TokenRefusedError":
    case "TokenExpiredError":
      return result.reason
    default:
      return result._tag
  }
}

/** Runs an acquisition. Times are in milliseconds since it began. */
const run = (
  client: FakeClient.FakeClient,
  { random = 0, replacing, ...options }: Options = {}
) =>
  Effect.gen(function*() {
    const began = yield* Clock.currentTimeMillis
    const replaced = Option.map(Option.fromNullable(replacing), FakeClient.heldToken)
    const fiber = yield* FakeClient.acquire(client, options, replaced).pipe(
      Effect.either,
      Effect.zip(Clock.currentTimeMillis),
      Effect.withRandom(Random.fixed([random])),
      Effect.fork
    )
    yield* TestClock.adjust("2 minutes")
    const [result, ended] = yield* Fiber.join(fiber)
    const outcome = outcomeOf(Either.merge(result))
    return {
      result,
      outcome,
      took: ended - began,
      times: client.times.map((time) => time - began)
    }
  })

/** Runs an acquisition that succeeds. Returns its token. */
const acquireToken = (...settings: Parameters<typeof run>) =>
  Effect.map(run(...settings), ({ result }) => {
    const token = Either.merge(result)
    assert.instanceOf(token, AccessToken.AccessToken)
    return token
  })

/** Runs an acquisition that the endpoint refuses. Returns its error. */
const acquireRefusal = (...settings: Parameters<typeof run>) =>
  Effect.map(run(...settings), ({ result }) => {
    const error = Either.merge(result)
    assert.instanceOf(error, AccessTokenError.TokenRefusedError)
    return error
  })

/** Declares a test of when an acquisition sends its requests, how it ends, and how long it takes. */
const testTimeline = (
  title: string,
  replies: Replies,
  expected: readonly [times: ReadonlyArray<number>, outcome: string, took: number],
  options?: Options
): void =>
  test(title, function*() {
    const { outcome, times, took } = yield* run(FakeClient.make(...replies), options)
    deepStrictEqual([times, outcome, took], expected)
  })

/** Changes a client, as an application may. */
const changeClient = (
  client: FakeClient.FakeClient,
  change: (client: HttpClient.HttpClient) => HttpClient.HttpClient
): FakeClient.FakeClient => ({
  ...client,
  layer: Layer.provide(
    Layer.effect(HttpClient.HttpClient, Effect.map(HttpClient.HttpClient, change)),
    client.layer
  )
})

const gapsOf = (times: ReadonlyArray<number>) =>
  times.slice(1).map((time, index) => time - (times[index] ?? NaN))

const certificate = transport(Object.assign(new Error(), { code: "CERT_HAS_EXPIRED" }))
const unavailable = reply(503)
const redirect = reply(302, "", { location: "https://elsewhere.example/" })
const tooLarge = reply(200, "x".repeat(64 * 1024 + 1))
const delay =
  (wait: Duration.DurationInput, reply: FakeClient.Reply): FakeClient.Reply => (request) =>
    Effect.delay(reply(request), wait)
const refusedTunnel = new Error("Proxy response (407) !== 200 when HTTP Tunneling")
const closedClient = Object.assign(new Error("The client is destroyed"), {
  code: "UND_ERR_DESTROYED"
})
const failingBody = () => new ReadableStream({ pull: (to) => to.error(new Error("reset")) })
const unclosableBody = () => new ReadableStream({ cancel: () => new Promise(() => {}) })

/** A decoding error of the HTTP client that holds a token response. */
const undecodable: FakeClient.Reply = (request) =>
  Effect.flatMap(
    FakeClient.token(request),
    (response) =>
      Effect.fail(new HttpClientError.ResponseError({ request, response, reason: "Decode" }))
  )

describe("the retries of TokenEndpoint", () => {
  describe("retries", () => {
    const transient: ReadonlyArray<readonly [string, FakeClient.Reply]> = [
      ["a transport error", transport()],
      // As a defect, it would hold the request with the secret.
      ["a transport error that is a defect", (request) => Effect.orDie(transport()(request))],
      ["a body that fails", (request) => reply(200, failingBody())(request)],
      ["a response that the HTTP client cannot decode", undecodable],
      ["status 429 with a Retry-After", reply(429, "<html>", { "retry-after": "1" })],
      [
        "a success with the error temporarily_unavailable",
        reply(200, `{"error":"temporarily_unavailable"}`)
      ],
      ...[408, 500, 502, 503, 504, 529, 599].map((status) =>
        [`status ${status}`, reply(status, "<html>")] as const
      )
    ]

    test.each(transient)("%s is retried until a token arrives", function*([, failure]) {
      const { outcome, times } = yield* run(
        FakeClient.make(failure, failure, FakeClient.token)
      )
      deepStrictEqual([outcome, times.length], ["token", 3])
    })

    test.each(transient)("%s is retried at most five times", function*([, failure]) {
      assert.lengthOf((yield* run(FakeClient.make(failure))).times, 6)
    })

    test.each(transient)("%s is retried, so its error is transient", function*([, failure]) {
      const { result } = yield* run(FakeClient.make(failure))
      assert.isTrue(AccessTokenError.isTransient(Either.merge(result)))
    })

    testTimeline(
      "an attempt that times out is retried",
      [FakeClient.never, FakeClient.token],
      [
        [0, 10_150],
        "token",
        10_150
      ]
    )

    const final: ReadonlyArray<readonly [string, FakeClient.Reply, outcome: string]> = [
      ["status 400", reply(400), "InvalidRequest"],
      ["status 401", reply(401), "InvalidClient"],
      [
        "a 401 with the challenge of an API",
        reply(401, "", { "www-authenticate": "Bearer realm=\"a\"" }),
        "Other"
      ],
      ...[403, 404, 405, 410, 413, 422].map((status) =>
        [`status ${status}`, reply(status), "Other"] as const
      ),
      ...[300, 301, 302, 303, 304, 307, 308].map((status) =>
        [
          `status ${status}`,
          reply(status, null, { location: "https://elsewhere.example" }),
          "Redirect (1)"
        ] as const
      ),
      [
        "the opaque redirect of a browser",
        (request) => Effect.sync(() => HttpClientResponse.fromWeb(request, Response.error())),
        "Redirect (1)"
      ],
      ["status 429 without a Retry-After", reply(429, "<html>"), "RateLimited"],
      [
        "status 429 with an unusable Retry-After",
        reply(429, "", { "retry-after": "soon" }),
        "RateLimited"
      ],
      [
        "a success with another error",
        reply(200, `{"error":"invalid_scope"}`),
        "InvalidRequest"
      ],
      ["a certificate error", certificate, "Certificate (1)"],
      ["status 407, which comes from a proxy", reply(407, "<html>"), "Proxy (1)"],
      ["a proxy that refuses a tunnel with 407", transport(refusedTunnel), "Proxy (1)"],
      ["an HTTP client that is closed", transport(closedClient), "Closed (1)"],
      ["a response that is too large", tooLarge, "TooLarge (1)"],
      ["a response without a token", reply(200, "<html>"), "TokenResponseError"],
      [
        "a response with an unusable token",
        reply(200, tokenBody({ access_token: "" })),
        "TokenResponseError"
      ],
      ["an expired token", reply(200, tokenBody({ expires_in: 0 })), "DeadOnArrival"]
    ]

    test.each(final)("%s is not retried", function*([, last, expected]) {
      const { outcome, times, took } = yield* run(FakeClient.make(last, FakeClient.token))
      deepStrictEqual([outcome, times, took], [expected, [0], 0])
    })

    test("an acquisition fails with its last error, whose attempts count all its requests", function*() {
      const cases: ReadonlyArray<readonly [Replies, string]> = [
        [[unavailable, transport(), redirect], "Redirect (3)"],
        [[transport(), tooLarge], "TooLarge (2)"],
        [[unavailable, reply(403)], "Other"],
        [[transport()], "Transport (6)"]
      ]
      for (const [replies, expected] of cases) {
        assert.strictEqual((yield* run(FakeClient.make(...replies))).outcome, expected)
      }
    })

    test("the attempts of each acquisition are counted separately", function*() {
      const source = yield* FakeClient.source(FakeClient.make(unavailable, redirect))
      const first = yield* Effect.fork(Effect.flip(source.acquire(TokenSource.missing)))
      yield* TestClock.adjust("1 minutes")
      assert.strictEqual(outcomeOf(yield* Fiber.join(first)), "Redirect (2)")
      assert.strictEqual(
        outcomeOf(yield* Effect.flip(source.acquire(TokenSource.missing))),
        "Redirect (1)"
      )
    })
  })

  describe("the pauses between attempts", () => {
    test.each([
      ["75 percent", 0, [150, 300, 600, 750, 750]],
      ["87.5 percent", 0.5, [175, 350, 700, 875, 875]],
      ["100 percent", 1, [200, 400, 800, 1000, 1000]],
      ["87.8 percent, rounded up to milliseconds", 0.513, [176, 352, 703, 879, 879]]
    ])(
      "the pauses between attempts double from 200 ms up to a second, times a jitter of %s",
      function*([, random, pauses]) {
        const { times, took } = yield* run(FakeClient.make(unavailable), { random })
        deepStrictEqual<ReadonlyArray<number>>(gapsOf(times), pauses)
        assert.strictEqual(took, times.at(-1), "no pause after the last attempt")
      }
    )

    testTimeline(
      "a pause that would end after the deadline is not started",
      [unavailable],
      [[0, 150, 450], "Unavailable", 450],
      { deadline: "1 seconds" }
    )
  })

  describe("Retry-After", () => {
    const askToWait = (value: string, status = 503) =>
      FakeClient.replyWithRawHeader(status, "retry-after", value)
    const retryAtOf = ({ result }: Effect.Effect.Success<ReturnType<typeof run>>) =>
      Option.map(
        AccessTokenError.retryAt(Either.merge(result)),
        ({ epochMillis }) => epochMillis
      )

    test.each([
      ["seconds", "5", 5000],
      ["the last second before the deadline", "29", 29_000],
      ["a date", "Thu, 01 Jan 1970 00:00:07 GMT", 7000]
    ])("a Retry-After of %s delays the next attempt", function*([, value, wait]) {
      for (const status of [429, 503]) {
        yield* TestClock.setTime(0)
        const client = FakeClient.make(askToWait(value, status), FakeClient.token)
        deepStrictEqual((yield* run(client)).times, [0, wait])
      }
    })

    test("a Retry-After that cannot be read delays nothing", function*() {
      const client = FakeClient.make(askToWait("soon"), FakeClient.token)
      deepStrictEqual((yield* run(client)).times, [0, 150])
    })

    test.each(["0", "Wed, 31 Dec 1969 23:00:00 GMT"])(
      "a Retry-After of %s never shortens a pause",
      function*(value) {
        for (const status of [429, 503]) {
          yield* TestClock.setTime(0)
          const { times } = yield* run(FakeClient.make(askToWait(value, status)))
          deepStrictEqual<ReadonlyArray<number>>(gapsOf(times), [150, 300, 600, 750, 750])
        }
      }
    )

    const beyondDeadline = [
      ["the deadline exactly", "30", 30_000],
      ["more than the deadline", "31", 31_000],
      ["a year, limited to an hour", "31536000", 3_600_000]
    ] as const

    test.each(beyondDeadline)(
      "a Retry-After of %s ends the acquisition",
      function*([, value]) {
        const client = FakeClient.make(askToWait(value), FakeClient.token)
        const { times, took } = yield* run(client)
        deepStrictEqual([times, took], [[0], 0])
      }
    )

    test.each(beyondDeadline)("a Retry-After of %s becomes retryAt", function*([, value, at]) {
      const outcome = yield* run(FakeClient.make(askToWait(value), FakeClient.token))
      deepStrictEqual(retryAtOf(outcome), Option.some(at))
    })

    test("a Retry-After is compared with the time that remains before the deadline", function*() {
      const wait = askToWait("20")
      const outcome = yield* run(FakeClient.make(wait, wait, FakeClient.token))
      deepStrictEqual([outcome.times, retryAtOf(outcome)], [[0, 20_000], Option.some(40_000)])
    })

    test("the Retry-After of a status that is not retried becomes retryAt", function*() {
      const outcome = yield* run(FakeClient.make(askToWait("5", 403)))
      deepStrictEqual(retryAtOf(outcome), Option.some(5000))
    })

    test.each([
      ["403 without a Retry-After", reply(403)],
      ["403 with a Retry-After that cannot be read", askToWait("soon", 403)],
      ["400 with a Retry-After", askToWait("5", 400)],
      ["401 with a Retry-After", askToWait("5", 401)]
    ])("the error of status %s has no retryAt", function*([, refused]) {
      deepStrictEqual(retryAtOf(yield* run(FakeClient.make(refused))), Option.none())
    })
  })

  describe("time limits", () => {
    testTimeline(
      "by default, an attempt may take 10 s of the 30 s of its acquisition",
      [FakeClient.never],
      [[0, 10_150, 20_450], "Timeout (3)", 30_000]
    )
    testTimeline(
      "attemptTimeout and deadline set the time limits",
      [FakeClient.never],
      [[0, 1150, 2450, 4050], "Timeout (4)", 5000],
      { attemptTimeout: "1 seconds", deadline: Duration.seconds(5) }
    )
    testTimeline(
      "a deadline that is shorter than attemptTimeout ends the attempt",
      [FakeClient.never],
      [[0], "Timeout (1)", 3000],
      { deadline: "3 seconds" }
    )
    testTimeline(
      "credentials that never arrive lead to Timeout without a request",
      [FakeClient.token],
      [[], "Timeout (0)", 30_000],
      { credentials: Effect.never }
    )
    testTimeline(
      "the deadline includes the time that reading the credentials takes",
      [FakeClient.never],
      [[25_000], "Timeout (1)", 30_000],
      {
        credentials: Effect.delay(
          Effect.succeed(credentialsOf(clientId, clientSecret)),
          "25 seconds"
        )
      }
    )

    testTimeline("the time limits apply to a body that arrives slowly", [
      FakeClient.drip().reply
    ], [[0, 10_150, 20_450], "Timeout (3)", 30_000])

    test("a body that takes too long is cancelled", function*() {
      const { drips, reply } = FakeClient.drip()
      yield* run(FakeClient.make(reply))
      deepStrictEqual(drips.map(({ cancelled }) => cancelled), [true, true, true])
      for (const { sent } of drips) assert.isAtLeast(sent, 9, "parts of the body had arrived")
    })

    const stubborn = Effect.uninterruptible(Effect.never)

    test.each<readonly [string, FakeClient.Reply, Partial<TokenEndpoint.Options>?]>([
      ["a silent client", FakeClient.never],
      ["a client that cannot be interrupted", () => stubborn],
      [
        "a client that cannot be closed",
        (request) =>
          Effect.addFinalizer(() => Effect.never).pipe(
            Effect.zipRight(Effect.never),
            Effect.scoped,
            Effect.zipRight(FakeClient.token(request))
          )
      ],
      ["a body that cannot be cancelled", (request) => reply(200, unclosableBody())(request)],
      ["silent credentials", FakeClient.token, { credentials: Effect.never }],
      ["credentials that cannot be interrupted", FakeClient.token, { credentials: stubborn }]
    ])(
      "the deadline ends an acquisition in any region of its caller: %s",
      function*([, hanging, options]) {
        const inFinalizer = (acquisition: ReturnType<typeof FakeClient.acquire>) =>
          Effect.gen(function*() {
            const result = yield* Deferred.make<
              AccessToken.AccessToken,
              Effect.Effect.Error<typeof acquisition>
            >()
            yield* Effect.ensuring(Effect.void, acquisition.pipe(Effect.intoDeferred(result)))
            return yield* Deferred.await(result)
          })
        for (const region of [Effect.interruptible, Effect.uninterruptible, inFinalizer]) {
          const fiber = yield* Effect.fork(
            Effect.flip(region(FakeClient.acquire(FakeClient.make(hanging), options)))
          )
          yield* TestClock.adjust("30 seconds")
          const exit = yield* Fiber.poll(fiber)
          assert.isTrue(Option.isSome(exit), "ended at the deadline")
          assert.instanceOf(yield* Fiber.join(fiber), AccessTokenError.TokenRequestError)
        }
      }
    )

    test("an interruption tears no uninterruptible region of the caller, at whatever step it comes", function*() {
      const steps = (count: number) =>
        Effect.forEach(Array.from({ length: count }), () => Effect.yieldNow(), {
          discard: true
        })
      // On Effect 4, each yield takes a turn of the event loop.
      const idle = Effect.forEach([1, 2, 3, 4, 5, 6], () => settle, { discard: true })
      const slowly = (reply: FakeClient.Reply, wait: number): FakeClient.Reply => (request) =>
        steps(3).pipe(
          Effect.zipRight(Effect.sleep(wait)),
          Effect.zipRight(steps(3)),
          Effect.zipRight(reply(request))
        )

      /** Interrupts an acquisition after some steps and milliseconds. Returns what happened in its region. */
      const interruptAt = (count: number, millis: number) =>
        Effect.gen(function*() {
          const time = virtualClock(0, idle)
          const replies: Replies = [
            slowly(unavailable, millis && 1000),
            slowly(FakeClient.token, millis && 1000)
          ]
          const credentials = Effect.as(steps(3), credentialsOf(clientId, clientSecret))
          const source = yield* FakeClient.source(FakeClient.make(...replies), { credentials })
          const seen: Array<string> = []
          const see = (what: string) => Effect.sync(() => void seen.push(what))
          const fiber = yield* Effect.acquireRelease(
            see("start").pipe(
              Effect.zipRight(source.acquire(TokenSource.missing)),
              Effect.zipLeft(see("end"))
            ),
            () => see("release")
          ).pipe(
            Effect.scoped,
            Effect.withRandom(Random.fixed([0])),
            Effect.withClock(time.clock),
            Effect.fork
          )
          yield* steps(count)
          if (millis > 0) yield* time.advance(millis)
          yield* Fiber.interruptFork(fiber)
          yield* time.advance("10 seconds")
          const exit = yield* Fiber.await(fiber)
          return Exit.isInterrupted(exit) ? seen.join() : "not interrupted"
        })

      const whole = "start,end,release"
      for (const millis of [500, 1100, 1500]) {
        assert.strictEqual(yield* interruptAt(5, millis), whole)
      }
      for (let count = 5; count < 40; count++) {
        assert.strictEqual(yield* interruptAt(count, 0), whole, `${count} steps`)
      }
    })

    test("a request is interrupted with its acquisition", function*() {
      let isInterrupted = false
      const client = FakeClient.make(() =>
        Effect.onInterrupt(Effect.never, () => Effect.sync(() => isInterrupted = true))
      )
      const fiber = yield* Effect.fork(FakeClient.acquire(client))
      yield* TestClock.adjust("1 seconds")
      assert.isFalse(isInterrupted)
      yield* Fiber.interrupt(fiber)
      const exit = yield* Fiber.await(fiber)
      yield* settle
      assert.isTrue(Exit.isInterrupted(exit) && isInterrupted)
      yield* TestClock.adjust("1 minutes")
      assert.strictEqual(client.times.length, 1)
    })

    test("the lifetime of a token starts when its own request is sent, not at the first attempt", function*() {
      yield* TestClock.setTime(1_000_000)
      const token = yield* acquireToken(
        FakeClient.make(unavailable, delay("5 seconds", FakeClient.token))
      )
      deepStrictEqual([token.acquiredAt.epochMillis, token.expiresAt.epochMillis], [
        1_000_150,
        4_600_150
      ])
    })

    test.each([
      ["set back by an hour", -3_600_000, 0, 1],
      ["set forward by five seconds", 5000, -5000, 1],
      ["set forward by two hours, as if the machine slept", 7_200_000, 0, 2]
    ])(
      "a token is usable when the wall clock is %s during its request",
      function*([, jump, since, requests]) {
        const time = virtualClock()
        let jumps = 0
        const client = FakeClient.make((request) =>
          Effect.sync(() => jumps++ === 0 && time.jump(jump)).pipe(
            Effect.zipLeft(Effect.sleep("2 seconds")),
            Effect.zipRight(FakeClient.token(request))
          )
        )
        const fiber = yield* FakeClient.acquire(client).pipe(
          Effect.flatMap((token) => Effect.as(AccessToken.ensureValid(token), token)),
          Effect.withClock(time.clock),
          Effect.fork
        )
        yield* time.advance("10 seconds")
        const token = yield* Fiber.join(fiber)
        assert.lengthOf(client.times, requests)
        assert.strictEqual(
          token.expiresAt.epochMillis - token.acquiredAt.epochMillis,
          3_600_000
        )
        if (requests === 1) {
          assert.strictEqual(
            time.wall() - token.acquiredAt.epochMillis,
            10_000 - since
          )
        }
      }
    )

    test.each([[4, "DeadOnArrival"], [5, "DeadOnArrival"], [6, "token"]] as const)(
      "a token of %d s that takes 5 s to arrive leads to %s",
      function*([expiresIn, expected]) {
        const slow = delay("5 seconds", reply(200, tokenBody({ expires_in: expiresIn })))
        const { result, outcome, times } = yield* run(FakeClient.make(slow))
        deepStrictEqual([outcome, times.length], [expected, 1])
        const error = Either.merge(result)
        if (!(error instanceof AccessTokenError.TokenExpiredError)) return
        deepStrictEqual([error.expiredAt.epochMillis, error.checkedAt.epochMillis], [
          expiresIn * 1000,
          5000
        ])
      }
    )
  })

  describe("credentials given as an effect", () => {
    const invalid = reply(401, `{"error":"invalid_client"}`)

    /** Runs an acquisition. The credentials are the secrets in turn; the last one is repeated. */
    const runRotating = (secrets: ReadonlyArray<string>, ...replies: Replies) =>
      Effect.gen(function*() {
        let reads = 0
        const credentials = Effect.sync(() =>
          credentialsOf(clientId, secrets[Math.min(reads++, secrets.length - 1)] ?? "")
        )
        const client = FakeClient.make(...replies)
        const { outcome, times } = yield* run(client, { credentials })
        const sent = client.bodies.map((body) => body.replace(/^.*&client_secret=/, ""))
        return { outcome, times, sent, reads }
      })

    test("credentials are not read while the source is created", function*() {
      let reads = 0
      const credentials = Effect.sync(() => credentialsOf(clientId, `secret-${++reads}`))
      const { acquire } = yield* FakeClient.source(FakeClient.make(FakeClient.token), {
        credentials
      })
      assert.strictEqual(reads, 0)
      yield* acquire(TokenSource.missing)
      assert.strictEqual(reads, 1, "control")
    })

    test("credentials are read once per acquisition, even if it takes several attempts", function*() {
      let reads = 0
      const credentials = Effect.sync(() => credentialsOf(clientId, `secret-${++reads}`))
      const client = FakeClient.make(FakeClient.token, unavailable, FakeClient.token)
      const source = yield* FakeClient.source(client, { credentials })
      yield* source.acquire(TokenSource.missing)
      const fiber = yield* Effect.fork(source.acquire(TokenSource.missing))
      yield* TestClock.adjust("1 minutes")
      yield* Fiber.join(fiber)
      deepStrictEqual(client.bodies.map((body) => body.slice(-8)), [
        "secret-1",
        "secret-2",
        "secret-2"
      ])
    })

    test.each<readonly [string, FakeClient.Reply]>([
      ["401", invalid],
      ["401 with no body", reply(401)],
      ["400 with the code", reply(400, `{"ErrorCode":"invalid_client"}`)],
      ["a success with the code", reply(200, `{"error":"invalid_client"}`)],
      ["400 with unauthorized_client", reply(400, `{"error":"unauthorized_client"}`)],
      ["400 with invalid_grant", reply(400, `{"error":"invalid_grant"}`)],
      ["401 of an API", reply(401, "", { "www-authenticate": "Bearer" })]
    ])(
      "credentials that have changed are tried at once after %s",
      function*([, refused]) {
        const { reads, sent, times } = yield* runRotating(
          ["old", "new"],
          refused,
          FakeClient.token
        )
        deepStrictEqual([sent, times, reads], [["old", "new"], [0, 0], 2])
      }
    )

    test.each<
      readonly [
        string,
        secrets: ReadonlyArray<string>,
        Replies,
        sent: ReadonlyArray<string>,
        outcome: string
      ]
    >([
      [
        "not sent again if they have not changed",
        ["old"],
        [invalid, FakeClient.token],
        ["old"],
        "InvalidClient"
      ],
      [
        "not sent a third time",
        ["one", "two", "three"],
        [invalid],
        ["one", "two"],
        "InvalidClient"
      ],
      [
        "not sent a third time when a transient failure occurs in between",
        ["one", "two", "three"],
        [unavailable, invalid, unavailable, invalid, FakeClient.token],
        ["one", "one", "two", "two"],
        "InvalidClient"
      ]
    ])("refused credentials are %s", function*([, secrets, replies, expected, reason]) {
      const { outcome, reads, sent } = yield* runRotating(secrets, ...replies)
      deepStrictEqual([sent, outcome, reads], [expected, reason, 2])
    })

    test.each([
      [
        "fails",
        Effect.fail(
          new AccessTokenError.CredentialsError({
            field: "clientSecret",
            reason: "is missing"
          })
        )
      ],
      ["fails with a defect", Effect.die("an invented defect")],
      ["never ends", Effect.never],
      ["never ends and cannot be interrupted", Effect.uninterruptible(Effect.never)],
      ["interrupts itself", Effect.interrupt]
    ])(
      "an acquisition fails with the error of the endpoint if the second read of the credentials %s",
      function*([, second]) {
        for (
          const [deadline, longest] of [["30 seconds", 10_000], ["4 seconds", 2000]] as const
        ) {
          let reads = 0
          const credentials = Effect.suspend(() =>
            ++reads === 1 ? Effect.succeed(credentialsOf(clientId, clientSecret)) : second
          )
          const { outcome, took } = yield* run(FakeClient.make(invalid), {
            credentials,
            deadline
          })
          assert.strictEqual(outcome, "InvalidClient")
          assert.isAtMost(took, longest)
        }
      }
    )

    test("credentials are not read again when the endpoint refuses the request for another reason", function*() {
      const codes = ["invalid_scope", "no_invalid_grant", "invalid_grants"].map((error) =>
        JSON.stringify({ error })
      )
      for (
        const refused of [
          reply(400),
          ...codes.map((body) => reply(400, body)),
          reply(403),
          reply(503)
        ]
      ) {
        const { reads, sent } = yield* runRotating(["one", "two"], refused)
        deepStrictEqual([reads, [...new Set(sent)]], [1, ["one"]])
      }
    })

    testTimeline(
      "credentials that cannot be sent fail with CredentialsError, without a request",
      [FakeClient.token],
      [[], "CredentialsError", 0],
      { credentials: Effect.succeed(credentialsOf(clientId, "a&b")) }
    )

    testTimeline("constant credentials are sent only once", [invalid, FakeClient.token], [
      [0],
      "InvalidClient",
      0
    ])
  })

  describe("an error response", () => {
    test("a description that repeats the secret or the replaced token is dropped", function*() {
      const replacing = "invented-token-canary"
      for (const value of [clientSecret, replacing, "something"]) {
        const body = JSON.stringify({
          error: "invalid_request",
          error_description: `you sent ${value}`
        })
        const { code, description } = yield* acquireRefusal(
          FakeClient.make(reply(400, body)),
          {
            replacing
          }
        )
        const expected = value === "something" ? `you sent ${value}` : undefined
        deepStrictEqual([code, description], ["invalid_request", expected])
      }
    })

    test.each<readonly [string, () => FakeClient.Reply]>([
      ["arrives slowly", () => FakeClient.drip(401).reply],
      ["never arrives", () => reply(401, new ReadableStream())],
      ["fails", () => reply(401, failingBody())],
      ["cannot be cancelled", () => reply(401, unclosableBody())],
      ["exceeds maxResponseBytes", () => reply(401, "x".repeat(100_000))]
    ])(
      "an error response is reported by its status when its body %s",
      function*([, unauthorized]) {
        const { outcome, times, took } = yield* run(FakeClient.make(unauthorized()))
        deepStrictEqual([outcome, times], ["InvalidClient", [0]])
        assert.isAtMost(took, 1000)
      }
    )

    test("an error response whose body never arrives is reported within half of a short attemptTimeout", function*() {
      const client = FakeClient.make(reply(400, new ReadableStream()))
      const { outcome, took } = yield* run(client, { attemptTimeout: "200 millis" })
      deepStrictEqual([outcome, took], ["InvalidRequest", 100])
    })
  })

  test("maxResponseBytes limits the response body to the byte", function*() {
    const body = tokenBody()
    const full = tokenBody({
      padding: "x".repeat(64 * 1024 - tokenBody({ padding: "" }).length)
    })
    for (
      const [text, options, expected] of [
        [body, { maxResponseBytes: body.length }, "token"],
        [body, { maxResponseBytes: body.length - 1 }, "TooLarge (1)"],
        [full, {}, "token"],
        ["{", { maxResponseBytes: 1 }, "TokenResponseError"]
      ] as const
    ) {
      assert.strictEqual(
        (yield* run(FakeClient.make(reply(200, text)), options)).outcome,
        expected
      )
    }
  })

  describe("one request", () => {
    test("the token has all fields of the response in the specification", function*() {
      yield* TestClock.setTime(1_000_000)
      const token = yield* acquireToken(
        FakeClient.make(reply(200, tokenBody({ scope: "orders" })))
      )
      deepStrictEqual({ ...token, value: Redacted.value(token.value) }, {
        value: "invented-token-0001",
        tokenType: "Bearer" as const,
        scope: "orders",
        acquiredAt: token.acquiredAt,
        expiresAt: token.expiresAt,
        applicationName: Option.some("Invented Shop"),
        developerEmail: Option.some(Redacted.make("developer@shop.example")),
        issuedAt: Option.some("1767225600000"),
        clientId: Option.some(clientId),
        extra: Redacted.make({})
      })
      deepStrictEqual([token.acquiredAt.epochMillis, token.expiresAt.epochMillis], [
        1_000_000,
        4_600_000
      ])
    })

    test("the scope of a token is empty when the response has none", function*() {
      const client = FakeClient.make(reply(200, tokenBody({ scope: undefined })))
      assert.strictEqual((yield* acquireToken(client)).scope, "")
    })

    /** Sends a request of another program, and then a token request. Returns both, with the headers on their spans. */
    const sendBoth = Effect.gen(function*() {
      const spans: Array<Tracer.Span> = []
      const tracer = observed(yield* Effect.tracer, (span) => void spans.push(span))
      const client = FakeClient.make(reply(200, tokenBody(), { "x-canary": "canary" }))
      const plain = Effect.provide(HttpClient.get("https://auth.shop.example"), client.layer)
      yield* Effect.zipRight(plain, FakeClient.acquire(client)).pipe(
        Effect.withTracer(tracer),
        withHeadersOnSpans
      )
      const valuesOf = (part: string, method: string) =>
        spans.filter(({ name }) => name.endsWith(method)).flatMap(({ attributes }) =>
          [...attributes].flatMap(([name, value]) => name.includes(part) ? [value] : [])
        )
      return { requests: client.requests, valuesOf }
    })

    test("a token request sends no trace headers", function*() {
      const [plain, own] = (yield* sendBoth).requests
      assert.containsAllKeys({ ...plain?.headers }, ["traceparent", "b3"], "control")
      assert.doesNotHaveAnyKeys({ ...own?.headers }, ["traceparent", "b3"])
    })

    test("the span of a token request redacts every header", function*() {
      const { valuesOf } = yield* sendBoth
      assert.include(valuesOf(".header.", "GET"), "canary", "control")
      for (const part of [".request.header.", ".response.header."]) {
        deepStrictEqual([...new Set(valuesOf(part, "POST"))], ["<redacted>"])
      }
    })

    test("an error response is reported when the given client fails on statuses", function*() {
      const body = `{"error":"invalid_client","error_description":"Unknown client"}`
      const error = yield* acquireRefusal(
        changeClient(FakeClient.make(reply(401, body)), HttpClient.filterStatusOk)
      )
      deepStrictEqual(
        [error.httpStatus, error.reason, error.code, error.description],
        [401, "InvalidClient", "invalid_client", "Unknown client"]
      )
    })

    test("a redirect is reported when the given client fails on statuses", function*() {
      const client = changeClient(FakeClient.make(redirect), HttpClient.filterStatusOk)
      assert.strictEqual((yield* run(client)).outcome, "Redirect (1)")
    })

    test("the retries of the given client are parts of one attempt", function*() {
      const client = changeClient(
        FakeClient.make(transport(), unavailable, redirect),
        HttpClient.retryTransient({ times: 3 })
      )
      const { outcome, times } = yield* run(client)
      deepStrictEqual([outcome, times], ["Redirect (1)", [0, 0, 0]])
    })

    /** The RequestInit that fetch gets: of a call, a layer, neither, and of the layer of fetch. */
    const fetchInits = Effect.gen(function*() {
      const inits: Array<RequestInit | undefined> = []
      const fetch: typeof globalThis.fetch = (_url, init) => {
        inits.push(init)
        return Promise.resolve(new Response(tokenBody()))
      }
      const base = Layer.provide(
        FetchHttpClient.layer,
        Layer.succeed(FetchHttpClient.Fetch, fetch)
      )
      const ofLayer: RequestInit = {
        redirect: "follow",
        credentials: "omit",
        cache: "no-store"
      }
      const ofCall: RequestInit = { redirect: "error", cache: "reload", keepalive: true }
      const source = FakeClient.source({ ...FakeClient.make(FakeClient.token), layer: base })
      const { acquire } = yield* Effect.provideService(
        source,
        FetchHttpClient.RequestInit,
        ofLayer
      )
      yield* Effect.provideService(
        acquire(TokenSource.missing),
        FetchHttpClient.RequestInit,
        ofCall
      )
      yield* acquire(TokenSource.missing)
      yield* (yield* source).acquire(TokenSource.missing)
      // It replaces even the one that only the layer of fetch has.
      const ofFetch = Layer.provide(base, Layer.succeed(FetchHttpClient.RequestInit, ofLayer))
      yield* FakeClient.acquire({ ...FakeClient.make(FakeClient.token), layer: ofFetch })
      return inits
    })

    test("fetch follows no redirect of a token request, whatever RequestInit the program has", function*() {
      const inits = yield* fetchInits
      deepStrictEqual(inits.map((init) => init?.redirect), Array(4).fill("manual"))
    })

    test("fetch gets the RequestInit of the layer for a call without one", function*() {
      const inits = yield* fetchInits
      deepStrictEqual(
        inits.map((init) => [init?.credentials, init?.cache, init?.keepalive]),
        [
          ["omit", "reload", true],
          ["omit", "no-store", undefined],
          [undefined, undefined, undefined],
          [undefined, undefined, undefined]
        ]
      )
    })

    test("a token from the target of a redirect is rejected", function*() {
      const client = changeClient(
        FakeClient.make(redirect, FakeClient.token),
        HttpClient.followRedirects(3)
      )
      assert.strictEqual((yield* run(client)).outcome, "Redirect (1)")
      deepStrictEqual(client.requests.map(({ url }) => url), [
        "https://auth.shop.example/v1/oauth/accesstoken",
        "https://elsewhere.example/"
      ])
    })

    test("a token from the target of mapRequest is accepted", function*() {
      const toGateway = HttpClient.mapRequest(
        HttpClientRequest.setUrl("https://gateway.example/token")
      )
      const client = changeClient(FakeClient.make(FakeClient.token), toGateway)
      assert.strictEqual((yield* run(client)).outcome, "token")
    })
  })
})
