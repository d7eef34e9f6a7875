/**
 * Fleets of processes whose wall clocks jump: what may happen to them, and what must hold. A process is an
 * `AccessTokenProvider` over a `SharedTokenSource` over a scripted endpoint. All have one monotonic clock, by which the
 * endpoint and the test know the true age of each token. Durations are in milliseconds.
 */
import { AccessToken, AccessTokenProvider, SharedTokenSource, TokenSource, TokenStore } from "@store-api/core"
import { Cause, DateTime, Duration, Effect, Exit, Fiber, Logger, LogLevel } from "effect"
import { Option, Random, Redacted } from "effect"
import { clockOf } from "./effectLine.js"
import * as VirtualClock from "./virtualClock.js"

const second = 1000
const minute = 60 * second

/** What happens, in this order. */
export type Event =
  | { readonly _tag: "Wait"; readonly millis: number }
  /** Waits until this much is left of the newest token, if more is left now. */
  | { readonly _tag: "WaitUntil"; readonly left: number }
  /** A caller in this process wants a valid token. */
  | { readonly _tag: "Get"; readonly process: number }
  | { readonly _tag: "Refresh"; readonly process: number }
  /** An API rejects the cached token, and the caller wants another one. */
  | { readonly _tag: "Reject"; readonly process: number }
  | { readonly _tag: "Jump"; readonly process: number; readonly millis: number }
  | { readonly _tag: "JumpOfStore"; readonly millis: number }
  /** The process does not run for a while. */
  | { readonly _tag: "Freeze"; readonly process: number; readonly millis: number }

export interface Setup {
  readonly processes: number
  readonly endpoint: "mints" | "repeats" | "extends"
  readonly life: number
  /** From a process to the endpoint, and back. */
  readonly wayToEndpoint: number
  readonly wayToStore: number
  readonly chance: number
}

const start = Date.UTC(2026, 0, 15)

/** A clock whose wall time jumps, of a process that may freeze. */
const machine = (virtual: VirtualClock.VirtualClock) => {
  let offset = start
  let thawsAt = 0
  let mayFreezeAt = 0
  const sleep = (millis: number) => virtual.clock.sleep(Duration.millis(millis))
  const awake: Effect.Effect<void> = Effect.suspend(() => {
    const left = thawsAt - virtual.monotonic()
    return left > 0 ? Effect.zipRight(sleep(left), awake) : Effect.void
  })
  const wall = () => virtual.monotonic() + offset
  return {
    awake,
    wall,
    clock: clockOf({
      wall,
      monotonic: virtual.monotonic,
      sleep: (duration) => Effect.zipRight(virtual.clock.sleep(duration), awake)
    }),
    jump: (millis: number) => {
      offset += millis
    },
    freeze: (millis: number) => {
      if (virtual.monotonic() >= mayFreezeAt) {
        thawsAt = virtual.monotonic() + millis
        mayFreezeAt = thawsAt + 5 * minute
      }
    }
  }
}

type Machine = ReturnType<typeof machine>

const makeEndpoint = ({ endpoint, life }: Setup, virtual: VirtualClock.VirtualClock) => {
  let requests = 0
  let newest = "none"
  const ends = new Map<string, number>()
  const endOf = (value: string) => ends.get(value) ?? 0
  return {
    endOf,
    newestEnd: () => endOf(newest),
    requests: () => requests,
    respond: () => {
      requests++
      const now = virtual.monotonic()
      // A token with less left could expire on its way to a slow or frozen process.
      const isKept = endpoint !== "mints" && endOf(newest) - now >= minute
      if (!isKept) newest = `token-${requests}`
      if (!isKept || endpoint === "extends") ends.set(newest, now + life)
      return { value: newest, expiresIn: Math.floor((endOf(newest) - now) / second) * second }
    }
  }
}

export interface Outcome {
  readonly event: string
  readonly at: number
  readonly text: string
}

export interface Report {
  readonly requests: number
  readonly served: number
  readonly wrong: ReadonlyArray<string>
  readonly log: ReadonlyArray<string>
  readonly schedule: ReadonlyArray<Event>
}

export const run = (setup: Setup, events: ReadonlyArray<Event>): Effect.Effect<Report> =>
  Effect.gen(function*() {
    const virtual = VirtualClock.make(start, settled)
    const endpoint = makeEndpoint(setup, virtual)
    const log: Array<string> = []
    const note = (text: string) => void log.push(`${(virtual.monotonic() / minute).toFixed(4)} ${text}`)
    const sleep = (millis: number) => virtual.clock.sleep(Duration.millis(millis))
    const remotely = <A, E>(way: number, { awake }: Machine, effect: Effect.Effect<A, E>) =>
      Effect.zipRight(sleep(way), effect).pipe(
        Effect.exit,
        Effect.zipLeft(Effect.zipRight(sleep(way), awake)),
        Effect.flatten
      )
    const storeMachine = machine(virtual)
    const memory = yield* TokenStore.makeMemory
    const storeFrom = (own: Machine, name: string) => {
      const far = <A, E>(operation: string, effect: Effect.Effect<A, E>) =>
        remotely(setup.wayToStore, own, Effect.tap(Effect.withClock(effect, storeMachine.clock), (result) =>
          Effect.sync(() => note(`${name} store ${operation} ${typeof result === "object" && result !== null && "_tag" in result ? String(result._tag) : String(result)}`))))
      return TokenStore.TokenStore.of({
        get: (key) => far("get", memory.get(key)),
        put: (key, entry, life) => far(`put ${Duration.toMillis(life) / minute}`, memory.put(key, entry, life)),
        remove: (key, entry) => far("remove", memory.remove(key, entry)),
        lease: (key, duration) =>
          Effect.map(
            far("lease", memory.lease(key, duration)),
            Option.map(({ extend, release }) => ({ extend: far("extend", extend), release: far("release", release) }))
          )
      })
    }
    const sourceFrom = (own: Machine, name: string) =>
      TokenSource.make(
        ({ reason }) =>
          Effect.gen(function*() {
            while (true) {
              const before = own.wall()
              const sentAt = virtual.monotonic()
              const { expiresIn, value } = yield* remotely(setup.wayToEndpoint, own, Effect.sync(endpoint.respond))
              note(`${name} requested for ${reason}: ${value} ${expiresIn / minute}`)
              const acquiredAt = Math.min(before, own.wall() - (virtual.monotonic() - sentAt))
              if (acquiredAt + expiresIn > own.wall()) {
                return new AccessToken.AccessToken({
                  value: Redacted.make(value),
                  acquiredAt: DateTime.unsafeMake(acquiredAt),
                  expiresAt: DateTime.unsafeMake(acquiredAt + expiresIn)
                })
              }
              yield* Effect.sleep(200)
            }
          }),
        Effect.succeed({ name: ["fleet"], secret: Redacted.make("an-invented-secret"), maxLifetime: setup.life })
      )

    const processes = yield* Effect.forEach(Array.from({ length: setup.processes }).keys(), (index) =>
      Effect.gen(function*() {
        const own = machine(virtual)
        const name = `p${index}`
        const shared = yield* Effect.orDie(SharedTokenSource.make()).pipe(
          Effect.provideService(TokenSource.TokenSource, sourceFrom(own, name)),
          Effect.provideService(TokenStore.TokenStore, storeFrom(own, name))
        )
        const provider = yield* Effect.orDie(AccessTokenProvider.make()).pipe(
          Effect.provideService(TokenSource.TokenSource, shared),
          Effect.withClock(own.clock)
        )
        return { own, provider, name }
      }).pipe((made) => made))
    const wrong: Array<string> = []
    let served = 0
    const fibers: Array<Fiber.Fiber<unknown, unknown>> = []
    const call = (index: number, what: (provider: AccessTokenProvider.Service) => Effect.Effect<AccessToken.AccessToken, unknown>, text: string) =>
      Effect.gen(function*() {
        const { own: { awake, clock, wall }, name, provider } = processes[index % processes.length]!
        const from = virtual.monotonic()
        note(`${name} ${text}`)
        const exit = yield* Effect.exit(Effect.zipRight(awake, what(provider))).pipe(Effect.withClock(clock))
        const now = virtual.monotonic()
        if (Exit.isFailure(exit)) {
          wrong.push(`${name}: ${text} at ${from} failed at ${now}: ${Cause.pretty(exit.cause).slice(0, 200)}`)
          note(`${name} failed`)
        } else {
          served++
          const value = Redacted.value(exit.value.value)
          const lateBy = now - endpoint.endOf(value)
          note(`${name} got ${value}, true left ${-lateBy / minute}, believed ${(exit.value.expiresAt.epochMillis - wall()) / minute}`)
          if (lateBy >= 0) wrong.push(`${name}: ${text} at ${from} served at ${now} ${value} that expired ${lateBy} ms ago`)
        }
      })
    const schedule: Array<Event> = []
    const perform = (event: Event): Effect.Effect<unknown> => {
      switch (event._tag) {
        case "Wait":
          return virtual.advance(event.millis)
        case "WaitUntil":
          return Effect.void
        case "Get":
          return Effect.map(Effect.fork(call(event.process, ({ get }) => get, "get")), (fiber) => fibers.push(fiber))
        case "Refresh":
          return Effect.map(Effect.fork(call(event.process, ({ refresh }) => refresh, "refresh")), (fiber) => fibers.push(fiber))
        case "Reject":
          return Effect.map(Effect.fork(call(event.process, (provider) =>
            Effect.gen(function*() {
              const cached = yield* Effect.orElseSucceed(provider.current, () => Option.none())
              if (Option.isSome(cached)) yield* provider.invalidate(cached.value)
              return yield* provider.get
            }), "reject")), (fiber) => fibers.push(fiber))
        case "Jump":
          return Effect.sync(() => {
            note(`p${event.process % processes.length} jumps ${event.millis / minute}`)
            processes[event.process % processes.length]!.own.jump(event.millis)
          })
        case "JumpOfStore":
          return Effect.sync(() => storeMachine.jump(event.millis))
        case "Freeze":
          return Effect.sync(() => {
            note(`p${event.process % processes.length} freezes ${event.millis / minute}`)
            processes[event.process % processes.length]!.own.freeze(event.millis)
          })
      }
    }
    for (const given of events) {
      const event: Event = given._tag === "WaitUntil"
        ? { _tag: "Wait", millis: Math.max(endpoint.newestEnd() - virtual.monotonic() - given.left, 0) }
        : given
      schedule.push(event)
      yield* perform(event)
      yield* settled
    }
    yield* virtual.advance("3 hours")
    for (const fiber of fibers) {
      if (Option.isNone(yield* Fiber.poll(fiber))) wrong.push("a call does not end")
    }
    return { requests: endpoint.requests(), served, wrong, schedule, log }
  }).pipe(
    Effect.scoped,
    Effect.withRandom(Random.fixed([setup.chance])),
    Logger.withMinimumLogLevel(LogLevel.None)
  )

const settled = Effect.async<void>((resume) => {
  setImmediate(() => resume(Effect.void))
})

export const rightClocks = (events: ReadonlyArray<Event>) => events.filter(({ _tag }) => _tag !== "Jump" && _tag !== "JumpOfStore")
