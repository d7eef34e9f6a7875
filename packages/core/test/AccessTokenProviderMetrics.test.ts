import { assert, describe, it } from "@effect/vitest"
import { deepStrictEqual } from "@effect/vitest/utils"
import { AccessTokenError, AccessTokenMetrics, AccessTokenProvider } from "@store-api/core"
import { Array, Deferred, Effect, Fiber, Layer, Metric, MetricKeyType, MetricState, Option, TestClock } from "effect"
import { type Acquisition, aged, down, hour, minute, run } from "./support/pinnedProvider.js"
import { answering, settle, token } from "./support/scriptedSource.js"

/** Short names: `acquisitions Success`, `duration`, … */
const shortName = (name: string, tags: ReadonlyArray<{ readonly key: string; readonly value: string }>) =>
  [
    name.replace(/^store_api_token_(acquisition_(?=duration))?|(_timestamp)?_seconds$/g, ""),
    ...tags.filter(({ key }) => key === "outcome" || key === "cause").map(({ value }) => value)
  ].join(" ")

const valueOf = (state: MetricState.MetricState.Untyped): number | readonly [count: number, sum: number] | undefined =>
  MetricState.isCounterState(state)
    ? Number(state.count)
    : MetricState.isGaugeState(state)
    ? Number(state.value)
    : MetricState.isHistogramState(state)
    ? [state.count, state.sum]
    : undefined

/** All series of this library with this label. The registry is the process's, so each test has a label of its own. */
const seriesOf = (store: string) =>
  Effect.map(Metric.snapshot, (pairs) =>
    Object.fromEntries(
      pairs
        .filter(({ metricKey }) => metricKey.name.startsWith("store_api_token_"))
        .filter(({ metricKey: { tags } }) => tags.some(({ key, value }) => key === "store" && value === store))
        .map(({ metricKey, metricState }) => [shortName(metricKey.name, metricKey.tags), valueOf(metricState)])
    ))

const beginning = {
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

/** What a test reads: all series, of which those are named that are not at their beginning. */
const moved = (store: string, expected: Partial<Record<keyof typeof beginning, unknown>>) =>
  Effect.map(seriesOf(store), (series) => deepStrictEqual<object>(series, { ...beginning, ...expected }))

/** A test under a label, whose last look is before the layer's scope ends. */
const labelled = <A, E, R>(store: string, effect: Effect.Effect<A, E, R>) => Effect.tagMetrics(effect, "store", store)

describe("AccessTokenProvider, what it measures", () => {
  it("an outcome for each error", () => {
    const members = AccessTokenError.AccessTokenError.members.map(({ _tag }) => `acquisitions ${_tag}`)
    const outcomes = Object.keys(beginning).filter((name) => name.startsWith("acquisitions"))
    deepStrictEqual(outcomes.sort(), [...members, "acquisitions Success", "acquisitions Defect"].sort())
  })

  it.effect("nothing has happened yet: every series is there, at 0, under the names that dashboards know", () =>
    labelled(
      "beginning",
      run(() => token("one"), () =>
        Effect.gen(function*() {
          yield* moved("beginning", {})
          const names = (yield* Metric.snapshot)
            .filter(({ metricKey }) =>
              metricKey.tags.some(({ key, value }) => key === "store" && value === "beginning")
            )
            .map(({ metricKey }) => metricKey.name)
          deepStrictEqual([...new Set(names)].sort(), [
            "store_api_token_acquisition_duration_seconds",
            "store_api_token_acquisitions",
            "store_api_token_callers_joined",
            "store_api_token_cooldowns",
            "store_api_token_expiry_timestamp_seconds",
            "store_api_token_rejections"
          ])
        }))
    ))

  it.effect("each metric has a kind, a description and a unit for exporters; durations have buckets", () =>
    labelled(
      "described",
      run(() => token("one"), () =>
        Effect.gen(function*() {
          const described = (yield* Metric.snapshot)
            .filter(({ metricKey: { tags } }) =>
              tags.some(({ key, value }) => key === "store" && value === "described")
            )
            .map(({ metricKey: { description, keyType, name, tags } }) =>
              [
                name.replace("store_api_token_", ""),
                [
                  MetricKeyType.isHistogramKey(keyType)
                    ? keyType.boundaries.values.join(" ")
                    : MetricKeyType.isCounterKey(keyType) && keyType.incremental
                    ? "counts up"
                    : "gauge",
                  Option.getOrUndefined(description),
                  ...tags.filter(({ key }) => key === "unit").map(({ value }) => value)
                ]
              ] as const
            )
          deepStrictEqual(Object.fromEntries(described), {
            acquisitions: ["counts up", "Acquisitions that have ended, by outcome"],
            acquisition_duration_seconds: [
              "0.01 0.025 0.05 0.1 0.25 0.5 1 2.5 5 10 30 Infinity",
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
        }))
    ))

  it.effect("an acquisition: its outcome, its duration by the monotonic clock, the end of its token", () =>
    labelled(
      "success",
      run(
        (n, virtual) => Effect.zipLeft(token(`token-${n}`), virtual.advance(n * 250)),
        ({ provider, virtual }) =>
          Effect.gen(function*() {
            const first = yield* provider.get
            const after = { "acquisitions Success": 1, duration: [1, 0.25], expiry: first.expiresAt.epochMillis / 1000 }
            yield* moved("success", after)
            for (let calls = 0; calls < 100; calls++) yield* provider.get
            yield* provider.current
            yield* provider.status
            yield* virtual.advance(1000)
            yield* moved("success", after)
            const second = yield* provider.refresh
            yield* moved("success", {
              "acquisitions Success": 2,
              duration: [2, 0.75],
              expiry: second.expiresAt.epochMillis / 1000
            })
            // Dead of age: the moment stays, so that whoever looks sees that it is over.
            yield* virtual.advance(2 * hour)
            assert.strictEqual((yield* provider.status).state, "Expired")
            yield* moved("success", {
              "acquisitions Success": 2,
              duration: [2, 0.75],
              expiry: second.expiresAt.epochMillis / 1000
            })
          })
      )
    ))

  const failures: Readonly<Record<string, Acquisition>> = {
    CredentialsError: Effect.fail(new AccessTokenError.CredentialsError({ field: "clientId", reason: "is empty" })),
    TokenRefusedError: Effect.fail(
      new AccessTokenError.TokenRefusedError({ reason: "InvalidClient", status: 401 })
    ),
    TokenRequestError: Effect.fail(down),
    TokenResponseError: Effect.fail(new AccessTokenError.TokenResponseError({ problems: [] })),
    TokenExpiredError: aged("dead", hour, -1),
    Defect: Effect.die("an invented defect")
  }

  it.effect.each(Object.entries(failures))(
    "a failed acquisition without a token held: %s",
    ([outcome, acquire]) =>
      labelled(
        outcome,
        run((_, virtual) => Effect.zipRight(virtual.advance(2000), acquire), ({ provider }) =>
          Effect.gen(function*() {
            yield* Effect.exit(provider.get)
            const after = { [`acquisitions ${outcome}`]: 1, duration: [1, 2], "cooldowns Failure": 1 }
            yield* moved(outcome, after)
            // Turned away by the pause: nothing was acquired.
            yield* Effect.exit(provider.get)
            yield* moved(outcome, after)
          }))
      )
  )

  it.effect("a failed renewal leaves the moment of the token held", () =>
    labelled(
      "renewal",
      run((n) => n === 1 ? token("one") : Effect.fail(down), ({ provider, virtual }) =>
        Effect.gen(function*() {
          const { expiresAt } = yield* provider.get
          yield* virtual.advance(57 * minute)
          yield* provider.get
          yield* settle
          yield* moved("renewal", {
            "acquisitions Success": 1,
            "acquisitions TokenRequestError": 1,
            duration: [2, 0],
            "cooldowns Failure": 1,
            expiry: expiresAt.epochMillis / 1000
          })
        }))
    ))

  it.effect("a renewal without progress is a success, and begins a pause", () =>
    labelled(
      "no progress",
      run(() => aged("same", hour - minute, minute), ({ provider }) =>
        Effect.gen(function*() {
          const { expiresAt } = yield* provider.get
          const expiry = expiresAt.epochMillis / 1000
          yield* moved("no progress", { "acquisitions Success": 1, duration: [1, 0], expiry })
          yield* provider.refresh
          yield* moved("no progress", {
            "acquisitions Success": 2,
            duration: [2, 0],
            "cooldowns NoProgress": 1,
            expiry
          })
        }))
    ))

  it.effect("callers joined: all who wait but the one who started; nobody who is served", () =>
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
              yield* virtual.advance(58 * minute)
              // The renewal is in the background: who starts it and who comes later are served.
              yield* Effect.all([provider.get, provider.get, provider.get])
              yield* joined(0)
              yield* virtual.advance(minute + 45_000)
              const refreshing = yield* Effect.fork(provider.refresh)
              yield* settle
              yield* joined(1)
              // Within the leeway callers wait; one of them is interrupted, and was one.
              const waiting = yield* Effect.forkAll(Array.makeBy(3, () => provider.get))
              const impatient = yield* Effect.fork(provider.get)
              yield* settle
              yield* Fiber.interrupt(impatient)
              yield* joined(5)
              yield* Deferred.succeed(open, undefined)
              yield* Fiber.join(refreshing)
              yield* Fiber.join(waiting)
              yield* joined(5)
            })
        )
      })
    ))

  it.effect("a thousand first callers: one acquisition, and all others joined", () =>
    labelled(
      "stampede",
      run(() => Effect.zipRight(Effect.yieldNow(), token("one")), ({ provider }) =>
        Effect.gen(function*() {
          const [{ expiresAt }] = yield* Effect.all(Array.makeBy(1000, () => provider.get), {
            concurrency: "unbounded"
          })
          yield* moved("stampede", {
            "acquisitions Success": 1,
            duration: [1, 0],
            callers_joined: 999,
            expiry: expiresAt.epochMillis / 1000
          })
        }))
    ))

  it.effect("rejections: dropped, kept within the interval, and none of a token that is gone", () =>
    labelled(
      "rejected",
      run((n) => token(`token-${n}`), ({ provider, virtual }) =>
        Effect.gen(function*() {
          const first = yield* provider.get
          yield* virtual.advance(1000)
          const one = { "acquisitions Success": 1, duration: [1, 0] }
          yield* provider.invalidate(first)
          yield* moved("rejected", { ...one, "rejections Dropped": 1 })
          yield* provider.invalidate(first)
          yield* moved("rejected", { ...one, "rejections Dropped": 1 })
          const second = yield* provider.get
          yield* provider.invalidate(second)
          yield* provider.invalidate(second)
          yield* provider.invalidate(first)
          yield* moved("rejected", {
            "acquisitions Success": 2,
            duration: [2, 0],
            "rejections Dropped": 1,
            "rejections Kept": 2,
            expiry: second.expiresAt.epochMillis / 1000
          })
        }))
    ))

  it.effect("the end of the scope: nothing is held, an acquisition in flight does not count, nor do later callers", () =>
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
        yield* moved("closed", acquired)
        yield* Effect.exit(provider.get)
        yield* Effect.exit(provider.refresh)
        yield* provider.invalidate(yield* token("one"))
        yield* moved("closed", acquired)
      })
    ))

  it.effect("labels are the layer's, whoever calls: two stores, and callers with labels of their own", () =>
    Effect.gen(function*() {
      const build = (store: string) =>
        Effect.gen(function*() {
          const source = yield* answering((n) =>
            Effect.zipRight(Effect.yieldNow(), n === 1 ? token(store) : Effect.fail(down))
          )
          const provider = AccessTokenProvider.layer().pipe(Layer.provide(source.layer))
          // As a layer: what is built within takes the label along, into its flights too.
          const labelled = Layer.scopedContext(Effect.tagMetrics(Layer.build(provider), "store", store))
          return yield* Effect.provide(AccessTokenProvider.AccessTokenProvider, yield* Layer.build(labelled))
        })
      const [north, south] = yield* Effect.all([build("north"), build("south")])
      const asACaller = Effect.tagMetrics("route", "/orders")
      const { expiresAt } = yield* asACaller(north.get)
      yield* asACaller(Effect.all([north.refresh, north.refresh].map(Effect.exit), { concurrency: 2 }))
      yield* asACaller(north.invalidate(yield* token("north")))
      yield* moved("south", {})
      const after = {
        "acquisitions Success": 1,
        "acquisitions TokenRequestError": 1,
        duration: [2, 0],
        callers_joined: 1,
        "cooldowns Failure": 1,
        "rejections Dropped": 1
      }
      yield* moved("north", after)
      assert.isAbove(expiresAt.epochMillis, yield* TestClock.currentTimeMillis)
      yield* south.get
      yield* moved("north", after)
      const ofCallers = (yield* Metric.snapshot)
        .filter(({ metricKey: { tags } }) => tags.some(({ key }) => key === "route"))
        .map(({ metricKey: { name } }) => name)
      assert.isNotEmpty(ofCallers, "the callers' labels are on what Effect counts of their fibers")
      deepStrictEqual(ofCallers.filter((name) => name.startsWith("store_api_")), [])
    }).pipe(Effect.scoped))

  it.effect("the exported values are these: what an application reads of them", () =>
    labelled(
      "exported",
      run((n) => n === 1 ? token("one") : Effect.fail(down), ({ provider }) =>
        Effect.gen(function*() {
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
        }))
    ))
})

/** So many operations of a fiber. After 2048 it lets others run. */
const operations = (count: number): Effect.Effect<void> => {
  let left = count
  return Effect.whileLoop({ while: () => left-- > 0, body: () => Effect.void, step: () => undefined })
}

describe("the end of the token held", () => {
  it.effect("is measured before anybody can reject that token, wherever the fiber lets others run", () =>
    Effect.gen(function*() {
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
    }))
})
