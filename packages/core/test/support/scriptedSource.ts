/** A provider over a source whose results a test chooses, on a virtual clock. */
import { deepStrictEqual } from "@effect/vitest/utils"
import {
  AccessToken,
  AccessTokenError,
  AccessTokenProvider,
  TokenSource
} from "@store-api/core"
import { type LiveSteps, settle } from "@store-api/testing/effectMajor"
import { test } from "@store-api/testing/test"
import * as VirtualClock from "@store-api/testing/virtualClock"
import {
  Cause,
  type Clock,
  Context,
  DateTime,
  Deferred,
  type Duration,
  Effect,
  Exit,
  Fiber,
  Layer,
  Option,
  Queue,
  Random,
  Redacted,
  Ref,
  Scope
} from "effect"

export type Acquisition = Effect.Effect<
  AccessToken.AccessToken,
  AccessTokenError.AccessTokenError
>

/** A token that is acquired now, by the clock in the context. */
export const token = (
  value: string,
  lifetime: Duration.DurationInput = "60 minutes"
): Effect.Effect<AccessToken.AccessToken> =>
  Effect.map(DateTime.now, (acquiredAt) =>
    new AccessToken.AccessToken({
      value: Redacted.make(value),
      acquiredAt,
      expiresAt: DateTime.addDuration(acquiredAt, lifetime)
    }))

/** A source that calls the given function with the number of each call, and counts the calls. */
export const makeSource = (
  acquire: (number: number, replacing: Option.Option<AccessToken.AccessToken>) => Acquisition
) =>
  Effect.map(Ref.make(0), (count) => ({
    calls: Ref.get(count),
    layer: TokenSource.layer(({ replacing }) =>
      Effect.flatMap(Ref.updateAndGet(count, (n) => n + 1), (n) => acquire(n, replacing))
    )
  }))

export const valueOf = (token: { readonly value: Redacted.Redacted }) =>
  Redacted.value(token.value)

export const minute = 60_000
export const hour = 60 * minute

/** The error of an endpoint that cannot be reached. */
export const outage = new AccessTokenError.TokenRequestError({
  reason: "Transport",
  attempts: 6
})

/** Observations in this order. An outcome is the value of the token, the reason of the error, or `waits`. */
interface Expected {
  readonly state?: AccessTokenProvider.ProviderStatus["state"]
  /** The outcome of a call of `get`. */
  readonly gets?: string
  /** The outcome of a call of `refresh`. */
  readonly refreshes?: string
  /** The outcome of `current`, or `none`. */
  readonly current?: string
  /** The remaining milliseconds of the cooldown in `status`. 0 without one. */
  readonly cooldown?: number
  /** The number of acquisitions that have started once no fiber can continue. */
  readonly calls?: number
}

/** Calls that run until they wait or end. */
type Callers = Fiber.Fiber<ReadonlyArray<string>>

/** What a test of the provider works with. */
export interface Tools {
  readonly virtual: VirtualClock.VirtualClock
  readonly provider: AccessTokenProvider.Service
  /** The number of acquisitions that started. */
  readonly calls: Effect.Effect<number>
  /** The number of acquisitions that the test would have completed, and that were interrupted. */
  readonly interruptions: Effect.Effect<number>
  /** Completes the next acquisition for which the source has no result. Returns the token that it replaces. */
  readonly complete: (effect: Acquisition) => Effect.Effect<string | undefined>
  /** Closes the scope of the provider's layer. */
  readonly close: Effect.Effect<void>
  /** Starts this many callers of `get`, or of the given call. */
  readonly startCallers: (count: number, call?: Acquisition) => Effect.Effect<Callers>
  /** Compares the distinct outcomes of callers. */
  readonly expectOutcome: (callers: Callers, expected: string) => Effect.Effect<void>
  /** Advances both clocks and compares what can be observed then. */
  readonly after: (by: Duration.DurationInput, expected: Expected) => Effect.Effect<void>
}

/** The result of each acquisition, by its number. Without one, the test completes the acquisition. */
export type Acquire = (
  number: number,
  virtual: VirtualClock.VirtualClock,
  replacing: Option.Option<AccessToken.AccessToken>
) => Acquisition | undefined

interface Options extends AccessTokenProvider.Options {
  readonly clock?: (virtual: VirtualClock.VirtualClock) => Clock.Clock
  /** Every random number. By default 0: a token of an hour is renewed when less than 4 minutes are left. */
  readonly chance?: number
}

/** The value of the token, the reason or tag of the error, or the kind of another failure. */
export const outcomeOf = (
  call: Effect.Effect<AccessToken.AccessToken, AccessTokenError.AccessTokenError>
): Effect.Effect<string> =>
  Effect.map(Effect.exit(call), (exit) =>
    Exit.match(exit, {
      onSuccess: valueOf,
      onFailure: (cause) =>
        Option.match(Cause.failureOption(cause), {
          onNone: () => Cause.isDie(cause) ? "Defect" : "Interruption",
          onSome: (error) =>
            "reason" in error && error._tag !== "CredentialsError" ? error.reason : error._tag
        })
    }))

/** Runs the steps of a test with a provider over a source with these results, on a virtual clock. */
export const withProvider = (
  acquire: Acquire,
  steps: (tools: Tools) => LiveSteps,
  { chance = 0, clock = ({ clock }) => clock, ...options }: Options = {}
): Effect.Effect<void, unknown> =>
  Effect.gen(function*() {
    const virtual = VirtualClock.make()
    const interruptions = yield* Ref.make(0)
    const open = yield* Queue.unbounded<
      readonly [string | undefined, Deferred.Deferred<Acquisition>]
    >()
    const hold = (replacing: Option.Option<AccessToken.AccessToken>) =>
      Effect.gen(function*() {
        const result = yield* Deferred.make<Acquisition>()
        yield* Queue.offer(open, [
          Option.getOrUndefined(Option.map(replacing, valueOf)),
          result
        ])
        return yield* Effect.flatten(Deferred.await(result))
      }).pipe(Effect.onInterrupt(() => Ref.update(interruptions, (n) => n + 1)))
    const source = yield* makeSource((number, replacing) =>
      acquire(number, virtual, replacing) ?? hold(replacing)
    )
    const scope = yield* Scope.make()
    const close = Scope.close(scope, Exit.void)
    return yield* Effect.gen(function*() {
      const layer = Layer.orDie(
        Layer.provide(AccessTokenProvider.layer(options), source.layer)
      )
      const provider = Context.get(
        yield* Layer.buildWithScope(layer, scope),
        AccessTokenProvider.AccessTokenProvider
      )
      const startCallers = (count: number, call: Acquisition = provider.get) =>
        Effect.zipLeft(
          Effect.fork(
            Effect.all(Effect.replicate(outcomeOf(call), count), { concurrency: "unbounded" })
          ),
          settle
        )
      const outcomes = (callers: Callers) =>
        Effect.gen(function*() {
          if (Option.isNone(yield* Fiber.poll(callers))) return "waits"
          return [...new Set(yield* Fiber.join(callers))].join()
        })
      const once = (call: Acquisition) =>
        Effect.flatMap(
          startCallers(1, call),
          (caller) => Effect.zipLeft(outcomes(caller), Fiber.interrupt(caller))
        )
      const observations: {
        readonly [Key in keyof Required<Expected>]: Effect.Effect<Required<Expected>[Key]>
      } = {
        state: Effect.map(provider.status, ({ state }) => state),
        gets: once(provider.get),
        refreshes: once(provider.refresh),
        current: Effect.match(provider.current, {
          onFailure: ({ reason }) => reason,
          onSuccess: Option.match({ onNone: () => "none", onSome: valueOf })
        }),
        cooldown: Effect.map(provider.status, ({ cooldown }) =>
          Option.match(cooldown, {
            onNone: () => 0,
            onSome: ({ until }) => until.epochMillis - virtual.wall()
          })),
        calls: source.calls
      }
      const after = (by: Duration.DurationInput, expected: Expected) =>
        Effect.gen(function*() {
          yield* virtual.advance(by)
          const seen: Record<string, unknown> = { ...expected }
          for (const [key, value] of Object.entries<Effect.Effect<unknown>>(observations)) {
            if (key in expected) seen[key] = yield* value
          }
          deepStrictEqual<object>(seen, expected)
        })
      const expectOutcome = (callers: Callers, expected: string) =>
        Effect.flatMap(
          Effect.zipRight(settle, outcomes(callers)),
          (seen) => Effect.sync(() => deepStrictEqual(seen, expected))
        )
      const complete = (effect: Acquisition) =>
        Effect.gen(function*() {
          const [replacing, result] = yield* Queue.take(open)
          yield* Deferred.succeed(result, effect)
          yield* settle
          return replacing
        })
      const tools = {
        virtual,
        provider,
        calls: source.calls,
        interruptions: Ref.get(interruptions),
        complete
      }
      yield* Effect.gen(() => steps({ ...tools, close, startCallers, expectOutcome, after }))
    }).pipe(
      Effect.ensuring(close),
      Effect.scoped,
      Effect.withClock(clock(virtual)),
      Effect.withRandom(Random.fixed([chance]))
    )
  })

/** Declares a test with these steps. */
export const providerTest = (
  title: string,
  ...run: Parameters<typeof withProvider>
): void =>
  test(title, function*() {
    yield* withProvider(...run)
  })

/** The source returns `token-1`, `token-2`, … */
export const numberedTokens: Acquire = (n) => token(`token-${n}`)

/** The test completes each acquisition. */
export const heldAcquisitions: Acquire = () => undefined

/** The source returns the token `one`. The test completes each further acquisition. */
export const heldRenewals = (lifetime?: Duration.DurationInput): Acquire => (n) =>
  n === 1 ? token("one", lifetime) : undefined

/** A token with this age and this remaining lifetime, in milliseconds. */
export const tokenOfAge = (value: string, age: number, remaining: number) =>
  Effect.map(DateTime.now, (now) =>
    new AccessToken.AccessToken({
      value: Redacted.make(value),
      acquiredAt: DateTime.subtract(now, { millis: age }),
      expiresAt: DateTime.add(now, { millis: remaining })
    }))

export { settle } from "@store-api/testing/effectMajor"
