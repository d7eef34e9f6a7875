import { assert, it } from "@effect/vitest"
import { deepStrictEqual } from "@effect/vitest/utils"
import {
  AccessToken,
  AccessTokenError,
  AccessTokenProvider,
  TokenSource
} from "@store-api/core"
import { isFailure } from "@store-api/testing/effectMajor"
import { asyncProperty } from "@store-api/testing/test"
import * as VirtualClock from "@store-api/testing/virtualClock"
import {
  Cause,
  Clock,
  DateTime,
  Deferred,
  Effect,
  Exit,
  FastCheck as fc,
  Fiber,
  Layer,
  Logger,
  LogLevel,
  Option,
  Redacted,
  Scope
} from "effect"
import { settle } from "./scriptedSource.js"

const second = 1000
const hour = 3600 * second

/** A record with this tag and these fields. */
const tagged = <const Tag extends string, Fields = unknown>(
  _tag: Tag,
  fields: { readonly [Key in keyof Fields]: fc.Arbitrary<Fields[Key]> } = {} as never
) =>
  fc.record({ ...fields, _tag: fc.constant(_tag) }) as fc.Arbitrary<
    Fields & { readonly _tag: Tag }
  >

/** What an arbitrary generates. */
type Generated<Arbitrary> = Arbitrary extends fc.Arbitrary<infer Value> ? Value : never

const delay = fc.constantFrom(0, 0, 200, 5 * second, 40 * second)

const retryAfter = 20 * second

type Fault =
  | "Transport"
  | "InvalidClient"
  | "RateLimited"
  | "RetryAfter"
  | "Defect"
  | "SelfInterrupt"

/** How an acquisition fails, at this time of the wall clock. */
const faults: Readonly<
  Record<Fault, (wall: number) => Effect.Effect<never, AccessTokenError.AccessTokenError>>
> = {
  Transport: () =>
    Effect.fail(new AccessTokenError.TokenRequestError({ reason: "Transport", attempts: 1 })),
  InvalidClient: () =>
    Effect.fail(
      new AccessTokenError.TokenRefusedError({ reason: "InvalidClient", httpStatus: 401 })
    ),
  RateLimited: () =>
    Effect.fail(
      new AccessTokenError.TokenRefusedError({ reason: "RateLimited", httpStatus: 429 })
    ),
  RetryAfter: (wall) =>
    Effect.fail(
      new AccessTokenError.TokenRefusedError({
        reason: "RateLimited",
        httpStatus: 429,
        retryAt: DateTime.unsafeMake(wall + retryAfter)
      })
    ),
  Defect: () => Effect.die("an invented defect"),
  SelfInterrupt: () => Effect.interrupt
}

/** How the endpoint behaves until the next `Endpoint` step. */
const mode = fc.oneof(
  {
    weight: 4,
    arbitrary: tagged("Up", {
      lifetime: fc.constantFrom(0, second, 2 * second, 30 * second, 600 * second, hour),
      delay
    })
  },
  {
    weight: 3,
    arbitrary: tagged("Down", {
      fault: fc.constantFrom(...Object.keys(faults) as Array<Fault>),
      delay
    })
  },
  { weight: 1, arbitrary: tagged("Hanging", { interruptible: fc.boolean() }) },
  { weight: 2, arbitrary: tagged("Repeating") }
)

type Mode = Generated<typeof mode>

const advance = fc.oneof(
  fc.constantFrom(
    1,
    100,
    750,
    second,
    5 * second,
    60 * second,
    300 * second,
    3300 * second,
    hour
  ),
  fc.integer({ min: 1, max: 2 * hour })
)

/** Remaining lifetimes to which an `Approach` step advances: within each state of the token, and at the boundaries. */
const left = fc.constantFrom(
  ...[0, 0.001, 1, 20, 29, 100, 200, 239, 301].map((seconds) => seconds * second)
)

const jump = fc.oneof(
  fc.constantFrom(-24 * hour, -hour, -second - 1, -second, second, hour, 24 * hour),
  fc.integer({ min: -2 * hour, max: 2 * hour })
)

/** Calls at a fixed rate. The API either accepts or rejects all of them. */
const loop = tagged("Loop", {
  interval: fc.constantFrom(
    10,
    100,
    400,
    900,
    1100,
    2 * second,
    5 * second,
    30 * second,
    600 * second
  ),
  calls: fc.integer({ min: 2, max: 12 }),
  rejected: fc.boolean()
})

const step = fc.oneof(
  { weight: 8, arbitrary: tagged("Get") },
  { weight: 1, arbitrary: tagged("Refresh") },
  { weight: 3, arbitrary: tagged("Invalidate", { which: fc.nat({ max: 3 }) }) },
  { weight: 8, arbitrary: tagged("Advance", { millis: advance }) },
  { weight: 6, arbitrary: tagged("Approach", { left }) },
  { weight: 2, arbitrary: tagged("Jump", { millis: jump }) },
  { weight: 2, arbitrary: tagged("Freeze", { millis: advance }) },
  { weight: 2, arbitrary: loop },
  { weight: 4, arbitrary: tagged("Endpoint", { mode }) },
  { weight: 2, arbitrary: tagged("Interrupt", { which: fc.nat({ max: 5 }) }) }
)

type Step = Generated<typeof step>

/** The shortest cooldown, with jitter, after this many failures in a row. */
const shortest = (failures: number, max: number) =>
  0.75 * Math.min(second * 2 ** (failures - 1), max)

const longestAcquisition = 120 * second

/** How old a renewal is, by the clock that advanced further, when a caller without a valid token ends it. */
const longestRenewal = 30 * second

/** What the model records of the last acquisition. The model follows the specification, not the code. */
interface Ended {
  readonly at: number
  readonly wall: number
  /** The cached token was valid when the acquisition began, and a `get` began it. */
  readonly renewal: boolean
  readonly failures: number
  /** The remaining lifetime of a token that the endpoint returned again, or that expires no later. Otherwise 0. */
  readonly leftOfRepeated: number
  readonly fault: Option.Option<Fault | "DeadOnArrival" | "Timeout">
}

interface Attempt {
  readonly started: number
  readonly startedWall: number
  readonly renewal: boolean
  isOver: boolean
}

const leastTime = ({ renewal }: Attempt) => renewal ? longestRenewal : longestAcquisition

const check = (steps: ReadonlyArray<Step>) =>
  Effect.gen(function*() {
    const virtual = VirtualClock.make()
    const released = yield* Deferred.make<void>()
    /** When each token ends, by the monotonic clock. */
    const ends = new Map<string, number>()
    let mode: Mode = { _tag: "Up", lifetime: hour, delay: 0 }
    let last: AccessToken.AccessToken | undefined
    const violations: Array<unknown> = []
    // A clock jump or a rejection may invalidate the cached token while a caller waits for its renewal.
    let disturbances = 0
    let clocksMoved = false
    let frozen = 0
    let droppedTokens = 0
    let inFlight = 0
    let requests = 0
    let refreshing = false
    // A caller of refresh that has waited for a renewal may start its own acquisition.
    let waitingRefreshes = 0
    let ended: Ended = {
      at: -Infinity,
      wall: -Infinity,
      renewal: false,
      failures: 0,
      leftOfRepeated: 0,
      fault: Option.none()
    }
    let stateNow: Effect.Effect<AccessTokenProvider.ProviderStatus["state"]> = Effect.succeed(
      "Empty"
    )

    /** Records a violation until the end. The provider would handle an exception in its source as a defect. */
    const expect = (assertion: () => void) => {
      try {
        assertion()
      } catch (violation) {
        violations.push(violation)
      }
    }

    const isLive = (token: AccessToken.AccessToken) =>
      virtual.wall() < token.expiresAt.epochMillis &&
      virtual.wall() >= token.acquiredAt.epochMillis - second &&
      virtual.monotonic() < (ends.get(Redacted.value(token.value)) ?? 0)

    const newToken = (lifetime: number) =>
      Effect.map(Clock.currentTimeMillis, (now) => {
        const value = `token-${ends.size + 1}`
        ends.set(value, virtual.monotonic() + lifetime)
        return new AccessToken.AccessToken({
          value: Redacted.make(value),
          acquiredAt: DateTime.unsafeMake(now),
          expiresAt: DateTime.unsafeMake(now + lifetime)
        })
      })

    const respond = (
      mode: Mode
    ): Effect.Effect<AccessToken.AccessToken, AccessTokenError.AccessTokenError> => {
      switch (mode._tag) {
        case "Up":
          return Effect.zipLeft(newToken(mode.lifetime), Effect.sleep(mode.delay))
        case "Down":
          return Effect.zipRight(
            Effect.sleep(mode.delay),
            Effect.suspend(() => faults[mode.fault](virtual.wall()))
          )
        case "Hanging":
          return Effect.zipRight(
            mode.interruptible
              ? Effect.never
              : Effect.uninterruptible(Deferred.await(released)),
            newToken(hour)
          )
        case "Repeating":
          return last !== undefined && isLive(last) ? Effect.succeed(last) : newToken(hour)
      }
    }

    /** No request is sent within the shortest cooldown that applies to this state of the token. */
    const assertNotCoolingDown = (state: AccessTokenProvider.ProviderStatus["state"]) => {
      if (refreshing || waitingRefreshes > 0) return
      const since = Math.max(virtual.monotonic() - ended.at, virtual.wall() - ended.wall)
      const isValid = state !== "Empty" && state !== "Expired"
      if (Option.isSome(ended.fault)) {
        const fault = ended.fault.value
        if (fault === "RetryAfter") {
          assert.isAtLeast(since, retryAfter, "a request before Retry-After")
        }
        if (ended.renewal && !isValid) {
          return
        }
        const refused = ["InvalidClient", "RateLimited", "RetryAfter"].includes(fault)
        const max = isValid || refused ? 60 * second : 5 * second
        assert.isAtLeast(
          since,
          shortest(ended.failures, max),
          `a request within the cooldown (${state})`
        )
      } else if (isValid && ended.leftOfRepeated > 0) {
        // The provider knows the expiry by each clock. The model does not, once the clocks have disagreed.
        const least = clocksMoved ? second : Math.max(second, 0.75 * ended.leftOfRepeated)
        assert.isAtLeast(since, least, "a request after a renewal without progress")
      }
    }

    let current: Attempt = {
      started: -Infinity,
      startedWall: -Infinity,
      renewal: false,
      isOver: true
    }

    const ageOf = ({ started, startedWall }: Attempt) =>
      Math.max(virtual.monotonic() - started, virtual.wall() - startedWall)

    const finish = (
      attempt: Attempt,
      result: Pick<Ended, "failures" | "leftOfRepeated" | "fault">,
      ago = 0
    ) => {
      inFlight--
      attempt.isOver = true
      ended = {
        at: virtual.monotonic() - ago,
        wall: virtual.wall() - ago,
        renewal: attempt.renewal,
        ...result
      }
    }

    const fail = (attempt: Attempt, fault: Fault | "DeadOnArrival" | "Timeout", ago = 0) =>
      finish(attempt, {
        failures: ended.failures + 1,
        leftOfRepeated: 0,
        fault: Option.some(fault)
      }, ago)

    const source = TokenSource.layer(({ replacing }) =>
      Effect.gen(function*() {
        // The provider abandons an uninterruptible acquisition, which keeps hanging.
        const overdue = ageOf(current) - leastTime(current)
        if (!current.isOver && overdue >= 0) fail(current, "Timeout", overdue)
        const state = yield* stateNow
        expect(() => assertNotCoolingDown(state))
        const renewal = !refreshing && waitingRefreshes === 0 && state !== "Empty" &&
          state !== "Expired"
        if (refreshing || waitingRefreshes > 0) {
          ended = { ...ended, failures: 0, leftOfRepeated: 0 }
        }
        refreshing = false
        requests++
        inFlight++
        expect(() => assert.strictEqual(inFlight, 1, "one acquisition at a time"))
        const attempt: Attempt = {
          started: virtual.monotonic(),
          startedWall: virtual.wall(),
          renewal,
          isOver: false
        }
        current = attempt
        const endpointMode = mode
        const exit = yield* Effect.exit(respond(endpointMode)).pipe(Effect.onInterrupt(() =>
          Effect.sync(() => {
            expect(() =>
              assert.isAtLeast(
                ageOf(attempt),
                leastTime(attempt),
                "the acquisition was interrupted too early"
              )
            )
            if (!attempt.isOver) fail(attempt, "Timeout")
          })
        ))
        if (attempt.isOver) return yield* exit
        if (Exit.isSuccess(exit) && isLive(exit.value)) {
          const { value: token } = exit
          const repeated = Option.exists(
            replacing,
            (old) =>
              isLive(old) && (Redacted.value(old.value) === Redacted.value(token.value) ||
                token.expiresAt.epochMillis <= old.expiresAt.epochMillis)
          )
          const left = token.expiresAt.epochMillis - virtual.wall()
          finish(attempt, {
            failures: 0,
            leftOfRepeated: repeated ? left : 0,
            fault: Option.none()
          })
          last = token
        } else {
          fail(
            attempt,
            Exit.isSuccess(exit) || endpointMode._tag !== "Down"
              ? "DeadOnArrival"
              : endpointMode.fault
          )
        }
        return yield* exit
      })
    )

    const scope = yield* Scope.make()
    const context = yield* Layer.buildWithScope(
      Layer.provide(AccessTokenProvider.layer(), source),
      scope
    ).pipe(
      Effect.withClock(virtual.clock)
    )
    const provider = yield* Effect.provide(AccessTokenProvider.AccessTokenProvider, context)
    stateNow = Effect.map(provider.status, ({ state }) =>
      state)

    const seen: Array<AccessToken.AccessToken> = []
    const callers: Array<Fiber.RuntimeFiber<void>> = []

    /** Runs a call and checks its result immediately. */
    const caller = (
      call: Effect.Effect<AccessToken.AccessToken, AccessTokenError.AccessTokenError>
    ) =>
      Effect.gen(function*() {
        const { expiresAt, state } = yield* provider.status
        const before = { disturbances, frozen, at: virtual.monotonic(), wall: virtual.wall() }
        const exit = yield* Effect.exit(call)
        const waited = virtual.monotonic() - before.at
        if (frozen === before.frozen) {
          assert.isAtMost(
            waited,
            150 * second,
            "a caller waited longer than 2 minutes and 30 seconds"
          )
        }
        if (call === provider.get && (state === "Fresh" || state === "RefreshSoon")) {
          assert.strictEqual(waited, 0, `a caller in ${state} waited`)
        }
        if (
          call === provider.get && state === "MustWait" && disturbances === before.disturbances
        ) {
          assert.isTrue(
            Exit.isSuccess(exit) || Exit.isInterrupted(exit),
            "a caller in MustWait got no valid token"
          )
          const half = (Option.getOrThrow(expiresAt).epochMillis - before.wall) / 2
          assert.isAtMost(
            waited,
            half,
            "a caller in MustWait waited longer than half of the remaining lifetime"
          )
        }
        if (Exit.isSuccess(exit)) {
          assert.isTrue(isLive(exit.value), "the token has not expired by either clock")
          seen.push(exit.value)
          return
        }
        const error = Option.getOrUndefined(Cause.failureOption(exit.cause))
        if (!isFailure(exit.cause) || error === undefined) return
        if (error._tag === "TokenRefusedError" && error.reason === "InvalidClient") {
          assert.isUndefined(error.retryAt)
        } else if (virtual.monotonic() === ended.at || waited === 0) {
          assert(error.retryAt !== undefined)
          assert.isAbove(
            error.retryAt.epochMillis,
            virtual.wall(),
            "a failure has a retryAt in the future"
          )
        }
      })

    const perform = (step: Step): Effect.Effect<void> => {
      switch (step._tag) {
        case "Get":
          return Effect.map(
            Effect.forkDaemon(caller(provider.get)),
            (fiber) => void callers.push(fiber)
          )
        case "Refresh":
          return Effect.gen(function*() {
            refreshing = !(yield* provider.status).acquiring
            if (!refreshing) waitingRefreshes++
            const end = refreshing ? Effect.void : Effect.sync(() => waitingRefreshes--)
            callers.push(
              yield* Effect.forkDaemon(Effect.ensuring(caller(provider.refresh), end))
            )
          })
        case "Invalidate": {
          const token = seen[seen.length - 1 - step.which]
          disturbances++
          if (token === undefined) return Effect.void
          return Effect.gen(function*() {
            const before = yield* provider.status
            yield* provider.invalidate(token)
            if (
              before.state !== "Empty" && (yield* provider.status).state === "Empty"
            ) droppedTokens++
          })
        }
        case "Advance":
          return virtual.advance(step.millis)
        case "Approach": {
          const until = last === undefined
            ? 0
            : last.expiresAt.epochMillis - virtual.wall() - step.left
          return until > 0 ? virtual.advance(until) : Effect.void
        }
        case "Jump":
          disturbances++
          clocksMoved = true
          return Effect.sync(() => virtual.jump(step.millis))
        case "Freeze":
          disturbances++
          clocksMoved = true
          frozen++
          return Effect.sync(() => virtual.freeze(step.millis))
        case "Loop":
          return Effect.gen(function*() {
            const before = { rejections: droppedTokens, at: virtual.monotonic() }
            yield* Effect.forEach(
              Array.from({ length: step.calls }),
              () =>
                Effect.gen(function*() {
                  yield* perform({ _tag: "Get" })
                  yield* settle
                  if (step.rejected) yield* perform({ _tag: "Invalidate", which: 0 })
                  yield* virtual.advance(step.interval)
                }),
              { discard: true }
            )
            const minutes = (virtual.monotonic() - before.at) / (60 * second)
            // Five saved ones, and one per minute.
            const most = 5 + minutes
            expect(() =>
              assert.isAtMost(
                droppedTokens - before.rejections,
                most,
                "the number of rejections that dropped a token"
              )
            )
          })
        case "Endpoint":
          return Effect.sync(() => {
            mode = step.mode
          })
        case "Interrupt": {
          const fiber = callers[callers.length - 1 - step.which]
          return fiber === undefined ? Effect.void : Effect.asVoid(Fiber.interruptFork(fiber))
        }
      }
    }

    for (const step of steps) {
      yield* perform(step)
      yield* settle
    }

    const assertNoViolation = () => {
      if (violations.length > 0) throw violations[0]
    }

    // Every call ends, however the endpoint behaves, and the provider recovers when the endpoint does.
    yield* virtual.advance("150 seconds")
    mode = { _tag: "Up", lifetime: hour, delay: 0 }
    for (const fiber of callers) {
      const exit = yield* Fiber.poll(fiber)
      assert.isTrue(Option.isSome(exit), "a caller hangs")
      if (
        Option.isSome(exit) && Exit.isFailure(exit.value) && !Exit.isInterrupted(exit.value)
      ) {
        return yield* Effect.failCause(exit.value.cause)
      }
    }
    yield* virtual.advance("1 minutes")
    const final = yield* Effect.fork(Effect.map(provider.get, isLive))
    yield* virtual.advance("1 minutes")
    yield* Deferred.succeed(released, undefined)
    yield* settle
    assertNoViolation()
    assert.isTrue(
      Option.exists(yield* Fiber.poll(final), (exit) => Exit.isSuccess(exit) && exit.value),
      "the provider recovers"
    )
    yield* Scope.close(scope, Exit.void)
    yield* settle
    deepStrictEqual([inFlight, virtual.sleepers()], [0, 0])
    return requests
  }).pipe(Effect.provide(Logger.minimumLogLevel(LogLevel.None)))

/**
 * Declares a test with this many random sequences. `MODEL_RUNS` and `MODEL_SEED` override the number and the seed. A
 * failure reports the seed.
 */
export const testRandomSequences = (runs: number): void => {
  const numRuns = Number(process.env["MODEL_RUNS"] ?? runs)
  const seed = Number(process.env["MODEL_SEED"] ?? Math.floor(Math.random() * 2 ** 31))

  it(
    "the provider follows its rules in random sequences",
    async () => {
      let requests = 0
      await fc.assert(
        asyncProperty(fc.array(step, { minLength: 3, maxLength: 30 }), async (steps) => {
          requests += await Effect.runPromise(check(steps))
        }),
        { numRuns, seed }
      )
      assert.isAbove(requests, numRuns, "more requests than sequences")
    },
    300_000
  )
}
