import { assert, describe, it } from "@effect/vitest"
import { deepStrictEqual } from "@effect/vitest/utils"
import { AccessTokenError, AccessTokenProvider } from "@store-api/core"
import { allSeries, type Series } from "@store-api/testing/effectMajor"
import { test } from "@store-api/testing/test"
import { Context, Effect, Exit, Fiber, Layer, Metric, Option, Scope, TestClock } from "effect"
import {
  type Acquisition,
  hour,
  makeSource,
  minute,
  numberedTokens,
  outage,
  settle,
  token,
  tokenOfAge,
  withProvider
} from "../support/scriptedSource.js"

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
    (all) =>
      all.filter(({ labels, name }) =>
        name.startsWith("store_api_token_") && labels["store"] === store
      )
  )

const seriesOf = (store: string) =>
  Effect.map(
    labelledSeries(store),
    (all) => Object.fromEntries(all.map((series) => [shortName(series), series.value]))
  )

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
const expectSeries = (
  store: string,
  expected: Partial<Record<keyof typeof initial, unknown>>
) =>
  Effect.map(
    seriesOf(store),
    (series) => deepStrictEqual<object>(series, { ...initial, ...expected })
  )

const labelled = <A, E, R>(store: string, effect: Effect.Effect<A, E, R>) =>
  Effect.tagMetrics(effect, "store", store)

/** Declares a test of a provider whose series have this `store` label. */
const metricsTest = (
  title: string,
  store: string,
  ...run: Parameters<typeof withProvider>
): void =>
  test(title, function*() {
    yield* labelled(store, withProvider(...run))
  })

describe("AccessTokenProvider, metrics", () => {
  it("every error has its own acquisition outcome", () => {
    const members = AccessTokenError.AccessTokenError.members.map(({ identifier }) =>
      identifier.replace("@store-api/core/", "acquisitions ")
    )
    const outcomes = Object.keys(initial).filter((name) => name.startsWith("acquisitions"))
    deepStrictEqual(
      outcomes.sort(),
      [...members, "acquisitions Success", "acquisitions Defect"].sort()
    )
  })

  metricsTest(
    "every series has its documented name, type, description, unit",
    "initial",
    () => token("one"),
    function*() {
      yield* expectSeries("initial", {})
      const described = (yield* labelledSeries("initial")).map((
        { description, kind, labels, name }
      ) =>
        [name.replace("store_api_token_", ""), [
          typeof kind === "string" ? kind : kind.join(" "),
          description,
          ...Option.toArray(Option.fromNullable(labels["unit"]))
        ]] as const
      )
      const buckets = "0.01 0.025 0.05 0.1 0.25 0.5 1 2.5 5 10 30"
      deepStrictEqual(Object.fromEntries(described), {
        acquisitions: ["counts up", "Acquisitions that have ended, by outcome"],
        acquisition_duration_seconds: [buckets, "Duration of acquisitions, in seconds", "s"],
        callers_joined: ["counts up", "Callers that joined an acquisition in flight"],
        rejections: ["counts up", "Rejections of the cached token, by outcome"],
        cooldowns: ["counts up", "Cooldowns, by cause"],
        expiry_timestamp_seconds: [
          "gauge",
          "Expiry of the cached token, in seconds since the epoch, or 0",
          "s"
        ]
      })
    }
  )

  metricsTest(
    "an acquisition changes the series of its outcome, its duration, its token's expiry",
    "success",
    (n, virtual) => Effect.zipLeft(token(`token-${n}`), virtual.advance(n * 250)),
    function*({ provider, virtual }) {
      const first = yield* provider.get
      const after = {
        "acquisitions Success": 1,
        duration: [1, 0.25],
        expiry: first.expiresAt.epochMillis / 1000
      }
      yield* expectSeries("success", after)
      for (const call of [provider.get, provider.current, provider.status]) yield* call
      yield* virtual.advance(1000)
      yield* expectSeries("success", after)
      const second = yield* provider.refresh
      // The expiry stays after the token expired, so that dashboards show an expiry in the past.
      for (const passed of [0, 2 * hour]) {
        yield* virtual.advance(passed)
        yield* expectSeries("success", {
          "acquisitions Success": 2,
          duration: [2, 0.75],
          expiry: second.expiresAt.epochMillis / 1000
        })
      }
    }
  )

  const failures: Readonly<Record<string, Acquisition>> = {
    CredentialsError: Effect.fail(
      new AccessTokenError.CredentialsError({ field: "clientId", reason: "is empty" })
    ),
    TokenRefusedError: Effect.fail(
      new AccessTokenError.TokenRefusedError({ reason: "InvalidClient", httpStatus: 401 })
    ),
    TokenRequestError: Effect.fail(outage),
    TokenResponseError: Effect.fail(new AccessTokenError.TokenResponseError({ problems: [] })),
    TokenExpiredError: tokenOfAge("expired", hour, -1),
    Defect: Effect.die("an invented defect")
  }

  it.effect.each(Object.entries(failures))(
    "a failed acquisition counts its outcome: %s",
    ([outcome, acquire]) =>
      labelled(
        outcome,
        withProvider(
          (_, virtual) => Effect.zipRight(virtual.advance(2000), acquire),
          function*({ provider }) {
            // During the cooldown no acquisition starts.
            for (const call of [provider.get, provider.get]) {
              yield* Effect.exit(call)
              yield* expectSeries(outcome, {
                [`acquisitions ${outcome}`]: 1,
                duration: [1, 2],
                "cooldowns Failure": 1
              })
            }
          }
        )
      )
  )

  metricsTest(
    "a failed renewal does not change the expiry of the cached token",
    "renewal",
    (n) => n === 1 ? token("one") : Effect.fail(outage),
    function*({ after, provider }) {
      const { expiresAt } = yield* provider.get
      yield* after(57 * minute, { gets: "one" })
      yield* expectSeries("renewal", {
        "acquisitions Success": 1,
        "acquisitions TokenRequestError": 1,
        duration: [2, 0],
        "cooldowns Failure": 1,
        expiry: expiresAt.epochMillis / 1000
      })
    }
  )

  metricsTest(
    "a renewal without progress counts as a success with a cooldown",
    "no progress",
    () => tokenOfAge("same", hour - minute, minute),
    function*({ after, provider }) {
      const { expiresAt } = yield* provider.get
      const expiry = expiresAt.epochMillis / 1000
      yield* expectSeries("no progress", {
        "acquisitions Success": 1,
        duration: [1, 0],
        expiry
      })
      yield* after(0, { refreshes: "same", cooldown: 0 })
      const counted = {
        "acquisitions Success": 2,
        duration: [2, 0],
        "cooldowns NoProgress": 1
      }
      yield* expectSeries("no progress", { ...counted, expiry })
    }
  )

  metricsTest(
    "callers_joined counts the callers that join an acquisition",
    "joined",
    () => undefined,
    function*({ startCallers, complete, provider, virtual }) {
      const joined = (count: number) =>
        Effect.map(
          seriesOf("joined"),
          (series) => assert.strictEqual(series["callers_joined"], count)
        )
      yield* startCallers(1000)
      yield* complete(token("one"))
      yield* joined(999)
      yield* virtual.advance(59 * minute + 20_000)
      // The renewal runs in the background: all three callers get the cached token.
      yield* startCallers(3)
      yield* joined(999)
      yield* virtual.advance(20_000)
      yield* startCallers(1, provider.refresh)
      yield* joined(1000)
      // Within the leeway callers wait. The interrupted one counts, too.
      yield* startCallers(3)
      yield* Fiber.interrupt(yield* startCallers(1))
      yield* joined(1004)
      yield* complete(token("two"))
      yield* joined(1004)
    }
  )

  metricsTest(
    "a rejection of the cached token counts as Dropped",
    "dropped",
    numberedTokens,
    function*({ provider }) {
      yield* provider.invalidate(yield* provider.get)
      yield* expectSeries("dropped", {
        "acquisitions Success": 1,
        duration: [1, 0],
        "rejections Dropped": 1
      })
    }
  )

  metricsTest(
    "a rejection without budget counts as Kept",
    "kept",
    numberedTokens,
    function*({ provider }) {
      for (let rejection = 0; rejection < 5; rejection++) {
        yield* provider.invalidate(yield* provider.get)
      }
      const last = yield* provider.get
      for (const token of [last, last]) yield* provider.invalidate(token)
      yield* expectSeries("kept", {
        "acquisitions Success": 6,
        duration: [6, 0],
        "rejections Dropped": 5,
        "rejections Kept": 2,
        expiry: last.expiresAt.epochMillis / 1000
      })
    }
  )

  metricsTest(
    "a rejection of an older token is not counted",
    "older",
    numberedTokens,
    function*({ provider, virtual }) {
      const older = yield* provider.get
      yield* virtual.advance(1000)
      const { expiresAt } = yield* provider.refresh
      yield* provider.invalidate(older)
      yield* expectSeries("older", {
        "acquisitions Success": 2,
        duration: [2, 0],
        expiry: expiresAt.epochMillis / 1000
      })
    }
  )

  metricsTest(
    "nothing counts after the provider was closed",
    "closed",
    (n) => n === 1 ? token("one") : undefined,
    function*({ startCallers, close, provider }) {
      const one = yield* provider.get
      assert.isAbove(Number((yield* seriesOf("closed"))["expiry"]), 0)
      yield* startCallers(1, provider.refresh)
      yield* close
      for (const call of [provider.get, provider.refresh]) yield* Effect.exit(call)
      yield* provider.invalidate(one)
      yield* expectSeries("closed", { "acquisitions Success": 1, duration: [1, 0] })
    }
  )

  test("closing a provider does not reset the expiry of another one with the same labels", function*() {
    const provider = Effect.gen(function*() {
      const source = yield* makeSource((n) => token(`token-${n}`))
      const scope = yield* Scope.make()
      const context = yield* Layer.buildWithScope(
        Layer.provide(AccessTokenProvider.layer(), source.layer),
        scope
      )
      yield* TestClock.adjust("1 seconds")
      const { expiresAt } = yield* Context.get(
        context,
        AccessTokenProvider.AccessTokenProvider
      ).get
      return { close: Scope.close(scope, Exit.void), expiry: expiresAt.epochMillis / 1000 }
    })
    const expiry = Effect.map(seriesOf("two providers"), ({ expiry }) => expiry)
    for (const closesFirst of [0, 1]) {
      yield* labelled(
        "two providers",
        Effect.gen(function*() {
          const [one, two] = [yield* provider, yield* provider]
          const [first, second] = closesFirst === 0 ? [one, two] : [two, one]
          yield* first.close
          assert.strictEqual(yield* expiry, second.expiry)
          yield* second.close
          assert.strictEqual(yield* expiry, 0)
        })
      )
    }
  })

  test("series have the labels of the layer", function*() {
    const build = (store: string) =>
      Effect.gen(function*() {
        const source = yield* makeSource((n) =>
          Effect.zipRight(Effect.yieldNow(), n === 1 ? token(store) : Effect.fail(outage))
        )
        const provider = AccessTokenProvider.layer().pipe(Layer.provide(source.layer))
        // Everything that the layer builds has the label, its acquisitions too.
        const labelled = Layer.scopedContext(
          Effect.tagMetrics(Layer.build(provider), "store", store)
        )
        return yield* Effect.provide(
          AccessTokenProvider.AccessTokenProvider,
          yield* Layer.build(labelled)
        )
      })
    const [north, south] = yield* Effect.all([build("labels north"), build("labels south")])
    const withRouteLabel = Effect.tagMetrics("route", "/orders")
    yield* withRouteLabel(Metric.increment(Metric.counter("calls_of_a_route")))
    yield* withRouteLabel(north.get)
    yield* withRouteLabel(
      Effect.all([north.refresh, north.refresh].map(Effect.exit), { concurrency: 2 })
    )
    yield* withRouteLabel(north.invalidate(yield* token("labels north")))
    yield* expectSeries("labels south", {})
    yield* south.get
    yield* expectSeries("labels north", {
      "acquisitions Success": 1,
      "acquisitions TokenRequestError": 1,
      duration: [2, 0],
      callers_joined: 1,
      "cooldowns Failure": 1,
      "rejections Dropped": 1
    })
    const labelledByRoute = (yield* allSeries).filter(({ labels }) => "route" in labels).map((
      { name }
    ) => name)
    assert.include(
      labelledByRoute,
      "calls_of_a_route",
      "control: the caller's own metrics have its label"
    )
    deepStrictEqual(labelledByRoute.filter((name) => name.startsWith("store_api_")), [])
  })

  test("the expiry is set before a caller can reject the token, wherever the fiber yields", function*() {
    /** Runs this many operations. A fiber yields after 2048. */
    const operations = (count: number): Effect.Effect<void> => {
      let left = count
      return Effect.whileLoop({
        while: () => left-- > 0,
        body: () => Effect.void,
        step: () => undefined
      })
    }
    for (let count = 1900; count < 2050; count++) {
      const store = `yielding-${count}`
      const script = () => Effect.zipRight(operations(count), token("one"))
      yield* labelled(
        store,
        withProvider(script, function*({ provider }) {
          yield* Effect.flatMap(provider.get, provider.invalidate)
          yield* settle
          assert.strictEqual((yield* provider.status).state, "Empty")
          assert.strictEqual((yield* seriesOf(store))["expiry"], 0, store)
        })
      )
    }
  })
})
