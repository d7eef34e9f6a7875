import { assert, describe } from "@effect/vitest"
import { deepStrictEqual } from "@effect/vitest/utils"
import { type AccessTokenError, AccessTokenProvider } from "@store-api/core"
import { type LiveSteps, schedulerOf } from "@store-api/testing/effectMajor"
import { test } from "@store-api/testing/test"
import {
  Deferred,
  Effect,
  Exit,
  Fiber,
  HashMap,
  Layer,
  Logger,
  LogLevel,
  Option,
  type Tracer
} from "effect"
import {
  heldAcquisitions,
  heldRenewals,
  hour,
  makeSource,
  minute,
  numberedTokens,
  outcomeOf,
  providerTest,
  settle,
  token,
  type Tools,
  withProvider
} from "../support/scriptedSource.js"
import { observed } from "../support/telemetry.js"

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
  describe("a caller that the scheduler parks after any of its operations", () => {
    /** Runs the steps once for each moment at which a caller can be parked. */
    const parkedTest = (
      title: string,
      steps: (tools: Tools & ReturnType<typeof runParked>) => LiveSteps
    ) => {
      test(title, function*() {
        let parked = 0
        for (let operations = 1; operations <= 40; operations++) {
          yield* withProvider(() => undefined, function*(tools) {
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
      "a parked caller fails when the scope closes",
      function*({ calls, close, fiber, interruptions, release }) {
        yield* close
        release()
        assert.strictEqual(yield* Fiber.join(fiber), "Closed")
        yield* settle
        assert.strictEqual(yield* interruptions, yield* calls)
      }
    )

    parkedTest(
      "a parked caller joins the acquisition of another caller",
      function*({ after, startCallers, complete, fiber, expectOutcome, provider, release }) {
        const other = yield* startCallers(1, provider.refresh)
        release()
        yield* settle
        yield* complete(token("shared"))
        yield* expectOutcome(other, "shared")
        assert.strictEqual(yield* Fiber.join(fiber), "shared")
        yield* after(0, { calls: 1 })
      }
    )

    parkedTest(
      "the next caller continues the acquisition of a parked caller that was interrupted",
      function*({ after, startCallers, complete, fiber, expectOutcome, release }) {
        yield* Fiber.interruptFork(fiber)
        yield* settle
        release()
        yield* Fiber.await(fiber)
        const next = yield* startCallers(1)
        yield* complete(token("served"))
        yield* expectOutcome(next, "served")
        yield* after(0, { calls: 1 })
      }
    )
  })

  describe("an acquireRelease whose acquire asks for a token", () => {
    /** Advances the clocks by each of these, with a call of `get` after it. The first token is there before. */
    const passing = (...passed: ReadonlyArray<number>) => ({ provider, virtual }: Tools) =>
      Effect.zipRight(
        provider.get,
        Effect.forEach(passed, (millis, index) =>
          Effect.zipRight(
            virtual.advance(millis),
            index < passed.length - 1
              ? Effect.zipLeft(Effect.fork(provider.get), settle)
              : Effect.void
          ))
      )

    /** The steps that lead to each state. All acquisitions but the first take 15 seconds. */
    const states: Readonly<
      Record<
        string,
        (tools: Tools) => Effect.Effect<unknown, AccessTokenError.AccessTokenError>
      >
    > = {
      Empty: () => Effect.void,
      Fresh: passing(),
      RefreshSoon: passing(57 * minute),
      MustWait: passing(hour - 20_000),
      "MustWait, with a renewal in flight": passing(57 * minute, 3 * minute - 10_000),
      Expired: passing(hour),
      "Expired, with a renewal in flight": passing(hour - 5000, 6000),
      "Expired, with an old renewal in flight": (tools) =>
        Effect.tap(
          passing(hour - 5000, 0)(tools),
          () => Effect.sync(() => tools.virtual.jump(hour))
        )
    }

    const slowly = (n: number) =>
      n === 1 ? token("one") : Effect.zipRight(Effect.sleep("15 seconds"), token(`token-${n}`))

    test.each(Object.entries(states))(
      "an acquireRelease that asks for a token is completed if it is interrupted after any step: %s",
      function*([, reach]) {
        let interrupted = 0
        for (const call of ["get", "refresh"] as const) {
          for (let steps = 0; steps < 30; steps++) {
            const seen: Array<string> = []
            yield* withProvider(slowly, function*(tools) {
              yield* reach(tools)
              const acquire = Effect.sync(() => seen.push("acquire")).pipe(
                Effect.zipRight(Effect.exit(tools.provider[call])),
                Effect.tap((exit) => Effect.sync(() => seen.push(exit._tag)))
              )
              const release = Effect.sync(() => seen.push("release"))
              const caller = yield* Effect.fork(
                Effect.scoped(Effect.acquireRelease(acquire, () => release))
              )
              yield* Effect.repeatN(Effect.yieldNow(), steps)
              yield* Fiber.interruptFork(caller)
              yield* tools.virtual.advance(2 * minute)
              if (Exit.isInterrupted(yield* Fiber.await(caller))) interrupted++
            })
            const all = seen.length === 0 ? [] : ["acquire", "Success", "release"]
            deepStrictEqual(seen, all, `${call}, ${steps} steps`)
          }
        }
        assert.isAbove(interrupted, 0, "control: callers were interrupted")
      }
    )
  })

  test("a caller acquires another token if its token expires before the caller resumes", function*() {
    const callersWait = yield* Deferred.make<void>()
    const script = (n: number) =>
      Effect.zipRight(Deferred.await(callersWait), token(`token-${n}`, "1 seconds"))
    yield* withProvider(
      script,
      function*({ after, startCallers, expectOutcome, provider, virtual }) {
        const waiting = [yield* startCallers(1), yield* startCallers(1, provider.refresh)]
        yield* Deferred.succeed(callersWait, undefined)
        // Yields until the token has arrived. The waiting callers have not read the clock yet.
        while ((yield* provider.status).state === "Empty") yield* Effect.yieldNow()
        virtual.jump(2000)
        for (const caller of waiting) yield* expectOutcome(caller, "token-2")
        yield* after(0, { calls: 2 })
      }
    )
  })

  describe("closing the scope", () => {
    providerTest(
      "closing the scope interrupts the acquisition",
      heldAcquisitions,
      function*({ after, close, interruptions, provider, startCallers }) {
        // An uninterruptible caller does not make the acquisition uninterruptible.
        yield* startCallers(1, Effect.uninterruptible(provider.get))
        yield* close
        assert.strictEqual(yield* interruptions, 1)
        yield* after(0, { calls: 1 })
      }
    )

    providerTest(
      "closing the scope fails waiting callers with Closed",
      heldAcquisitions,
      function*({ close, expectOutcome, provider, startCallers }) {
        const waiting = [
          yield* startCallers(10),
          yield* startCallers(1, Effect.uninterruptible(provider.get))
        ]
        yield* close
        for (const caller of waiting) yield* expectOutcome(caller, "Closed")
      }
    )

    providerTest(
      "every call of a closed provider fails with Closed",
      numberedTokens,
      function*({ after, close, provider }) {
        yield* close
        yield* after(0, { gets: "Closed", refreshes: "Closed", current: "none", calls: 0 })
        yield* provider.invalidate(yield* token("any"))
        deepStrictEqual(yield* provider.status, {
          state: "Closed",
          expiresAt: Option.none(),
          acquiring: false,
          cooldown: Option.none()
        })
      }
    )

    providerTest(
      "closing the scope fails callers of a renewal even if the token is valid",
      heldRenewals(),
      function*({ after, startCallers, close, expectOutcome, provider }) {
        yield* provider.get
        yield* after("3580 seconds", { state: "MustWait" })
        const waiting = [yield* startCallers(1), yield* startCallers(1, provider.refresh)]
        yield* close
        for (const caller of waiting) yield* expectOutcome(caller, "Closed")
        yield* after(0, { gets: "Closed" })
      }
    )

    test("an acquisition that completes after the scope closed does not change the state", function*() {
      const released = yield* Deferred.make<void>()
      const script = () =>
        Effect.uninterruptible(Effect.zipRight(Deferred.await(released), token("late")))
      yield* withProvider(script, function*({ after, startCallers, close, expectOutcome }) {
        const waiting = yield* startCallers(1)
        const closing = yield* Effect.fork(close)
        // The caller fails immediately, although the source hangs.
        yield* expectOutcome(waiting, "Closed")
        yield* Deferred.succeed(released, undefined)
        yield* Fiber.join(closing)
        yield* after(0, { state: "Closed", gets: "Closed" })
      })
    })
  })

  test("an acquisition is recorded without the caller's telemetry context", function*() {
    const spans: Array<Tracer.Span> = []
    const spanEvents: Array<readonly [span: string, event: string]> = []
    const seeEvents = (span: Tracer.Span) => {
      Object.assign(span, { event: (name: string) => spanEvents.push([span.name, name]) })
    }
    const see = (span: Tracer.Span) => {
      spans.push(span)
      seeEvents(span)
    }
    const lines: Array<string> = []
    const loggers = [Logger.make(({ annotations, message, spans }) => {
      lines.push(
        JSON.stringify([
          message,
          [...HashMap.keys(annotations)],
          [...spans].map(({ label }) => label)
        ])
      )
    })]
    const Telemetry = Layer.mergeAll(
      Layer.unwrapEffect(
        Effect.map(Effect.tracer, (tracer) => Layer.setTracer(observed(tracer, see)))
      ),
      // Beside the logger that writes lines as events of the current span.
      Layer.mergeAll(
        Logger.remove(Logger.defaultLogger),
        ...loggers.map((logger) => Logger.add(logger))
      ),
      Logger.minimumLogLevel(LogLevel.Debug)
    )
    const source = yield* makeSource((n) => token(`token-${n}`))
    // The telemetry is merged with the provider's layer, not provided to it. The outer span is not the parent.
    const Provider = Layer.provide(AccessTokenProvider.layer(), source.layer)
    const program = Effect.gen(function*() {
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
    }).pipe(
      Effect.provide(
        Layer.merge(Provider, Telemetry).pipe(Layer.withSpan("application start"))
      )
    )
    yield* Effect.flatMap(
      Effect.tracer,
      (tracer) => Effect.withTracer(program, observed(tracer, seeEvents))
    )
    const acquire = spans.find(({ name }) => name === "AccessTokenProvider.acquire")
    assert.isTrue(acquire !== undefined && Option.isNone(acquire.parent), "a root span")
    deepStrictEqual(
      spanEvents,
      [["control", "control"]],
      "no line of the acquisition is an event of another span"
    )
    assert.isTrue(spans.some(({ name }) => name === "caller"))
    // The acquisition logs in the background.
    deepStrictEqual(lines.sort(), [
      JSON.stringify([["Access token acquired"], ["expiresAt"], []]),
      JSON.stringify([["control"], ["tenant"], ["seen"]])
    ])
  })
})
