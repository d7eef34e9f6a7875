import { assert, describe, it } from "@effect/vitest"
import { deepStrictEqual } from "@effect/vitest/utils"
import { type AccessToken, AccessTokenError, AccessTokenProvider } from "@store-api/core"
import {
  Cause,
  Context,
  Deferred,
  Effect,
  Exit,
  Fiber,
  HashMap,
  Layer,
  Logger,
  LogLevel,
  Option,
  Scope,
  TestClock,
  type Tracer
} from "effect"
import { schedulerOf } from "../support/effectLine.js"
import { interruption } from "../support/interruption.js"
import {
  answering,
  hour,
  layer as scripted,
  minute,
  run,
  ScriptedSource,
  settle,
  token,
  type Tools,
  valueOf
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

    test("an uninterruptible caller does not make the acquisition uninterruptible", function*() {
      const scope = yield* Scope.make()
      const context = yield* Layer.buildWithScope(Layer.provideMerge(AccessTokenProvider.layer(), scripted), scope)
      const provider = yield* Effect.provide(AccessTokenProvider.AccessTokenProvider, context)
      const source = yield* Effect.provide(ScriptedSource, context)
      const caller = yield* Effect.fork(Effect.uninterruptible(Effect.exit(provider.get)))
      yield* source.next
      yield* Scope.close(scope, Exit.void)
      assert.strictEqual(yield* source.interrupted, 1)
      assert.isTrue(Exit.isFailure(yield* Fiber.join(caller)))
    })
  })

  describe("a caller that the scheduler parks after any of its operations", () => {
    const parkedAt = (operations: number) =>
      Effect.gen(function*() {
        const scope = yield* Scope.make()
        const context = yield* Layer.buildWithScope(Layer.provideMerge(AccessTokenProvider.layer(), scripted), scope)
        const provider = yield* Effect.provide(AccessTokenProvider.AccessTokenProvider, context)
        const source = yield* Effect.provide(ScriptedSource, context)
        const parking = runParked(provider.get, operations)
        yield* settle
        return { scope, provider, source, parking, caller: parking.fiber }
      })

    const moments = Array.from({ length: 40 }, (_, operations) => operations + 1)

    test("fails when the scope closes, and every acquisition is interrupted", function*() {
      let parked = 0
      for (const operations of moments) {
        const { caller, parking, scope, source } = yield* parkedAt(operations)
        if (parking.isParked()) parked++
        yield* Scope.close(scope, Exit.void)
        parking.release()
        const exit = yield* Fiber.await(caller)
        assert.isTrue(Exit.isFailure(exit), `parked after ${operations} operations`)
        yield* settle
        assert.strictEqual(yield* source.interrupted, yield* source.calls, `parked after ${operations} operations`)
      }
      assert.isAbove(parked, 10, "more than 10 callers were parked")
    })

    test("shares the acquisition that another caller starts before it continues", function*() {
      for (const operations of moments) {
        const { caller, parking, provider, scope, source } = yield* parkedAt(operations)
        const other = yield* Effect.fork(provider.refresh)
        yield* settle
        parking.release()
        yield* settle
        yield* Effect.flatMap(source.next, (call) => call.complete(token("shared")))
        const tokens = [yield* Fiber.join(caller), yield* Fiber.join(other)].map(valueOf)
        deepStrictEqual(tokens, ["shared", "shared"], `parked after ${operations} operations`)
        assert.strictEqual(yield* source.calls, 1)
        yield* Scope.close(scope, Exit.void)
      }
    })

    test("does not block the next caller when it is interrupted", function*() {
      for (const operations of moments) {
        const { caller, parking, provider, scope, source } = yield* parkedAt(operations)
        yield* Fiber.interruptFork(caller)
        yield* settle
        parking.release()
        yield* Fiber.await(caller)
        const next = yield* Effect.fork(provider.get)
        yield* settle
        yield* Effect.flatMap(source.next, (call) => call.complete(token("served")))
        assert.strictEqual(valueOf(yield* Fiber.join(next)), "served", `parked after ${operations} operations`)
        assert.strictEqual(yield* source.calls, 1)
        yield* Scope.close(scope, Exit.void)
      }
    })
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
              yield* run(slowly, (tools) =>
                Effect.gen(function*() {
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
                }))
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

  // A TokenSource written in plain JavaScript may return a value that is not a token.
  const notAToken = JSON.parse("{}") as AccessToken.AccessToken

  test("a source that returns a value that is not a token causes a defect for waiting callers, and the next call succeeds", function*() {
    const source = yield* answering((n) => n === 1 ? Effect.succeed(notAToken) : token("works"))
    yield* Effect.gen(function*() {
      const provider = yield* AccessTokenProvider.AccessTokenProvider
      const exit = yield* Effect.exit(provider.get)
      assert.isTrue(Exit.isFailure(exit) && Cause.isDie(exit.cause))
      assert.isFalse((yield* provider.status).acquiring)
      yield* TestClock.adjust("1 seconds")
      assert.strictEqual(valueOf(yield* provider.get), "works")
    }).pipe(Effect.provide(Layer.provide(AccessTokenProvider.layer(), source.layer)))
  })

  test("callers get the token although the logger throws", function*() {
    const source = yield* answering((n) => token(`token-${n}`))
    const throwing = Logger.replace(
      Logger.defaultLogger,
      Logger.make(() => {
        throw new Error("an invented fault of a logger")
      })
    )
    yield* Effect.gen(function*() {
      const provider = yield* AccessTokenProvider.AccessTokenProvider
      assert.strictEqual(valueOf(yield* provider.get), "token-1")
      assert.strictEqual(valueOf(yield* provider.get), "token-1")
    }).pipe(
      Effect.provide(Layer.provide(AccessTokenProvider.layer(), source.layer)),
      Effect.provide(Layer.merge(throwing, Logger.minimumLogLevel(LogLevel.Debug)))
    )
  })

  test("a caller whose token expires after it arrived but before the caller resumes acquires another one", function*() {
    const virtual = VirtualClock.make()
    const callerWaits = yield* Deferred.make<void>()
    const source = yield* answering((n) =>
      Effect.zipRight(Deferred.await(callerWaits), Effect.withClock(token(`token-${n}`, "1 seconds"), virtual.clock))
    )
    yield* Effect.gen(function*() {
      const provider = yield* AccessTokenProvider.AccessTokenProvider
      const waiter = yield* Effect.fork(
        Effect.all([provider.get, provider.refresh], { concurrency: "unbounded" })
      )
      yield* settle
      yield* Deferred.succeed(callerWaits, undefined)
      // Yields until the token has arrived. The waiting caller has not read the clock yet.
      while ((yield* provider.status).state === "Empty") yield* Effect.yieldNow()
      virtual.jump(2000)
      deepStrictEqual((yield* Fiber.join(waiter)).map(valueOf), ["token-2", "token-2"])
      assert.strictEqual(yield* source.calls, 2)
    }).pipe(
      Effect.provide(Layer.provide(AccessTokenProvider.layer(), source.layer)),
      Effect.withClock(virtual.clock)
    )
  })

  describe("closing the scope", () => {
    test("interrupts the acquisition, and waiting and later callers fail with Closed, not with an interruption", function*() {
      const scope = yield* Scope.make()
      const context = yield* Layer.buildWithScope(Layer.provideMerge(AccessTokenProvider.layer(), scripted), scope)
      const provider = yield* Effect.provide(AccessTokenProvider.AccessTokenProvider, context)
      const source = yield* Effect.provide(ScriptedSource, context)
      const waiters = yield* Effect.fork(
        Effect.all(Array.from({ length: 10 }, () => Effect.flip(provider.get)), { concurrency: "unbounded" })
      )
      yield* source.next
      yield* settle
      yield* Scope.close(scope, Exit.void)
      const late = [yield* Effect.flip(provider.get), yield* Effect.flip(provider.refresh)]
      for (const error of [...(yield* Fiber.join(waiters)), ...late]) {
        assert.instanceOf(error, AccessTokenError.TokenRequestError)
        assert.strictEqual(error.reason, "Closed")
      }
      assert.strictEqual(yield* source.interrupted, 1)
      assert.strictEqual(yield* source.calls, 1)
      deepStrictEqual(yield* provider.status, {
        state: "Closed",
        expiresAt: Option.none(),
        acquiring: false,
        cooldown: Option.none()
      })
      deepStrictEqual(yield* provider.current, Option.none())
      yield* provider.invalidate(yield* token("any"))
    })

    test("fails callers that wait for a renewal with Closed, although the cached token is valid", function*() {
      const scope = yield* Scope.make()
      const context = yield* Layer.buildWithScope(Layer.provideMerge(AccessTokenProvider.layer(), scripted), scope)
      const provider = yield* Effect.provide(AccessTokenProvider.AccessTokenProvider, context)
      const source = yield* Effect.provide(ScriptedSource, context)
      const first = yield* Effect.fork(provider.get)
      yield* Effect.flatMap(source.next, (call) => call.complete(token("one")))
      yield* Fiber.join(first)
      yield* TestClock.adjust("3580 seconds")
      const inMustWait = yield* Effect.fork(Effect.flip(provider.get))
      yield* source.next
      const refreshing = yield* Effect.fork(Effect.flip(provider.refresh))
      yield* settle
      yield* Scope.close(scope, Exit.void)
      const late = yield* Effect.flip(provider.get)
      for (const error of [yield* Fiber.join(inMustWait), yield* Fiber.join(refreshing), late]) {
        assert.strictEqual(error._tag === "TokenRequestError" && error.reason, "Closed")
      }
    })
  })

  test("an acquisition that completes after the scope closed does not change the state", function*() {
    const released = yield* Deferred.make<void>()
    const source = yield* answering((n) =>
      Effect.uninterruptible(Effect.zipRight(Deferred.await(released), token(`token-${n}`)))
    )
    const scope = yield* Scope.make()
    const context = yield* Layer.buildWithScope(Layer.provide(AccessTokenProvider.layer(), source.layer), scope)
    const provider = yield* Effect.provide(AccessTokenProvider.AccessTokenProvider, context)
    const waiter = yield* Effect.fork(Effect.flip(provider.get))
    yield* settle
    const closing = yield* Effect.fork(Scope.close(scope, Exit.void))
    assert.strictEqual(
      (yield* Fiber.join(waiter))._tag,
      "TokenRequestError",
      "fails immediately, although the source hangs"
    )
    yield* Deferred.succeed(released, undefined)
    yield* Fiber.join(closing)
    assert.strictEqual((yield* provider.status).state, "Closed")
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

  it("get fails with a typed error after the runtime of the layer was closed", () =>
    Effect.runPromise(
      Effect.gen(function*() {
        const source = yield* answering((n) => token(`token-${n}`))
        const provider = yield* Effect.scoped(
          Effect.map(
            Layer.build(Layer.provide(AccessTokenProvider.layer(), source.layer)),
            (context) => Context.get(context, AccessTokenProvider.AccessTokenProvider)
          )
        )
        const exit = yield* Effect.exit(provider.get)
        assert.isTrue(Exit.isFailure(exit) && Option.isSome(Cause.failureOption(exit.cause)))
      })
    ))
})
