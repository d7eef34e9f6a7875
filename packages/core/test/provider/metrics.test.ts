import { assert, describe, it } from "@effect/vitest"
import { deepStrictEqual } from "@effect/vitest/utils"
import { AccessTokenError, AccessTokenMetrics, AccessTokenProvider } from "@store-api/core"
import { Array, Context, Deferred, Effect, Exit, Fiber, Layer, Metric, Option, Scope, TestClock } from "effect"
import { allSeries, type Series } from "../support/effectLine.js"
import {
  type Acquisition,
  aged,
  answering,
  hour,
  minute,
  outage,
  run,
  settle,
  timeline,
  token
} from "../support/scriptedSource.js"
import { test } from "../support/test.js"

/** Shortens the name of a series: `acquisitions Success`, `duration`, … */
const shortName = ({ labels, name }: Series) =>
  [
    name.replace(/^store_api_token_(acquisition_(?=duration))?|(_timestamp)?_seconds$/g, ""),
    ...["outcome", "cause"].flatMap((key) => labels[key] ?? [])
  ].join(" ")

/** All series of this library with this `store` label. The registry is global, so each test uses its own label. */
const labelledSeries = (store: string) =>
  Effect.map(
    allSeries,
    (all) => all.filter(({ labels, name }) => name.startsWith("store_api_token_") && labels["store"] === store)
  )

const seriesOf = (store: string) =>
  Effect.map(labelledSeries(store), (all) => Object.fromEntries(all.map((series) => [shortName(series), series.value])))

const initial = {
  "acquisitions Success": 0,
  "acquisitions CredentialsError": 0,
  "acquisitions Defect": 0,
  "acquisitions TokenExpiredError": 0,
  "acquisitions TokenRefusedError": 0,
  "acquisitions TokenRequestError": 0,
  "acquisitions TokenResponseError": 0,
  duration: [0, 0],
  callers_joined: 0,
  "rejections Dropped": 0,
  "rejections Kept": 0,
  "cooldowns Failure": 0,
  "cooldowns NoProgress": 0,
  expiry: 0
} as const

/** Asserts the value of every series. Those that are not given must have their initial value. */
const expectSeries = (store: string, expected: Partial<Record<keyof typeof initial, unknown>>) =>
  Effect.map(seriesOf(store), (series) => deepStrictEqual<object>(series, { ...initial, ...expected }))

const labelled = <A, E, R>(store: string, effect: Effect.Effect<A, E, R>) => Effect.tagMetrics(effect, "store", store)

/** Declares a test of a provider whose series have this `store` label. */
const metricsTest =
  (store: string, script: Parameters<typeof timeline>[0]) => (title: string, steps: Parameters<typeof timeline>[1]) => {
    test(title, function*() {
      yield* labelled(store, timeline(script, steps))
    })
  }

describe("AccessTokenProvider, metrics", () => {
  it("every error has its own acquisition outcome", () => {
    const members = AccessTokenError.AccessTokenError.members.map(({ identifier }) =>
      identifier.replace("@store-api/core/", "acquisitions ")
    )
    const outcomes = Object.keys(initial).filter((name) => name.startsWith("acquisitions"))
    deepStrictEqual(outcomes.sort(), [...members, "acquisitions Success", "acquisitions Defect"].sort())
  })

  metricsTest("initial", () => token("one"))(
    "every series exists with the value 0 before the first acquisition, under its documented name",
    function*() {
      yield* expectSeries("initial", {})
      const names = (yield* labelledSeries("initial")).map(({ name }) => name)
      deepStrictEqual([...new Set(names)].sort(), [
        "store_api_token_acquisition_duration_seconds",
        "store_api_token_acquisitions",
        "store_api_token_callers_joined",
        "store_api_token_cooldowns",
        "store_api_token_expiry_timestamp_seconds",
        "store_api_token_rejections"
      ])
    }
  )

  metricsTest("described", () => token("one"))(
    "each metric has a type and a description; durations and timestamps have a unit, durations have buckets",
    function*() {
      const described = (yield* labelledSeries("described")).map(({ description, kind, labels, name }) =>
        [
          name.replace("store_api_token_", ""),
          [
            typeof kind === "string" ? kind : kind.join(" "),
            description,
            ...Option.toArray(Option.fromNullable(labels["unit"]))
          ]
        ] as const
      )
      deepStrictEqual(Object.fromEntries(described), {
        acquisitions: ["counts up", "Acquisitions that have ended, by outcome"],
        acquisition_duration_seconds: [
          "0.01 0.025 0.05 0.1 0.25 0.5 1 2.5 5 10 30",
          "Duration of acquisitions, in seconds",
          "s"
        ],
        callers_joined: ["counts up", "Callers that waited for an acquisition that another caller had started"],
        rejections: ["counts up", "Rejections of the cached token, by outcome"],
        cooldowns: ["counts up", "Cooldowns after a failure, or after a renewal without progress"],
        expiry_timestamp_seconds: [
          "gauge",
          "When the cached token expires, in seconds since the epoch, or 0 without a token",
          "s"
        ]
      })
    }
  )

  metricsTest("success", (n, virtual) => Effect.zipLeft(token(`token-${n}`), virtual.advance(n * 250)))(
    "an acquisition records its outcome, its duration by the monotonic clock, and the token's expiry",
    function*({ provider, virtual }) {
      const first = yield* provider.get
      const after = { "acquisitions Success": 1, duration: [1, 0.25], expiry: first.expiresAt.epochMillis / 1000 }
      yield* expectSeries("success", after)
      for (let calls = 0; calls < 100; calls++) yield* provider.get
      yield* provider.current
      yield* provider.status
      yield* virtual.advance(1000)
      yield* expectSeries("success", after)
      const second = yield* provider.refresh
      yield* expectSeries("success", {
        "acquisitions Success": 2,
        duration: [2, 0.75],
        expiry: second.expiresAt.epochMillis / 1000
      })
      // The value stays after expiry, so that dashboards show an expiry in the past.
      yield* virtual.advance(2 * hour)
      assert.strictEqual((yield* provider.status).state, "Expired")
      yield* expectSeries("success", {
        "acquisitions Success": 2,
        duration: [2, 0.75],
        expiry: second.expiresAt.epochMillis / 1000
      })
    }
  )

  const failures: Readonly<Record<string, Acquisition>> = {
    CredentialsError: Effect.fail(new AccessTokenError.CredentialsError({ field: "clientId", reason: "is empty" })),
    TokenRefusedError: Effect.fail(
      new AccessTokenError.TokenRefusedError({ reason: "InvalidClient", status: 401 })
    ),
    TokenRequestError: Effect.fail(outage),
    TokenResponseError: Effect.fail(new AccessTokenError.TokenResponseError({ problems: [] })),
    TokenExpiredError: aged("expired", hour, -1),
    Defect: Effect.die("an invented defect")
  }

  it.effect.each(Object.entries(failures))(
    "a failed acquisition without a cached token: %s",
    ([outcome, acquire]) =>
      labelled(
        outcome,
        run((_, virtual) => Effect.zipRight(virtual.advance(2000), acquire), ({ provider }) =>
          Effect.gen(function*() {
            yield* Effect.exit(provider.get)
            const after = { [`acquisitions ${outcome}`]: 1, duration: [1, 2], "cooldowns Failure": 1 }
            yield* expectSeries(outcome, after)
            // During the cooldown no acquisition starts.
            yield* Effect.exit(provider.get)
            yield* expectSeries(outcome, after)
          }))
      )
  )

  metricsTest("renewal", (n) => n === 1 ? token("one") : Effect.fail(outage))(
    "a failed renewal does not change the expiry of the cached token",
    function*({ provider, virtual }) {
      const { expiresAt } = yield* provider.get
      yield* virtual.advance(57 * minute)
      yield* provider.get
      yield* settle
      yield* expectSeries("renewal", {
        "acquisitions Success": 1,
        "acquisitions TokenRequestError": 1,
        duration: [2, 0],
        "cooldowns Failure": 1,
        expiry: expiresAt.epochMillis / 1000
      })
    }
  )

  metricsTest("no progress", () => aged("same", hour - minute, minute))(
    "a renewal without progress counts as a success and starts a cooldown",
    function*({ provider }) {
      const { expiresAt } = yield* provider.get
      const expiry = expiresAt.epochMillis / 1000
      yield* expectSeries("no progress", { "acquisitions Success": 1, duration: [1, 0], expiry })
      yield* provider.refresh
      yield* expectSeries("no progress", {
        "acquisitions Success": 2,
        duration: [2, 0],
        "cooldowns NoProgress": 1,
        expiry
      })
    }
  )

  it.effect("callers_joined counts callers that wait for an acquisition that another caller started", () =>
    labelled(
      "joined",
      Effect.gen(function*() {
        const open = yield* Deferred.make<void>()
        yield* run(
          (n) => n === 1 ? token("one") : Effect.zipRight(Deferred.await(open), token("two")),
          ({ provider, virtual }) =>
            Effect.gen(function*() {
              const joined = (callers_joined: number) =>
                Effect.map(seriesOf("joined"), (series) => assert.strictEqual(series["callers_joined"], callers_joined))
              yield* provider.get
              yield* virtual.advance(59 * minute + 20_000)
              // The renewal runs in the background: all three callers get the cached token.
              yield* Effect.all([provider.get, provider.get, provider.get])
              yield* joined(0)
              yield* virtual.advance(20_000)
              const refreshing = yield* Effect.fork(provider.refresh)
              yield* settle
              yield* joined(1)
              // Within the leeway callers wait. The interrupted one counts, too.
              const waiting = yield* Effect.forkAll(Array.makeBy(3, () => provider.get))
              const interrupted = yield* Effect.fork(provider.get)
              yield* settle
              yield* Fiber.interrupt(interrupted)
              yield* joined(5)
              yield* Deferred.succeed(open, undefined)
              yield* Fiber.join(refreshing)
              yield* Fiber.join(waiting)
              yield* joined(5)
            })
        )
      })
    ))

  metricsTest("first callers", () => Effect.zipRight(Effect.yieldNow(), token("one")))(
    "of a thousand first callers, one starts the acquisition and 999 join it",
    function*({ provider }) {
      const [{ expiresAt }] = yield* Effect.all(Array.makeBy(1000, () => provider.get), {
        concurrency: "unbounded"
      })
      yield* expectSeries("first callers", {
        "acquisitions Success": 1,
        duration: [1, 0],
        callers_joined: 999,
        expiry: expiresAt.epochMillis / 1000
      })
    }
  )

  metricsTest("rejected", (n) => token(`token-${n}`))(
    "a rejection counts as Dropped, or as Kept without budget; one of a token that is not cached does not count",
    function*({ provider, virtual }) {
      const first = yield* provider.get
      yield* virtual.advance(1000)
      const one = { "acquisitions Success": 1, duration: [1, 0] }
      yield* provider.invalidate(first)
      yield* expectSeries("rejected", { ...one, "rejections Dropped": 1 })
      yield* provider.invalidate(first)
      yield* expectSeries("rejected", { ...one, "rejections Dropped": 1 })
      for (let rejection = 2; rejection <= 5; rejection++) yield* provider.invalidate(yield* provider.get)
      const last = yield* provider.get
      yield* provider.invalidate(last)
      yield* provider.invalidate(last)
      yield* provider.invalidate(first)
      yield* expectSeries("rejected", {
        "acquisitions Success": 6,
        duration: [6, 0],
        "rejections Dropped": 5,
        "rejections Kept": 2,
        expiry: last.expiresAt.epochMillis / 1000
      })
    }
  )

  it.effect("closing the scope resets the expiry; the in-flight acquisition and later calls do not count", () =>
    labelled(
      "closed",
      Effect.gen(function*() {
        const acquired = { "acquisitions Success": 1, duration: [1, 0] }
        const provider = yield* run(
          (n) => n === 1 ? token("one") : Effect.never,
          ({ provider }) =>
            Effect.gen(function*() {
              yield* provider.get
              assert.isAbove(Number((yield* seriesOf("closed"))["expiry"]), 0)
              yield* Effect.forkDaemon(Effect.exit(provider.refresh))
              yield* settle
              return provider
            })
        )
        yield* settle
        yield* expectSeries("closed", acquired)
        yield* Effect.exit(provider.get)
        yield* Effect.exit(provider.refresh)
        yield* provider.invalidate(yield* token("one"))
        yield* expectSeries("closed", acquired)
      })
    ))

  it.effect("closing a provider does not reset the expiry of another one with the same labels", () =>
    labelled(
      "two providers",
      Effect.gen(function*() {
        const provider = Effect.gen(function*() {
          const source = yield* answering((n) => token(`token-${n}`))
          const scope = yield* Scope.make()
          const context = yield* Layer.buildWithScope(
            Layer.provide(AccessTokenProvider.layer(), source.layer),
            scope
          )
          const { get } = Context.get(context, AccessTokenProvider.AccessTokenProvider)
          return { get, close: Scope.close(scope, Exit.void) }
        })
        const expiry = Effect.map(seriesOf("two providers"), ({ expiry }) => expiry)
        for (const closesFirst of [0, 1]) {
          const providers = [yield* provider, yield* provider] as const
          const tokens = [
            yield* providers[0].get,
            yield* Effect.zipRight(TestClock.adjust("1 seconds"), providers[1].get)
          ]
          yield* providers[closesFirst]?.close ?? assert.fail()
          assert.strictEqual(yield* expiry, Number(tokens[1 - closesFirst]?.expiresAt.epochMillis) / 1000)
          yield* providers[1 - closesFirst]?.close ?? assert.fail()
          assert.strictEqual(yield* expiry, 0)
        }
      })
    ))

  it.effect("series have the labels of the layer, not those of the caller", () =>
    Effect.gen(function*() {
      const build = (store: string) =>
        Effect.gen(function*() {
          const source = yield* answering((n) =>
            Effect.zipRight(Effect.yieldNow(), n === 1 ? token(store) : Effect.fail(outage))
          )
          const provider = AccessTokenProvider.layer().pipe(Layer.provide(source.layer))
          // Everything that the layer builds has the label, its acquisitions too.
          const labelled = Layer.scopedContext(Effect.tagMetrics(Layer.build(provider), "store", store))
          return yield* Effect.provide(AccessTokenProvider.AccessTokenProvider, yield* Layer.build(labelled))
        })
      const [north, south] = yield* Effect.all([build("labels north"), build("labels south")])
      const withRouteLabel = Effect.tagMetrics("route", "/orders")
      yield* withRouteLabel(Metric.increment(Metric.counter("calls_of_a_route")))
      const { expiresAt } = yield* withRouteLabel(north.get)
      yield* withRouteLabel(Effect.all([north.refresh, north.refresh].map(Effect.exit), { concurrency: 2 }))
      yield* withRouteLabel(north.invalidate(yield* token("labels north")))
      yield* expectSeries("labels south", {})
      const after = {
        "acquisitions Success": 1,
        "acquisitions TokenRequestError": 1,
        duration: [2, 0],
        callers_joined: 1,
        "cooldowns Failure": 1,
        "rejections Dropped": 1
      }
      yield* expectSeries("labels north", after)
      assert.isAbove(expiresAt.epochMillis, yield* TestClock.currentTimeMillis)
      yield* south.get
      yield* expectSeries("labels north", after)
      const labelledByRoute = (yield* allSeries).filter(({ labels }) => "route" in labels).map(({ name }) => name)
      assert.include(labelledByRoute, "calls_of_a_route", "control: the caller's own metrics have its label")
      deepStrictEqual(labelledByRoute.filter((name) => name.startsWith("store_api_")), [])
    }).pipe(Effect.scoped))

  metricsTest("exported", (n) => n === 1 ? token("one") : Effect.fail(outage))(
    "an application can read the exported metrics",
    function*({ provider }) {
      const { expiresAt } = yield* provider.get
      yield* Effect.exit(provider.refresh)
      yield* provider.invalidate(yield* token("another"))
      const count = (metric: Metric.Metric.Counter<number>, key: string, value: string) =>
        Effect.map(Metric.value(Metric.tagged(metric, key, value)), (state) => state.count)
      assert.strictEqual(yield* count(AccessTokenMetrics.acquisitions, "outcome", "Success"), 1)
      assert.strictEqual(yield* count(AccessTokenMetrics.acquisitions, "outcome", "TokenRequestError"), 1)
      assert.strictEqual(yield* count(AccessTokenMetrics.cooldowns, "cause", "Failure"), 1)
      assert.strictEqual(yield* count(AccessTokenMetrics.rejections, "outcome", "Dropped"), 0)
      assert.strictEqual((yield* Metric.value(AccessTokenMetrics.acquisitionDuration)).count, 2)
      assert.strictEqual((yield* Metric.value(AccessTokenMetrics.callersJoined)).count, 0)
      assert.strictEqual((yield* Metric.value(AccessTokenMetrics.expiry)).value, expiresAt.epochMillis / 1000)
    }
  )
})

/** Runs this many operations. A fiber yields after 2048. */
const operations = (count: number): Effect.Effect<void> => {
  let left = count
  return Effect.whileLoop({ while: () => left-- > 0, body: () => Effect.void, step: () => undefined })
}

describe("the expiry metric", () => {
  test("is set before a caller can reject the token, wherever the fiber yields", function*() {
    const wrong: Array<number> = []
    let rejected = 0
    for (let count = 1900; count < 2050; count++) {
      yield* labelled(
        `yielding-${count}`,
        run(() => Effect.zipRight(operations(count), token("one")), ({ provider }) =>
          Effect.gen(function*() {
            yield* Effect.flatMap(provider.get, provider.invalidate)
            yield* settle
            if ((yield* provider.status).state === "Empty") rejected++
            const { expiry } = yield* seriesOf(`yielding-${count}`)
            if (expiry !== 0) wrong.push(count)
          }))
      )
    }
    deepStrictEqual([wrong, rejected], [[], 150])
  })
})
