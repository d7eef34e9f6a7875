import { assert, describe, it } from "@effect/vitest"
import { deepStrictEqual } from "@effect/vitest/utils"
import { type AccessTokenError, AccessTokenProvider } from "@store-api/core"
import { Deferred, Effect, Exit, Fiber, HashMap, Layer, Logger, LogLevel, Option, type Tracer } from "effect"
import * as tokenPolicy from "../../src/internal/provider/tokenPolicy.js"
import * as tokenState from "../../src/internal/provider/tokenState.js"
import { type LiveSteps, schedulerOf } from "../support/effectLine.js"
import { interruption } from "../support/interruption.js"
import {
  answering,
  heldTest,
  hour,
  minute,
  outcomeOf,
  renewalTest,
  settle,
  timeline,
  token,
  type Tools
} from "../support/scriptedSource.js"
import { observed } from "../support/telemetry.js"
import { test } from "../support/test.js"
import * as VirtualClock from "../support/virtualClock.js"

/** Runs an effect and parks its fiber after this many operations, until `release` is called. */
const runParked = <A, E>(effect: Effect.Effect<A, E>, operations: number) => {
  let parked: (() => void) | undefined
  let released = false
  const scheduler = schedulerOf((done) => !released && done >= operations, (task, asUsual) => {
    if (released) asUsual()
    else parked = task
  })
  return {
    fiber: Effect.runFork(effect, { scheduler }),
    isParked: () => parked !== undefined,
    release: () => {
      released = true
      parked?.()
    }
  }
}

describe("AccessTokenProvider, in-flight acquisition", () => {
  describe("interruption", () => {
    interruption({ every: 6, runs: 60 })

    heldTest(
      "an uninterruptible caller does not make the acquisition uninterruptible",
      function*({ close, interrupted, provider }) {
        const caller = yield* Effect.fork(Effect.uninterruptible(outcomeOf(provider.get)))
        yield* settle
        yield* close
        assert.strictEqual(yield* interrupted, 1)
        assert.strictEqual(yield* Fiber.join(caller), "Closed")
      }
    )
  })

  describe("a caller that the scheduler parks after any of its operations", () => {
    const moments = Array.from({ length: 40 }, (_, operations) => operations + 1)

    /** Runs the steps once for each moment at which a caller can be parked. */
    const parkedTest = (title: string, steps: (tools: Tools & ReturnType<typeof runParked>) => LiveSteps) => {
      test(title, function*() {
        let parked = 0
        for (const operations of moments) {
          yield* timeline(() => undefined, function*(tools) {
            const parking = runParked(outcomeOf(tools.provider.get), operations)
            yield* settle
            if (parking.isParked()) parked++
            yield* Effect.gen(() => steps({ ...tools, ...parking }))
          })
        }
        assert.isAbove(parked, 10, "more than 10 callers were parked")
      })
    }

    parkedTest(
      "fails when the scope closes, and every acquisition is interrupted",
      function*({ calls, close, fiber, interrupted, release }) {
        yield* close
        release()
        assert.strictEqual(yield* Fiber.join(fiber), "Closed")
        yield* settle
        assert.strictEqual(yield* interrupted, yield* calls)
      }
    )

    parkedTest(
      "shares the acquisition that another caller starts before it continues",
      function*({ after, complete, fiber, provider, release }) {
        const other = yield* Effect.fork(outcomeOf(provider.refresh))
        yield* settle
        release()
        yield* settle
        yield* complete(token("shared"))
        deepStrictEqual([yield* Fiber.join(fiber), yield* Fiber.join(other)], ["shared", "shared"])
        yield* after(0, { calls: 1 })
      }
    )

    parkedTest(
      "does not block the next caller when it is interrupted",
      function*({ after, callers, complete, fiber, release }) {
        yield* Fiber.interruptFork(fiber)
        yield* settle
        release()
        yield* Fiber.await(fiber)
        const next = yield* callers(1)
        yield* complete(token("served"))
        deepStrictEqual(yield* Fiber.join(next), ["served"])
        yield* after(0, { calls: 1 })
      }
    )
  })

  describe("an acquireRelease whose acquire asks for a token", () => {
    /** The steps that lead to each state. All acquisitions but the first take 15 seconds. */
    const states: Readonly<
      Record<string, (tools: Tools) => Effect.Effect<unknown, AccessTokenError.AccessTokenError>>
    > = {
      Empty: () => Effect.void,
      Fresh: ({ provider }) => provider.get,
      RefreshSoon: ({ provider, virtual }) => Effect.zipRight(provider.get, virtual.advance(57 * minute)),
      MustWait: ({ provider, virtual }) => Effect.zipRight(provider.get, virtual.advance(hour - 20_000)),
      "MustWait, with a renewal in flight": ({ provider, virtual }) =>
        Effect.zipRight(provider.get, virtual.advance(57 * minute)).pipe(
          Effect.zipRight(provider.get),
          Effect.zipRight(virtual.advance(3 * minute - 10_000))
        ),
      Expired: ({ provider, virtual }) => Effect.zipRight(provider.get, virtual.advance(hour)),
      "Expired, with a renewal in flight": ({ provider, virtual }) =>
        Effect.zipRight(provider.get, virtual.advance(hour - 5000)).pipe(
          Effect.zipRight(Effect.fork(provider.get)),
          Effect.zipRight(virtual.advance(6000))
        ),
      "Expired, with an old renewal in flight": ({ provider, virtual }) =>
        Effect.zipRight(provider.get, virtual.advance(hour - 5000)).pipe(
          Effect.zipRight(Effect.fork(provider.get)),
          Effect.tap(() => Effect.sync(() => virtual.jump(hour)))
        )
    }

    const slowly = (n: number) =>
      n === 1 ? token("one") : Effect.zipRight(Effect.sleep("15 seconds"), token(`token-${n}`))

    it.effect.each(Object.keys(states))(
      "is never torn, interrupted after any step: %s",
      (state) =>
        Effect.gen(function*() {
          let interrupted = 0
          for (const call of ["get", "refresh"] as const) {
            for (let steps = 0; steps < 30; steps++) {
              const seen: Array<string> = []
              yield* timeline(slowly, function*(tools) {
                yield* states[state]?.(tools) ?? assert.fail()
                const acquire = Effect.sync(() => seen.push("acquire")).pipe(
                  Effect.zipRight(Effect.exit(tools.provider[call])),
                  Effect.tap((exit) => Effect.sync(() => seen.push(exit._tag)))
                )
                const release = Effect.sync(() => seen.push("release"))
                const caller = yield* Effect.fork(Effect.scoped(Effect.acquireRelease(acquire, () => release)))
                yield* Effect.repeatN(Effect.yieldNow(), steps)
                yield* Fiber.interruptFork(caller)
                yield* tools.virtual.advance(2 * minute)
                if (Exit.isInterrupted(yield* Fiber.await(caller))) interrupted++
              })
              deepStrictEqual(
                seen,
                seen.length === 0 ? [] : ["acquire", "Success", "release"],
                `${call}, ${steps} steps`
              )
            }
          }
          assert.isAbove(interrupted, 0, "control: callers were interrupted")
        })
    )
  })

  test("callers get the token although the logger throws", function*() {
    const throwing = Logger.make(() => {
      throw new Error("an invented fault of a logger")
    })
    yield* timeline((n) => token(`token-${n}`), function*({ after }) {
      yield* after(0, { gets: "token-1" })
      yield* after(0, { gets: "token-1" })
    }).pipe(Effect.provide(
      Layer.merge(Logger.replace(Logger.defaultLogger, throwing), Logger.minimumLogLevel(LogLevel.Debug))
    ))
  })

  test("a caller whose token expires after it arrived but before the caller resumes acquires another one", function*() {
    const callersWait = yield* Deferred.make<void>()
    const script = (n: number) => Effect.zipRight(Deferred.await(callersWait), token(`token-${n}`, "1 seconds"))
    yield* timeline(script, function*({ after, provider, virtual }) {
      const waiting = yield* Effect.fork(
        Effect.all([outcomeOf(provider.get), outcomeOf(provider.refresh)], { concurrency: "unbounded" })
      )
      yield* settle
      yield* Deferred.succeed(callersWait, undefined)
      // Yields until the token has arrived. The waiting callers have not read the clock yet.
      while ((yield* provider.status).state === "Empty") yield* Effect.yieldNow()
      virtual.jump(2000)
      deepStrictEqual(yield* Fiber.join(waiting), ["token-2", "token-2"])
      yield* after(0, { calls: 2 })
    })
  })

  describe("closing the scope", () => {
    heldTest(
      "interrupts the acquisition, and waiting and later callers fail with Closed, not with an interruption",
      function*({ after, callers, close, interrupted, provider }) {
        const closed = { state: "Closed", expiresAt: Option.none(), acquiring: false, cooldown: Option.none() } as const
        const waiting = yield* callers(10)
        yield* close
        const late = [yield* outcomeOf(provider.get), yield* outcomeOf(provider.refresh)]
        deepStrictEqual([...new Set([...yield* Fiber.join(waiting), ...late])], ["Closed"])
        assert.strictEqual(yield* interrupted, 1)
        yield* after(0, { calls: 1 })
        deepStrictEqual(yield* provider.current, Option.none())
        yield* provider.invalidate(yield* token("any"))
        deepStrictEqual(yield* provider.status, closed)
      }
    )

    renewalTest(
      "fails callers that wait for a renewal with Closed, although the cached token is valid",
      function*({ after, callers, close, provider }) {
        yield* provider.get
        yield* after("3580 seconds", { state: "MustWait" })
        const waiting = yield* callers(1)
        const refreshing = yield* Effect.fork(outcomeOf(provider.refresh))
        yield* settle
        yield* close
        const late = yield* outcomeOf(provider.get)
        deepStrictEqual([...yield* Fiber.join(waiting), yield* Fiber.join(refreshing), late], [
          "Closed",
          "Closed",
          "Closed"
        ])
      }
    )

    test("an acquisition that completes after the scope closed does not change the state", function*() {
      const released = yield* Deferred.make<void>()
      const script = () => Effect.uninterruptible(Effect.zipRight(Deferred.await(released), token("late")))
      yield* timeline(script, function*({ after, callers, close }) {
        const waiting = yield* callers(1)
        const closing = yield* Effect.fork(close)
        // The caller fails immediately, although the source hangs.
        deepStrictEqual(yield* Fiber.join(waiting), ["Closed"])
        yield* Deferred.succeed(released, undefined)
        yield* Fiber.join(closing)
        yield* after(0, { state: "Closed", gets: "Closed" })
      })
    })
  })

  it("the result of an acquisition that is not in flight does not change the state", () => {
    const virtual = VirtualClock.make()
    const policy = tokenPolicy.make()
    const now = { wall: virtual.wall(), monotonic: virtual.monotonic() }
    const started = (state: tokenState.State) => {
      const [outcome, next] = tokenState.refresh(state, now)
      return outcome._tag === "Start" ? { acquisition: outcome.acquisition, next } : assert.fail(outcome._tag)
    }
    const land = (state: tokenState.State, acquisition: tokenState.Acquisition, value: string) => {
      const exit = Effect.runSyncExit(Effect.withClock(token(value), virtual.clock))
      return tokenState.land(policy, { acquisition, exit, chance: 0 })(state, now)
    }
    const first = started(tokenState.initial)
    const [, holding] = land(first.next, first.acquisition, "one")
    assert.isTrue(tokenState.hasValidToken(holding, now), "the result of an in-flight acquisition does")
    const second = started(holding)
    const [, closed] = tokenState.close(second.next)
    for (const state of [tokenState.initial, holding, second.next, closed]) {
      deepStrictEqual(land(state, first.acquisition, "late"), [undefined, state])
    }
  })

  describe("telemetry", () => {
    it.effect("a tracer and a logger in a merged layer record the acquisition without the caller's span and annotations", () => {
      const spans: Array<Tracer.Span> = []
      const spanEvents: Array<readonly [span: string, event: string]> = []
      const see = (span: Tracer.Span) => {
        spans.push(span)
        Object.assign(span, { event: (name: string) => spanEvents.push([span.name, name]) })
      }
      const lines: Array<string> = []
      const loggers = [
        Logger.make(({ annotations, message, spans }) => {
          lines.push(JSON.stringify([message, [...HashMap.keys(annotations)], [...spans].map(({ label }) => label)]))
        })
      ]
      const Telemetry = Layer.mergeAll(
        Layer.unwrapEffect(
          Effect.map(Effect.tracer, (tracer) => Layer.setTracer(observed(tracer, see)))
        ),
        // Beside the logger that writes lines as events of the current span.
        Layer.mergeAll(Logger.remove(Logger.defaultLogger), ...loggers.map((logger) => Logger.add(logger))),
        Logger.minimumLogLevel(LogLevel.Debug)
      )
      return Effect.gen(function*() {
        const source = yield* answering((n) => token(`token-${n}`))
        // The telemetry is merged with the provider's layer, not provided to it. The outer span is not the parent.
        const Provider = Layer.provide(AccessTokenProvider.layer(), source.layer)
        yield* Effect.gen(function*() {
          const provider = yield* AccessTokenProvider.AccessTokenProvider
          yield* provider.get.pipe(
            Effect.withSpan("caller"),
            Effect.annotateLogs("tenant", "caller"),
            Effect.withLogSpan("caller")
          )
          yield* Effect.logDebug("control").pipe(
            Effect.annotateLogs("tenant", "seen"),
            Effect.withLogSpan("seen"),
            Effect.withSpan("control")
          )
        }).pipe(Effect.provide(Layer.merge(Provider, Telemetry).pipe(Layer.withSpan("application start"))))
        const acquire = spans.find(({ name }) => name === "AccessTokenProvider.acquire")
        assert.isTrue(acquire !== undefined && Option.isNone(acquire.parent), "a root span")
        deepStrictEqual(spanEvents, [["control", "control"]], "no line of the acquisition is an event of another span")
        assert.isTrue(spans.some(({ name }) => name === "caller"))
        // The acquisition logs in the background.
        deepStrictEqual(lines.sort(), [
          JSON.stringify([["Access token acquired"], ["expiresAt"], []]),
          JSON.stringify([["control"], ["tenant"], ["seen"]])
        ])
      }).pipe((test) => Effect.flatMap(Effect.tracer, (tracer) => Effect.withTracer(test, observed(tracer, see))))
    })
  })
})
