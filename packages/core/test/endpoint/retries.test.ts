import { HttpClient, HttpClientError, HttpClientRequest, HttpClientResponse } from "@effect/platform"
import { assert, describe } from "@effect/vitest"
import { deepStrictEqual } from "@effect/vitest/utils"
import { AccessToken, AccessTokenError, ClientCredentials, type TokenEndpoint } from "@store-api/core"
import {
  Clock,
  Deferred,
  Duration,
  Effect,
  Exit,
  Fiber,
  Layer,
  Option,
  Random,
  Redacted,
  TestClock,
  type Tracer
} from "effect"
import { settle, withHeadersOnSpans } from "../support/effectLine.js"
import * as FakeClient from "../support/fakeClient.js"
import { renderings } from "../support/renderings.js"
import { observed } from "../support/telemetry.js"
import { test } from "../support/test.js"
import { make as virtualClock } from "../support/virtualClock.js"
import { clientId, clientSecret, credentialsOf, tokenBody } from "../support/wire.js"

/** Runs an acquisition. Returns its exit, and its duration and request times in milliseconds since it began. */
const acquire = (
  client: FakeClient.FakeClient,
  options: Partial<TokenEndpoint.Options> = {},
  replacing?: string
) =>
  Effect.gen(function*() {
    const began = yield* Clock.currentTimeMillis
    const replaced = Option.map(Option.fromNullable(replacing), FakeClient.heldToken)
    const fiber = yield* FakeClient.acquire(client, options, replaced).pipe(
      Effect.exit,
      Effect.zip(Clock.currentTimeMillis),
      Effect.fork
    )
    yield* TestClock.adjust("2 minutes")
    const [exit, ended] = yield* Fiber.join(fiber)
    return { exit, took: ended - began, times: client.times.map((time) => time - began) }
  })

/** As `acquire`, for an acquisition that fails. */
const acquireError = (
  client: FakeClient.FakeClient,
  options: Partial<TokenEndpoint.Options> = {},
  replacing?: string
) =>
  Effect.gen(function*() {
    const { exit, ...rest } = yield* acquire(client, options, replacing)
    return { ...rest, error: yield* Effect.flip(exit) }
  })

/** As `acquire`, for an acquisition that succeeds. */
const acquireToken = (client: FakeClient.FakeClient, options: Partial<TokenEndpoint.Options> = {}) =>
  Effect.gen(function*() {
    const { exit, ...rest } = yield* acquire(client, options)
    return { ...rest, token: yield* exit }
  })

/** The client, changed as an application may change it. */
const changed = (
  client: FakeClient.FakeClient,
  change: (client: HttpClient.HttpClient) => HttpClient.HttpClient
): FakeClient.FakeClient => ({
  ...client,
  layer: Layer.provide(Layer.effect(HttpClient.HttpClient, Effect.map(HttpClient.HttpClient, change)), client.layer)
})

const gaps = (times: ReadonlyArray<number>) => times.slice(1).map((time, index) => time - (times[index] ?? NaN))

/** Jitter at its lower bound: pauses of 150, 300, 600, 750 and 750 ms. */
const shortestPauses = Effect.withRandom(Random.fixed([0]))

const certificate = FakeClient.transport(Object.assign(new Error(), { code: "CERT_HAS_EXPIRED" }))
const unavailable = FakeClient.reply(503)

/** A token response whose body fails. */
const failingBody: FakeClient.Reply = (request) =>
  FakeClient.reply(200, new ReadableStream({ pull: (to) => to.error(new Error("reset")) }))(request)

/** A decoding error of the HTTP client that holds a token response. */
const undecodable: FakeClient.Reply = (request) =>
  Effect.flatMap(
    FakeClient.token(request),
    (response) => Effect.fail(new HttpClientError.ResponseError({ request, response, reason: "Decode" }))
  )

const isRequestError = (
  error: unknown,
  reason: AccessTokenError.TokenRequestError["reason"],
  attempts: number
): void => {
  assert.instanceOf(error, AccessTokenError.TokenRequestError)
  deepStrictEqual([error.reason, error.attempts], [reason, attempts])
}

describe("the retries of TokenEndpoint", () => {
  describe("retries", () => {
    const transient: ReadonlyArray<readonly [string, FakeClient.Reply]> = [
      ["a transport error", FakeClient.transport()],
      ["a body that fails", failingBody],
      ["a response that the HTTP client cannot decode", undecodable],
      ["status 429 with a Retry-After", FakeClient.reply(429, "<html>", { "retry-after": "1" })],
      [
        "a success with the error temporarily_unavailable",
        FakeClient.reply(200, `{"error":"temporarily_unavailable"}`)
      ],
      ...[408, 500, 502, 503, 504, 529, 599].map((status) =>
        [`status ${status}`, FakeClient.reply(status, "<html>")] as const
      )
    ]

    test.each(transient)("%s, until a token arrives", function*([, reply]) {
      const client = FakeClient.make(reply, reply, FakeClient.token)
      const { times, token } = yield* acquireToken(client)
      assert.strictEqual(Redacted.value(token.value), "invented-token-0001")
      assert.strictEqual(times.length, 3)
    })

    test.each(transient)("%s, at most five times", function*([, reply]) {
      const { error, times } = yield* acquireError(FakeClient.make(reply))
      assert.strictEqual(times.length, 6)
      assert.isTrue(AccessTokenError.isTransient(error))
      if (error._tag === "TokenRequestError") assert.strictEqual(error.attempts, 6)
    })

    test("an attempt that times out", function*() {
      const { times, took } = yield* acquireToken(FakeClient.make(FakeClient.never, FakeClient.token)).pipe(
        shortestPauses
      )
      deepStrictEqual([times, took], [[0, 10_150], 10_150])
    })

    const final: ReadonlyArray<readonly [string, FakeClient.Reply, AccessTokenError.AccessTokenError["_tag"]]> = [
      ...[400, 401, 403, 404, 405, 410, 413, 422].map((status) =>
        [`status ${status}`, FakeClient.reply(status), "TokenRefusedError"] as const
      ),
      ...[300, 301, 302, 303, 304, 307, 308].map((status) =>
        [
          `status ${status}`,
          FakeClient.reply(status, status === 304 ? null : "", { location: "https://elsewhere.example" }),
          "TokenRequestError"
        ] as const
      ),
      [
        "the opaque redirect of a browser",
        (request) => Effect.sync(() => HttpClientResponse.fromWeb(request, Response.error())),
        "TokenRequestError"
      ],
      ["status 429 without a Retry-After", FakeClient.reply(429, "<html>"), "TokenRefusedError"],
      [
        "status 429 with an unusable Retry-After",
        FakeClient.reply(429, "", { "retry-after": "soon" }),
        "TokenRefusedError"
      ],
      ["a success with another error", FakeClient.reply(200, `{"error":"invalid_scope"}`), "TokenRefusedError"],
      ["a certificate error", certificate, "TokenRequestError"],
      ["a response that is too large", FakeClient.reply(200, "x".repeat(64 * 1024 + 1)), "TokenRequestError"],
      ["a response without a token", FakeClient.reply(200, "<html>"), "TokenResponseError"],
      [
        "a response with an unusable token",
        FakeClient.reply(200, tokenBody({ access_token: "" })),
        "TokenResponseError"
      ],
      ["an expired token", FakeClient.reply(200, tokenBody({ expires_in: 0 })), "TokenExpiredError"]
    ]

    test.each(final)("not %s", function*([, reply, tag]) {
      const { error, times, took } = yield* acquireError(FakeClient.make(reply, FakeClient.token))
      assert.strictEqual(error._tag, tag)
      deepStrictEqual([times, took], [[0], 0])
    })

    test("fails with the last error, whose attempts count all requests of the acquisition", function*() {
      const redirect = FakeClient.reply(302, "", { location: "/" })
      const large = FakeClient.reply(200, "x".repeat(64 * 1024 + 1))
      const first = yield* acquireError(FakeClient.make(unavailable, FakeClient.transport(), redirect))
      isRequestError(first.error, "Redirect", 3)
      const second = yield* acquireError(FakeClient.make(FakeClient.transport(), large))
      isRequestError(second.error, "TooLarge", 2)
      const third = yield* acquireError(FakeClient.make(unavailable, FakeClient.reply(403)))
      assert.strictEqual(third.error._tag, "TokenRefusedError")
      const fourth = yield* acquireError(FakeClient.make(certificate))
      isRequestError(fourth.error, "Certificate", 1)
    })

    test("counts the attempts of each acquisition separately", function*() {
      const redirect = FakeClient.reply(302, "", { location: "/" })
      const client = FakeClient.make(unavailable, redirect)
      const source = yield* FakeClient.source(client)
      const first = yield* Effect.fork(Effect.flip(source.acquire(Option.none())))
      yield* TestClock.adjust("1 minutes")
      isRequestError(yield* Fiber.join(first), "Redirect", 2)
      isRequestError(yield* Effect.flip(source.acquire(Option.none())), "Redirect", 1)
    })
  })

  describe("the pauses between attempts", () => {
    test.each(
      [
        ["75 percent", 0, [150, 300, 600, 750, 750]],
        ["87.5 percent", 0.5, [175, 350, 700, 875, 875]],
        ["100 percent", 1, [200, 400, 800, 1000, 1000]]
      ] as const
    )("double from 200 ms up to a second, times a jitter of %s", function*([, random, pauses]) {
      const { times, took } = yield* acquireError(FakeClient.make(unavailable)).pipe(
        Effect.withRandom(Random.fixed([random]))
      )
      deepStrictEqual<ReadonlyArray<number>>(gaps(times), pauses)
      assert.strictEqual(took, times.at(-1), "no pause after the last attempt")
    })

    test("are whole milliseconds with any jitter", function*() {
      const { times } = yield* acquireError(FakeClient.make(unavailable))
      for (const pause of gaps(times)) assert.isTrue(Number.isInteger(pause))
    })

    test("are not started if they would end after the deadline", function*() {
      const { error, times, took } = yield* acquireError(FakeClient.make(unavailable), { deadline: "1 seconds" })
        .pipe(
          shortestPauses
        )
      assert.strictEqual(error._tag, "TokenRefusedError")
      deepStrictEqual([times, took], [[0, 150, 450], 450])
    })
  })

  describe("Retry-After", () => {
    const replyAfter = (value: string, status = 503) => FakeClient.replyWithRawHeader(status, "retry-after", value)
    const retryAtOf = (error: unknown) => Option.map(AccessTokenError.retryAt(error), ({ epochMillis }) => epochMillis)

    test.each(
      [
        ["seconds", "5", 5000],
        ["the last second before the deadline", "29", 29_000],
        ["a date", "Thu, 01 Jan 1970 00:00:07 GMT", 7000]
      ] as const
    )("delays the next attempt when it fits the deadline: %s", function*([, value, wait]) {
      for (const status of [429, 503]) {
        yield* TestClock.setTime(0)
        const { times } = yield* acquireToken(FakeClient.make(replyAfter(value, status), FakeClient.token))
        deepStrictEqual(times, [0, wait])
      }
    })

    test.each(["0", "soon", "Wed, 31 Dec 1969 23:00:00 GMT"])("does not change the pause: %s", function*(value) {
      const { times } = yield* acquireToken(FakeClient.make(replyAfter(value), FakeClient.token)).pipe(shortestPauses)
      deepStrictEqual(times, [0, 150])
    })

    test("never shortens a pause", function*() {
      const { times } = yield* acquireError(FakeClient.make(replyAfter("0"))).pipe(shortestPauses)
      deepStrictEqual(gaps(times), [150, 300, 600, 750, 750])
      const again = yield* acquireError(FakeClient.make(replyAfter("1"))).pipe(shortestPauses)
      deepStrictEqual(gaps(again.times), [1000, 1000, 1000, 1000, 1000])
    })

    test.each(
      [
        ["the deadline exactly", "30", 30_000],
        ["more than the deadline", "31", 31_000],
        ["a year, limited to an hour", "31536000", 3_600_000]
      ] as const
    )("ends the acquisition and becomes retryAt when it does not fit the deadline: %s", function*([, value, at]) {
      const { error, times, took } = yield* acquireError(FakeClient.make(replyAfter(value), FakeClient.token))
      deepStrictEqual([times, took], [[0], 0])
      deepStrictEqual(retryAtOf(error), Option.some(at))
    })

    test("is compared with the remaining time before the deadline", function*() {
      const { error, times } = yield* acquireError(
        FakeClient.make(replyAfter("20"), replyAfter("20"), FakeClient.token)
      )
      deepStrictEqual(times, [0, 20_000])
      deepStrictEqual(retryAtOf(error), Option.some(40_000))
    })

    test("also becomes retryAt for a status that is not retried, and retryAt is None without it", function*() {
      const { error } = yield* acquireError(FakeClient.make(replyAfter("5", 403)))
      deepStrictEqual(retryAtOf(error), Option.some(5000))
      for (
        const reply of [FakeClient.reply(403), replyAfter("soon", 403), replyAfter("5", 400), replyAfter("5", 401)]
      ) {
        const none = yield* acquireError(FakeClient.make(reply))
        deepStrictEqual(AccessTokenError.retryAt(none.error), Option.none())
      }
    })
  })

  describe("time limits", () => {
    test("interrupt a silent request after 10 s, and the acquisition after 30 s", function*() {
      const { error, times, took } = yield* acquireError(FakeClient.make(FakeClient.never)).pipe(shortestPauses)
      isRequestError(error, "Timeout", 3)
      deepStrictEqual([times, took], [[0, 10_150, 20_450], 30_000])
    })

    test("apply to a body that arrives slowly, and cancel it", function*() {
      const { drips, reply } = FakeClient.drip()
      const { error, times, took } = yield* acquireError(FakeClient.make(reply)).pipe(shortestPauses)
      isRequestError(error, "Timeout", 3)
      deepStrictEqual([times, took], [[0, 10_150, 20_450], 30_000])
      deepStrictEqual(drips.map(({ cancelled }) => cancelled), [true, true, true])
      for (const { sent } of drips) assert.isAtLeast(sent, 9, "parts of the body had arrived")
    })

    test("can be set by attemptTimeout and deadline", function*() {
      const { error, times, took } = yield* acquireError(FakeClient.make(FakeClient.never), {
        attemptTimeout: "1 seconds",
        deadline: Duration.seconds(5)
      }).pipe(shortestPauses)
      isRequestError(error, "Timeout", 4)
      deepStrictEqual([times, took], [[0, 1150, 2450, 4050], 5000])
    })

    test("end an attempt at a deadline that is shorter than attemptTimeout", function*() {
      const { error, times, took } = yield* acquireError(FakeClient.make(FakeClient.never), { deadline: "3 seconds" })
      isRequestError(error, "Timeout", 1)
      deepStrictEqual([times, took], [[0], 3000])
    })

    test("fail with Timeout and without a request when the credentials never arrive", function*() {
      const { error, times, took } = yield* acquireError(FakeClient.make(FakeClient.token), {
        credentials: Effect.never
      })
      isRequestError(error, "Timeout", 0)
      deepStrictEqual([times, took], [[], 30_000])
    })

    test("include the time that reading the credentials takes", function*() {
      const credentials = Effect.delay(Effect.succeed(credentialsOf(clientId, clientSecret)), "25 seconds")
      const { error, times, took } = yield* acquireError(FakeClient.make(FakeClient.never), { credentials })
      isRequestError(error, "Timeout", 1)
      deepStrictEqual([times, took], [[25_000], 30_000])
    })

    const stubborn = Effect.uninterruptible(Effect.never)
    const hanging: ReadonlyArray<readonly [string, FakeClient.Reply, Partial<TokenEndpoint.Options>?]> = [
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
      [
        "a body that cannot be cancelled",
        (request) => FakeClient.reply(200, new ReadableStream({ cancel: () => new Promise(() => {}) }))(request)
      ],
      ["silent credentials", FakeClient.token, { credentials: Effect.never }],
      ["credentials that cannot be interrupted", FakeClient.token, { credentials: stubborn }]
    ]

    test.each(hanging)("hold in every region of the caller, and in a finalizer: %s", function*([, reply, options]) {
      for (
        const region of [
          Effect.interruptible,
          Effect.uninterruptible,
          (acquisition: ReturnType<typeof FakeClient.acquire>) =>
            Effect.flatMap(
              Deferred.make<Effect.Effect.Success<typeof acquisition>, unknown>(),
              (result) =>
                Effect.void.pipe(
                  Effect.ensuring(acquisition.pipe(Effect.intoDeferred(result))),
                  Effect.zipRight(Deferred.await(result))
                )
            )
        ]
      ) {
        const fiber = yield* FakeClient.acquire(FakeClient.make(reply), options).pipe(
          region,
          Effect.flip,
          Effect.fork
        )
        yield* TestClock.adjust("30 seconds")
        const exit = yield* Fiber.poll(fiber)
        assert.isTrue(Option.isSome(exit), "ended at the deadline")
        const error = yield* Fiber.join(fiber)
        assert.instanceOf(error, AccessTokenError.TokenRequestError)
      }
    })

    test("tear no region of a caller that cannot be interrupted, at whatever step it is interrupted", function*() {
      const steps = (count: number) =>
        Effect.forEach(Array.from({ length: count }), () => Effect.yieldNow(), { discard: true })
      // On Effect 4, each yield takes a turn of the event loop.
      const idle = Effect.forEach([1, 2, 3, 4, 5, 6], () => settle, { discard: true })
      const slowly = (reply: FakeClient.Reply, wait: number): FakeClient.Reply => (request) =>
        steps(3).pipe(Effect.zipRight(Effect.sleep(wait)), Effect.zipRight(steps(3)), Effect.zipRight(reply(request)))

      /** Interrupts an acquisition after some steps and milliseconds. Returns what happened in its region. */
      const interrupted = (count: number, millis: number) =>
        Effect.gen(function*() {
          const time = virtualClock(0, idle)
          const client = FakeClient.make(
            slowly(unavailable, millis && 1000),
            slowly(FakeClient.token, millis && 1000)
          )
          const credentials = Effect.as(steps(3), credentialsOf(clientId, clientSecret))
          const source = yield* FakeClient.source(client, { credentials })
          const seen: Array<string> = []
          const see = (what: string) => Effect.sync(() => void seen.push(what))
          const fiber = yield* Effect.acquireRelease(
            see("start").pipe(Effect.zipRight(source.acquire(Option.none())), Effect.zipLeft(see("end"))),
            () => see("release")
          ).pipe(Effect.scoped, shortestPauses, Effect.withClock(time.clock), Effect.fork)
          yield* steps(count)
          if (millis > 0) yield* time.advance(millis)
          yield* Fiber.interruptFork(fiber)
          yield* time.advance("10 seconds")
          const exit = yield* Fiber.await(fiber)
          return Exit.isInterrupted(exit) ? seen.join() : "not interrupted"
        })

      const whole = "start,end,release"
      for (const millis of [500, 1100, 1500]) assert.strictEqual(yield* interrupted(5, millis), whole)
      for (let count = 5; count < 40; count++) {
        assert.strictEqual(yield* interrupted(count, 0), whole, `${count} steps`)
      }
    })

    test("do not delay an interruption: the request is interrupted with its acquisition", function*() {
      let interrupted = false
      const client = FakeClient.make(() =>
        Effect.onInterrupt(Effect.never, () => Effect.sync(() => interrupted = true))
      )
      const fiber = yield* Effect.fork(FakeClient.acquire(client))
      yield* TestClock.adjust("1 seconds")
      assert.isFalse(interrupted)
      yield* Fiber.interrupt(fiber)
      const exit = yield* Fiber.await(fiber)
      yield* settle
      assert.isTrue(Exit.isInterrupted(exit) && interrupted)
      yield* TestClock.adjust("1 minutes")
      assert.strictEqual(client.times.length, 1)
    })

    test("start the lifetime of a token when its own request is sent, not at the first attempt", function*() {
      yield* TestClock.setTime(1_000_000)
      const slow: FakeClient.Reply = (request) => Effect.delay(FakeClient.token(request), "5 seconds")
      const { token } = yield* acquireToken(FakeClient.make(unavailable, slow)).pipe(shortestPauses)
      assert.strictEqual(token.acquiredAt.epochMillis, 1_000_150)
      assert.strictEqual(token.expiresAt.epochMillis, 1_000_150 + 3_600_000)
    })

    test.each(
      [
        ["set back by an hour", -3_600_000, 0, 1],
        ["set forward by five seconds", 5000, -5000, 1],
        ["set forward by two hours, as if the machine slept,", 7_200_000, 0, 2]
      ] as const
    )("return a usable token when the wall clock is %s during a request", function*([, jump, since, requests]) {
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
      assert.strictEqual(token.expiresAt.epochMillis - token.acquiredAt.epochMillis, 3_600_000)
      if (requests === 1) assert.strictEqual(time.wall() - token.acquiredAt.epochMillis, 10_000 - since)
    })

    test.each([[4, "expired"], [5, "expired"], [6, "usable"]] as const)(
      "leave a token of %d s that takes 5 s to arrive %s",
      function*([expiresIn, expected]) {
        const slow: FakeClient.Reply = (request) =>
          Effect.delay(FakeClient.reply(200, tokenBody({ expires_in: expiresIn }))(request), "5 seconds")
        const { exit, times } = yield* acquire(FakeClient.make(slow))
        assert.strictEqual(times.length, 1)
        if (expected === "usable") {
          assert.isTrue(Exit.isSuccess(exit))
          return
        }
        const error = yield* Effect.flip(exit)
        assert.instanceOf(error, AccessTokenError.TokenExpiredError)
        assert.strictEqual(error.reason, "DeadOnArrival")
        assert.strictEqual(error.expiredAt.epochMillis, expiresIn * 1000)
        assert.strictEqual(error.checkedAt.epochMillis, 5000)
      }
    )
  })

  describe("credentials given as an effect", () => {
    const invalid = FakeClient.reply(401, `{"error":"invalid_client"}`)

    /** Returns the secrets in turn, and the last one for all further reads. */
    const rotating = (...secrets: ReadonlyArray<string>) => {
      const state = { reads: 0 }
      const credentials = Effect.sync(() => {
        const secret = secrets[Math.min(state.reads, secrets.length - 1)] ?? ""
        state.reads++
        return credentialsOf(clientId, secret)
      })
      return { credentials, state }
    }
    const secretsSent = (client: FakeClient.FakeClient) =>
      client.bodies.map((body) =>
        body.replace(`grant_type=client_credentials&client_id=${clientId}&client_secret=`, "")
      )

    test("are read once per acquisition, even if it takes several attempts", function*() {
      const { credentials, state } = rotating("first", "second")
      const client = FakeClient.make(FakeClient.token, unavailable, FakeClient.token)
      const source = yield* FakeClient.source(client, { credentials })
      assert.strictEqual(state.reads, 0, "not read while the source is created")
      yield* source.acquire(Option.none())
      const fiber = yield* Effect.fork(source.acquire(Option.none()))
      yield* TestClock.adjust("1 minutes")
      yield* Fiber.join(fiber)
      deepStrictEqual(secretsSent(client), ["first", "second", "second"])
      assert.strictEqual(state.reads, 2)
    })

    test.each(
      [
        ["401", invalid],
        ["401 with no body", FakeClient.reply(401)],
        ["400 with the code", FakeClient.reply(400, `{"ErrorCode":"invalid_client"}`)],
        ["a success with the code", FakeClient.reply(200, `{"error":"invalid_client"}`)],
        ["400 with unauthorized_client", FakeClient.reply(400, `{"error":"unauthorized_client"}`)],
        ["401 of an API", FakeClient.reply(401, "", { "www-authenticate": "Bearer" })]
      ] as const
    )("are read again after InvalidClient, and tried immediately if they have changed: %s", function*([, reply]) {
      const { credentials, state } = rotating("old", "new")
      const client = FakeClient.make(reply, FakeClient.token)
      const { times } = yield* acquireToken(client, { credentials })
      deepStrictEqual(secretsSent(client), ["old", "new"])
      deepStrictEqual(times, [0, 0])
      assert.strictEqual(state.reads, 2)
    })

    test("are not tried again if they have not changed", function*() {
      const { credentials, state } = rotating("old")
      const client = FakeClient.make(invalid, FakeClient.token)
      const { error } = yield* acquireError(client, { credentials })
      assert.strictEqual(error._tag, "TokenRefusedError")
      deepStrictEqual([secretsSent(client), state.reads], [["old"], 2])
    })

    test.each(
      [
        ["fails", Effect.fail(new AccessTokenError.CredentialsError({ field: "clientSecret", reason: "is missing" }))],
        ["fails with a defect", Effect.die("an invented defect")],
        ["never ends", Effect.never],
        ["never ends and cannot be interrupted", Effect.uninterruptible(Effect.never)],
        ["interrupts itself", Effect.interrupt]
      ] as const
    )(
      "are not tried again if the second read %s: the acquisition fails with the error of the endpoint",
      function*([, second]) {
        for (const [deadline, longest] of [["30 seconds", 10_000], ["4 seconds", 2000]] as const) {
          let reads = 0
          const credentials = Effect.suspend(() =>
            ++reads === 1 ? Effect.succeed(credentialsOf(clientId, clientSecret)) : second
          )
          const { error, took } = yield* acquireError(FakeClient.make(invalid), { credentials, deadline })
          assert(error._tag === "TokenRefusedError")
          assert.strictEqual(error.reason, "InvalidClient")
          assert.isAtMost(took, longest)
        }
      }
    )

    test("are not tried a third time, even if they change again", function*() {
      const { credentials, state } = rotating("one", "two", "three", "four")
      const client = FakeClient.make(invalid)
      const { error } = yield* acquireError(client, { credentials })
      assert.strictEqual(error._tag, "TokenRefusedError")
      deepStrictEqual([secretsSent(client), state.reads], [["one", "two"], 2])
    })

    test("are not read a third time when a transient failure occurs in between", function*() {
      const { credentials, state } = rotating("one", "two", "three")
      const client = FakeClient.make(unavailable, invalid, unavailable, invalid, FakeClient.token)
      const { error } = yield* acquireError(client, { credentials })
      assert.strictEqual(error._tag, "TokenRefusedError")
      deepStrictEqual([secretsSent(client), state.reads], [["one", "one", "two", "two"], 2])
    })

    test("are not read again when the endpoint refuses the request for another reason", function*() {
      for (const status of [400, 403, 503]) {
        const { credentials, state } = rotating("one", "two")
        const client = FakeClient.make(FakeClient.reply(status))
        yield* acquireError(client, { credentials })
        assert.strictEqual(state.reads, 1)
        assert.isTrue(secretsSent(client).every((secret) => secret === "one"))
      }
    })

    test("that cannot be read fail with CredentialsError, without a request", function*() {
      const failing = ClientCredentials.make({ clientId, clientSecret: Redacted.make("a&b") })
      const { error, times } = yield* acquireError(FakeClient.make(FakeClient.token), { credentials: failing })
      assert.instanceOf(error, AccessTokenError.CredentialsError)
      deepStrictEqual(times, [])
      const readable = yield* acquireToken(FakeClient.make(FakeClient.token), {
        credentials: ClientCredentials.make({ clientId, clientSecret: Redacted.make("a+b") })
      })
      deepStrictEqual(readable.times, [0], "control: valid credentials are sent")
    })

    test("are sent only once if they are a constant value", function*() {
      const { times } = yield* acquireError(FakeClient.make(invalid, FakeClient.token))
      deepStrictEqual(times, [0])
    })
  })

  describe("an error response", () => {
    test.each([["p+lus", true], ["per%cent", true], ["id", false]] as const)(
      "of credentials with %s reports that form decoding changes them: %s",
      function*([value, expected]) {
        for (
          const credentials of [credentialsOf(value, "plain"), credentialsOf("plain", value)].map(Effect.succeed)
        ) {
          const { error } = yield* acquireError(FakeClient.make(FakeClient.reply(401)), { credentials })
          assert.instanceOf(error, AccessTokenError.TokenRefusedError)
          assert.strictEqual(error.changedByFormDecoding, expected)
          assert.strictEqual(/\+ or %/.test(error.message), expected)
          const other = yield* acquireError(FakeClient.make(FakeClient.reply(403)), { credentials })
          assert.notMatch(other.error.message, /\+ or %/)
        }
      }
    )

    test.each(
      [
        ["the secret", clientSecret, undefined],
        ["the replaced token", "invented-token-canary", undefined],
        ["the id", clientId, "you sent <client id>"]
      ] as const
    )("that echoes %s is reported without it", function*([, value, expected]) {
      for (const status of [200, 400]) {
        const body = JSON.stringify({ error: "invalid_request", error_description: `you sent ${value}` })
        const client = FakeClient.make(FakeClient.reply(status, body))
        const { error } = yield* acquireError(client, {}, "invented-token-canary")
        assert.instanceOf(error, AccessTokenError.TokenRefusedError)
        deepStrictEqual(
          [error.status, error.code, error.description],
          [status, Option.some("invalid_request"), Option.fromNullable(expected)]
        )
        assert.notInclude(renderings(error), value)
        const harmless = FakeClient.make(FakeClient.reply(status, body.replace(value, "something")))
        const other = yield* acquireError(harmless, {}, "invented-token-canary")
        assert.include(renderings(other.error), "you sent something")
      }
    })

    test.each(["a", "id", "auth", "client", "invalid"])(
      "keeps its code when the client id is %s, and loses a description that contains the secret",
      function*(id) {
        const credentials = Effect.succeed(credentialsOf(id, clientSecret))
        const refusal = (description: string) =>
          FakeClient.reply(401, JSON.stringify({ error: "invalid_client", error_description: description }))
        const plain = yield* acquireError(FakeClient.make(refusal("Unknown client")), { credentials })
        assert.instanceOf(plain.error, AccessTokenError.TokenRefusedError)
        deepStrictEqual(
          [plain.error.code, plain.error.description],
          [Option.some("invalid_client"), Option.some("Unknown client")]
        )
        const echo = yield* acquireError(FakeClient.make(refusal(`Wrong secret ${clientSecret}`)), { credentials })
        assert.instanceOf(echo.error, AccessTokenError.TokenRefusedError)
        deepStrictEqual([echo.error.code, echo.error.description], [Option.some("invalid_client"), Option.none()])
      }
    )

    test.each(
      [
        ["arrives slowly", () => FakeClient.drip(401).reply],
        ["never arrives", () => FakeClient.reply(401, new ReadableStream())],
        ["fails", () => FakeClient.reply(401, new ReadableStream({ pull: (to) => to.error(new Error("reset")) }))],
        [
          "cannot be cancelled",
          () => FakeClient.reply(401, new ReadableStream({ cancel: () => new Promise(() => {}) }))
        ]
      ] as const
    )("is reported by its status when its body %s", function*([, reply]) {
      const { error, times, took } = yield* acquireError(FakeClient.make(reply()))
      assert.instanceOf(error, AccessTokenError.TokenRefusedError)
      deepStrictEqual([error.reason, error.status], ["InvalidClient", 401])
      assert.lengthOf(times, 1)
      assert.isAtMost(took, 1000)
    })

    test("is reported within half of a short attemptTimeout when its body never arrives", function*() {
      const client = FakeClient.make(FakeClient.reply(403, new ReadableStream()))
      const { error, took } = yield* acquireError(client, { attemptTimeout: "200 millis" })
      assert.strictEqual(error._tag, "TokenRefusedError")
      assert.strictEqual(took, 100)
    })

    test("is reported by its status when its body exceeds maxResponseBytes", function*() {
      for (const status of [400, 401, 500]) {
        const { error } = yield* acquireError(FakeClient.make(FakeClient.reply(status, "x".repeat(100_000))))
        assert.instanceOf(error, AccessTokenError.TokenRefusedError)
        assert.strictEqual(error.status, status)
      }
    })
  })

  test("maxResponseBytes limits the response body to the byte", function*() {
    const body = tokenBody()
    const exactly = yield* acquire(FakeClient.make(FakeClient.reply(200, body)), { maxResponseBytes: body.length })
    assert.isTrue(Exit.isSuccess(exactly.exit))
    const { error } = yield* acquireError(FakeClient.make(FakeClient.reply(200, body)), {
      maxResponseBytes: body.length - 1
    })
    isRequestError(error, "TooLarge", 1)
    const full = tokenBody({ padding: "x".repeat(64 * 1024 - tokenBody({ padding: "" }).length) })
    yield* acquireToken(FakeClient.make(FakeClient.reply(200, full)))
    const least = yield* acquireError(FakeClient.make(FakeClient.reply(200, "{")), { maxResponseBytes: 1 })
    assert.strictEqual(least.error._tag, "TokenResponseError")
  })

  describe("one request", () => {
    test("returns the token with all fields of the response in the specification", function*() {
      yield* TestClock.setTime(1_000_000)
      const { token } = yield* acquireToken(FakeClient.make(FakeClient.reply(200, tokenBody({ scope: "orders" }))))
      assert.strictEqual(Redacted.value(token.value), "invented-token-0001")
      assert.strictEqual(token.tokenType, "Bearer")
      assert.strictEqual(token.scope, "orders")
      deepStrictEqual(token.applicationName, Option.some("Invented Shop"))
      deepStrictEqual(Option.map(token.developerEmail, Redacted.value), Option.some("developer@shop.example"))
      deepStrictEqual(token.issuedAt, Option.some("1767225600000"))
      deepStrictEqual(token.clientId, Option.some(clientId))
      deepStrictEqual([token.acquiredAt.epochMillis, token.expiresAt.epochMillis], [1_000_000, 4_600_000])
      const without = yield* acquireToken(FakeClient.make(FakeClient.reply(200, tokenBody({ scope: undefined }))))
      assert.strictEqual(without.token.scope, "")
    })

    test("has its own span, sends no trace headers, and redacts every header in the client span", function*() {
      const spans: Array<Tracer.Span> = []
      const tracer = observed(yield* Effect.tracer, (span) => void spans.push(span))
      const client = FakeClient.make(FakeClient.reply(200, tokenBody(), { "x-canary": "canary" }))
      const plain = HttpClient.get("https://auth.shop.example", { headers: { "x-canary": "canary" } })
      yield* Effect.all([Effect.provide(plain, client.layer), FakeClient.acquire(client)]).pipe(
        Effect.withTracer(tracer),
        withHeadersOnSpans
      )
      const names = spans.map(({ name }) => name.replace("http.client ", ""))
      deepStrictEqual(names, ["GET", "TokenEndpoint.request", "POST"])
      const [control, own, sent] = spans
      const values = (span: Tracer.Span | undefined, part: string) =>
        [...span?.attributes ?? []].flatMap(([name, value]) => name.includes(part) ? [value] : [])
      assert.include(values(control, ".header."), "canary", "control: the search finds the header")
      assert.isAbove(values(sent, ".request.header.").length, 0)
      assert.isAbove(values(sent, ".response.header.").length, 0)
      assert.isTrue(values(sent, ".header.").every((value) => value === "<redacted>"))
      deepStrictEqual(values(own, ""), [])
      const [first, second] = client.requests
      assert.containsAllKeys({ ...first?.headers }, ["traceparent", "b3"])
      assert.doesNotHaveAnyKeys({ ...second?.headers }, ["traceparent", "b3"])
    })

    test("reports the error response of the endpoint when the given client fails on statuses", function*() {
      const body = `{"error":"invalid_client","error_description":"Unknown client"}`
      const { error } = yield* acquireError(
        changed(FakeClient.make(FakeClient.reply(401, body)), HttpClient.filterStatusOk)
      )
      assert.instanceOf(error, AccessTokenError.TokenRefusedError)
      deepStrictEqual(
        [error.status, error.reason, error.code, error.description],
        [401, "InvalidClient", Option.some("invalid_client"), Option.some("Unknown client")]
      )
      const redirect = FakeClient.make(FakeClient.reply(302, "", { location: "/" }))
      const redirected = yield* acquireError(changed(redirect, HttpClient.filterStatusOk))
      isRequestError(redirected.error, "Redirect", 1)
    })

    test.each(
      [
        ["", ""],
        ["/", ""],
        ["//", ""],
        ["/base", "/base"],
        ["/base//", "/base"],
        ["/two/levels/", "/two/levels"],
        ["/with%20blank", "/with%20blank"]
      ] as const
    )("goes to {auth_url}/v1/oauth/accesstoken when auth_url ends with \"%s\"", function*([end, path]) {
      const authUrl = `https://auth.shop.example${end}`
      const client = FakeClient.make(FakeClient.token)
      for (const form of [authUrl, new URL(authUrl)]) yield* acquireToken(client, { authUrl: form })
      const url = `https://auth.shop.example${path}/v1/oauth/accesstoken`
      deepStrictEqual(client.requests.map(({ method, url }) => [method, url]), [["POST", url], ["POST", url]])
    })

    test("rejects a token from the target of a redirect, and accepts one from the target of mapRequest", function*() {
      const redirect = FakeClient.reply(302, "", { location: "https://elsewhere.example/" })
      const following = changed(FakeClient.make(redirect, FakeClient.token), HttpClient.followRedirects(3))
      const { error } = yield* acquireError(following)
      isRequestError(error, "Redirect", 1)
      deepStrictEqual(following.requests.map(({ url }) => url), [
        "https://auth.shop.example/v1/oauth/accesstoken",
        "https://elsewhere.example/"
      ])
      const elsewhere = changed(
        FakeClient.make(FakeClient.token),
        HttpClient.mapRequest(HttpClientRequest.setUrl("https://gateway.example/token"))
      )
      assert.strictEqual(Redacted.value((yield* acquireToken(elsewhere)).token.value), "invented-token-0001")
    })
  })

  test("a 401 with the challenge of an API names authUrl in its message, not the secret", function*() {
    const body = `{"error":"invalid_token","error_description":"The access token is missing"}`
    const challenge = { "www-authenticate": "Bearer realm=\"orders\"" }
    const { error, times } = yield* acquireError(FakeClient.make(FakeClient.reply(401, body, challenge)))
    assert.instanceOf(error, AccessTokenError.TokenRefusedError)
    deepStrictEqual([error.reason, error.status], ["Other", 401])
    assert.include(error.message, "The access token is missing): check authUrl")
    assert.notInclude(error.message, "secret")
    assert.strictEqual(times.length, 1)
  })
})
