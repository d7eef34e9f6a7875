/**
 * Fleets whose wall clocks jump: what may happen to them, and what must hold.
 *
 * A process is an `AccessTokenProvider` over a `SharedTokenSource` over a scripted endpoint. It runs on a machine with
 * its own wall clock. The monotonic clock is common to all machines: it is the true time, by which the endpoint knows
 * when a token ends. All durations are in milliseconds.
 */
import {
  AccessToken,
  AccessTokenProvider,
  SharedTokenSource,
  TokenSource,
  TokenStore
} from "@store-api/core"
import {
  Cause,
  Clock,
  DateTime,
  Duration,
  Effect,
  Exit,
  FastCheck as fc,
  Logger,
  LogLevel,
  Option,
  Random,
  Redacted,
  type Scope
} from "effect"
import { clockOf } from "./effectMajor.js"
import { settled } from "./sharing.js"
import * as VirtualClock from "./virtualClock.js"

/** An event. Numbers of processes that a fleet does not have count again from its first process. */
export type Event =
  | { readonly _tag: "Wait"; readonly millis: number }
  /** Waits until this much is left of the endpoint's newest token, or until it has expired for that long. */
  | { readonly _tag: "WaitUntil"; readonly left: number }
  /** A caller wants a valid token. */
  | { readonly _tag: "Get"; readonly process: number }
  /** A caller wants a new token. */
  | { readonly _tag: "Refresh"; readonly process: number }
  /** An API rejects the cached token, so a caller wants another one. */
  | { readonly _tag: "Reject"; readonly process: number }
  /** The wall clock of this process's machine is set. */
  | { readonly _tag: "Jump"; readonly process: number; readonly millis: number }
  /** The wall clock of the store is set. */
  | { readonly _tag: "StoreJump"; readonly millis: number }
  /** The machine of this process stops for a while. */
  | { readonly _tag: "Freeze"; readonly process: number; readonly millis: number }

/** A fleet and its endpoint. */
export interface Fleet {
  readonly processes: number
  /** A new token for each request, the same one with what is left of it, or the same one with a new lifetime. */
  readonly endpoint: "mints" | "repeats" | "extends"
  readonly life: number
  /** How long a message takes to the endpoint or back, and to the store or back. */
  readonly wayToEndpoint: number
  readonly wayToStore: number
  /** Every random number of the library, from 0 to 1. */
  readonly chance: number
}

/** Arbitrary fleets whose tokens have this lifetime. */
export const fleets = (life: number): fc.Arbitrary<Fleet> =>
  fc.record({
    processes: fc.integer({ min: 1, max: 3 }),
    endpoint: fc.constantFrom("mints", "repeats", "extends"),
    life: fc.constant(life),
    wayToEndpoint: fc.constantFrom(50, 1000, 4000),
    // A store counts from when it gets an entry, and a reader from before it asks for it. So a reader would use a token
    // for too long only if it took longer to store the entry than to read it and to get it from the endpoint.
    wayToStore: fc.constantFrom(0, 50, 400),
    chance: fc.constantFrom(0, 0.5, 0.99)
  })

/** Arbitrary events for tokens with this lifetime, which are stated as if it were an hour. */
export const events = (life: number, options: {
  readonly maxLength: number
  /** Which clocks jump. */
  readonly jump: "Jump" | "StoreJump"
}): fc.Arbitrary<ReadonlyArray<Event>> => {
  const minute = life / 60
  const second = minute / 60
  const process = fc.nat({ max: 2 })
  const upTo = (most: number) => fc.integer({ min: 0, max: Math.round(most) })
  const around = (most: number) =>
    fc.integer({ min: Math.round(-most), max: Math.round(most) })
  const jump = fc.record({
    _tag: fc.constant(options.jump),
    process,
    millis: fc.oneof(around(2 * life), around(life), around(40 * second), around(2 * second))
  })
  return fc.array(
    fc.oneof(
      { weight: 8, arbitrary: fc.record({ _tag: fc.constant("Get"), process }) },
      { weight: 1, arbitrary: fc.record({ _tag: fc.constant("Refresh"), process }) },
      { weight: 1, arbitrary: fc.record({ _tag: fc.constant("Reject"), process }) },
      {
        weight: 4,
        arbitrary: fc.record({
          _tag: fc.constant("Wait"),
          millis: fc.oneof(upTo(3 * second), upTo(40 * second), upTo(40 * minute))
        })
      },
      {
        weight: 4,
        arbitrary: fc.record({
          _tag: fc.constant("WaitUntil"),
          left: fc.oneof(around(2 * second), upTo(6 * minute))
        })
      },
      { weight: 2, arbitrary: jump },
      {
        weight: 1,
        arbitrary: fc.record({
          _tag: fc.constant("Freeze"),
          process,
          millis: upTo(40 * second)
        })
      }
    ),
    { minLength: 1, maxLength: options.maxLength, size: "max" }
  ) as fc.Arbitrary<ReadonlyArray<Event>> // `constant` widens the tags
}

/** The minutes of a process that calls once a minute. */
const callsEachMinute = (
  process: number,
  minutes: number,
  minute: number
): ReadonlyArray<Event> =>
  Array.from({ length: minutes }).flatMap(
    () => [{ _tag: "Wait", millis: minute }, { _tag: "Get", process }]
  )

/** Known faults. Durations are those of tokens with a lifetime of an hour. */
export const scenarios = (life: number) => {
  const minute = life / 60
  const jump = (process: number, minutes: number): Event => ({
    _tag: "Jump",
    process,
    millis: minutes * minute
  })
  const get = (process: number): Event => ({ _tag: "Get", process })
  const wait = (minutes: number): Event => ({ _tag: "Wait", millis: minutes * minute })
  const others = [30, 120].flatMap((minutes) => [
    {
      title: `a writer is ${minutes} minutes ahead, and idle`,
      events: [jump(0, minutes), get(0), ...callsEachMinute(1, 130, minute)]
    },
    {
      title: `a reader is ${minutes} minutes behind`,
      events: [jump(1, -minutes), get(0), ...callsEachMinute(1, 130, minute)]
    }
  ])
  const setBack = {
    title: "a process is set back by ten minutes, and then idle until its token has expired",
    events: [get(0), wait(30), get(0), jump(0, -10), wait(31), get(0)]
  }
  return [setBack, ...others]
}

/** The true time, which is virtual or real. */
export interface Time {
  readonly monotonic: () => number
  readonly sleep: (millis: number) => Effect.Effect<void>
  /** Lets this much time pass, and all happen that is due meanwhile. */
  readonly pass: (millis: number) => Effect.Effect<void>
  /** Runs an effect that may take real time. Virtual time stands still meanwhile. */
  readonly standStill: <A, E>(effect: Effect.Effect<A, E>) => Effect.Effect<A, E>
}

export const virtualTime = (): Time => {
  let running = 0
  const idle: Effect.Effect<void> = Effect.flatMap(
    settled,
    () => running === 0 ? Effect.void : idle
  )
  const virtual = VirtualClock.make(0, idle)
  return {
    monotonic: virtual.monotonic,
    sleep: (millis) => virtual.clock.sleep(Duration.millis(millis)),
    pass: virtual.advance,
    standStill: (effect) =>
      Effect.acquireUseRelease(
        Effect.sync(() => running++),
        () => effect,
        () => Effect.sync(() => running--)
      )
  }
}

export const realTime = (): Time => {
  const sleep = (millis: number) => Effect.withClock(Effect.sleep(millis), Clock.make())
  return {
    monotonic: () => performance.now(),
    sleep,
    pass: sleep,
    standStill: (effect) => effect
  }
}

/** Pauses between two freezes of a machine. An acquisition may take two minutes, however often it was frozen. */
const awakeFor = 3 * 60_000

/** A machine whose wall clock can jump, and which can freeze. */
export const makeMachine = (time: Time) => {
  let offset = Date.UTC(2026, 0, 15)
  let frozenUntil = 0
  let lastReading = 0
  const monotonic = () => {
    lastReading = time.monotonic()
    return lastReading
  }
  const wall = () => Math.floor(monotonic()) + offset
  /** Waits until the machine is not frozen. */
  const awake: Effect.Effect<void> = Effect.suspend(() => {
    const left = frozenUntil - time.monotonic()
    return left > 0 ? Effect.zipRight(time.sleep(left), awake) : Effect.void
  })
  return {
    wall,
    awake,
    clock: clockOf({
      wall,
      monotonic,
      sleep: (duration) => Effect.zipRight(time.sleep(Duration.toMillis(duration)), awake)
    }),
    /** The true time at which the clock was read last. */
    lastReading: () => lastReading,
    jump: (millis: number) => {
      offset += millis
    },
    freeze: (millis: number) => {
      if (time.monotonic() > frozenUntil + awakeFor) frozenUntil = time.monotonic() + millis
    }
  }
}

export type Machine = ReturnType<typeof makeMachine>

/** Where a fleet runs. */
export interface World {
  readonly time: Time
  /** The processes are spread over them. */
  readonly machines: ReadonlyArray<Machine>
  /** The store, as its clients on a machine call it. */
  readonly storeOn: (machine: Machine) => Effect.Effect<TokenStore.Service, never, Scope.Scope>
  /** The machine of the store. */
  readonly storeMachine: Machine
}

export const threeMachines = (
  time: Time
): ReadonlyArray<Machine> => [makeMachine(time), makeMachine(time), makeMachine(time)]

const worldOf = (clockOfStore: (machine: Machine) => Clock.Clock): Effect.Effect<World> =>
  Effect.map(TokenStore.makeMemory, (memory) => {
    const time = virtualTime()
    const storeMachine = makeMachine(time)
    const store = mapOperations(memory, Effect.withClock(clockOfStore(storeMachine)))
    return {
      time,
      machines: threeMachines(time),
      storeOn: () => Effect.succeed(store),
      storeMachine
    }
  })

/** Three machines, and a store in memory on a fourth one. */
export const memoryWorld = worldOf(({ clock }) => clock)

/** The same with a store that counts by its wall clock alone, as Redis and databases do. */
export const serverWorld = worldOf(({ clock, wall }) =>
  clockOf({ wall, monotonic: wall, sleep: (duration) => clock.sleep(duration) })
)

type Through = <A, E>(effect: Effect.Effect<A, E>) => Effect.Effect<A, E>

/** Changes each operation of a store. */
const mapOperations = (store: TokenStore.Service, through: Through): TokenStore.Service => ({
  get: (key) => through(store.get(key)),
  put: (key, entry, life) => through(store.put(key, entry, life)),
  remove: (key, entry) => through(store.remove(key, entry)),
  lease: (key, duration) =>
    Effect.map(
      through(store.lease(key, duration)),
      Option.map(({ extend, release }) => ({
        extend: through(extend),
        release: through(release)
      }))
    )
})

/** Sends a message, lets something happen there, and waits for the response, which a frozen machine reads later. */
const remotely =
  ({ sleep, standStill }: Time, { awake }: Machine, way: number): Through => (effect) =>
    Effect.gen(function*() {
      yield* sleep(way)
      const exit = yield* Effect.exit(standStill(effect))
      yield* sleep(way)
      yield* awake
      return yield* exit
    })

/** A token with less left might expire on its way to a process that is slow or frozen. */
const leastRepeated = 1 / 60 // of its lifetime

/** An endpoint that works. */
const makeEndpoint = ({ endpoint, life }: Fleet, { monotonic }: Time) => {
  const ends = new Map<string, number>()
  let requests = 0
  let newest = "no token"
  const endOf = (value: string) => ends.get(value) ?? 0
  return {
    endOf,
    newestEnd: () => endOf(newest),
    requests: () => requests,
    respond: Effect.sync(() => {
      requests++
      const now = monotonic()
      const isNew = endpoint === "mints" || endOf(newest) - now < leastRepeated * life
      if (isNew) newest = `token-${requests}`
      if (isNew || endpoint === "extends") ends.set(newest, now + life)
      return { value: newest, left: endOf(newest) - now }
    })
  }
}

type Endpoint = ReturnType<typeof makeEndpoint>

/** Acquires tokens as `TokenEndpoint` does: it reads both clocks, and retries if the token seems to have expired. */
const sourceOn = (
  machine: Machine,
  time: Time,
  endpoint: Endpoint,
  fleet: Fleet
): TokenSource.Service["acquire"] => {
  const acquire: Effect.Effect<AccessToken.AccessToken> = Effect.gen(function*() {
    const before = machine.wall()
    const start = time.monotonic()
    const { left, value } = yield* remotely(time, machine, fleet.wayToEndpoint)(
      endpoint.respond
    )
    const now = machine.wall()
    const acquiredAt = Math.min(before, Math.ceil(now - (time.monotonic() - start)))
    const second = fleet.life / 3600
    const expiresAt = acquiredAt + Math.floor(left / second) * second
    if (expiresAt <= now) return yield* Effect.delay(acquire, 200)
    return new AccessToken.AccessToken({
      value: Redacted.make(value),
      acquiredAt: DateTime.unsafeMake(acquiredAt),
      expiresAt: DateTime.unsafeMake(expiresAt)
    })
  })
  return () => acquire
}

/** Starts a process. It sends nothing before its first call. */
const startProcess = (
  machine: Machine,
  store: TokenStore.Service,
  acquire: TokenSource.Service["acquire"],
  purpose: TokenSource.Purpose
) =>
  Effect.gen(function*() {
    // A real store on a busy machine can take long.
    const shared = yield* SharedTokenSource.make({ storeTimeout: "30 seconds" }).pipe(
      Effect.provideService(
        TokenSource.TokenSource,
        TokenSource.make(acquire, Effect.succeed(purpose))
      ),
      Effect.provideService(TokenStore.TokenStore, store)
    )
    return yield* Effect.provideService(
      AccessTokenProvider.make(),
      TokenSource.TokenSource,
      shared
    )
  }).pipe(Effect.orDie, Effect.withClock(machine.clock))

type Call = "Get" | "Refresh" | "Reject"

const calls: Readonly<
  Record<
    Call,
    (provider: AccessTokenProvider.Service) => Effect.Effect<AccessToken.AccessToken, unknown>
  >
> = {
  Get: ({ get }) => get,
  Refresh: ({ refresh }) => refresh,
  Reject: ({ current, get, invalidate }) =>
    Effect.gen(function*() {
      const cached = yield* Effect.orElseSucceed(current, () => Option.none())
      if (Option.isSome(cached)) yield* invalidate(cached.value)
      return yield* get
    })
}

/** What a caller got. Times are true ones. */
export interface Answer {
  readonly process: number
  readonly call: Call
  readonly askedAt: number
  /** When the provider decided. */
  readonly at: number
  /** The token, or `undefined` if there was an error. */
  readonly value: string | undefined
  /** When the token ends. */
  readonly end: number
  /** How long the process believes that the token is valid. */
  readonly believed: number
  readonly error: string
}

export interface Report {
  /** In the order in which the callers got them. */
  readonly answers: ReadonlyArray<Answer>
  readonly requests: number
  /** The events, with the duration of each wait. */
  readonly schedule: ReadonlyArray<Event>
}

let runs = 0

const elementOf = <A>(elements: ReadonlyArray<A>, number: number): A => {
  const element = elements[number % elements.length]
  if (element === undefined) throw new Error("the fleet is empty")
  return element
}

/** Lets the events happen to a fleet, and waits until all calls have ended. */
export const run = (
  world: World,
  fleet: Fleet,
  events: ReadonlyArray<Event>
): Effect.Effect<Report> =>
  Effect.gen(function*() {
    const { machines, storeMachine, storeOn, time } = world
    const endpoint = makeEndpoint(fleet, time)
    const purpose: TokenSource.Purpose = {
      name: [`fleet ${runs++}`],
      secret: Redacted.make("an-invented-secret"),
      maxLifetime: fleet.life
    }
    const processes = yield* Effect.forEach(
      Array.from({ length: fleet.processes }).keys(),
      (index) =>
        Effect.gen(function*() {
          const machine = elementOf(machines, index)
          const store = mapOperations(
            yield* storeOn(machine),
            remotely(time, machine, fleet.wayToStore)
          )
          const provider = yield* startProcess(
            machine,
            store,
            sourceOn(machine, time, endpoint, fleet),
            purpose
          )
          return { index, machine, provider }
        })
    )
    const answers: Array<Answer> = []
    let asked = 0

    const call = (name: Call, number: number) =>
      Effect.gen(function*() {
        const { index, machine, provider } = elementOf(processes, number)
        const answer = Effect.gen(function*() {
          yield* machine.awake
          const askedAt = time.monotonic()
          const exit = yield* Effect.exit(calls[name](provider))
          const token = Exit.isSuccess(exit) ? exit.value : undefined
          const value = token && Redacted.value(token.value)
          const decidedAt = machine.lastReading()
          answers.push({
            process: index,
            call: name,
            askedAt,
            at: decidedAt,
            value,
            end: endpoint.endOf(value ?? ""),
            believed: token === undefined ? 0 : token.expiresAt.epochMillis - machine.wall(),
            error: Exit.isFailure(exit) ? String(Cause.squash(exit.cause)) : ""
          })
        })
        asked++
        yield* Effect.fork(Effect.withClock(answer, machine.clock))
        yield* time.pass(0)
      })

    const perform = (event: Event): Effect.Effect<void> => {
      switch (event._tag) {
        case "Wait":
          return time.pass(event.millis)
        case "WaitUntil":
          return time.pass(Math.max(endpoint.newestEnd() - event.left - time.monotonic(), 0))
        case "Jump":
          return Effect.sync(() =>
            elementOf(processes, event.process).machine.jump(event.millis)
          )
        case "StoreJump":
          return Effect.sync(() => storeMachine.jump(event.millis))
        case "Freeze":
          return Effect.sync(() =>
            elementOf(processes, event.process).machine.freeze(event.millis)
          )
        default:
          return call(event._tag, event.process)
      }
    }

    const schedule: Array<Event> = []
    for (const event of events) {
      const before = time.monotonic()
      yield* perform(event)
      schedule.push(
        event._tag === "WaitUntil"
          ? { _tag: "Wait", millis: time.monotonic() - before }
          : event
      )
    }
    const isAcquiring = Effect.map(
      Effect.forEach(processes, ({ provider }) => provider.status),
      (all) => all.some(({ acquiring }) => acquiring)
    )
    for (let step = 0; answers.length < asked || (yield* isAcquiring); step++) {
      if (step === 1000) return yield* Effect.dieMessage("a call does not end")
      yield* time.pass(fleet.life / 100)
    }
    return { answers, requests: endpoint.requests(), schedule }
  }).pipe(
    Effect.scoped,
    Effect.withRandom(Random.fixed([fleet.chance])),
    Logger.withMinimumLogLevel(LogLevel.None)
  )

/** The answers with a token that had expired. */
export const expired = ({ answers }: Report): ReadonlyArray<Answer> =>
  answers.filter(({ at, end, value }) => value !== undefined && at >= end)

/** The answers with an error. */
export const failed = ({ answers }: Report): ReadonlyArray<Answer> =>
  answers.filter(({ value }) => value === undefined)

const isJump = ({ _tag }: Event): boolean => _tag === "Jump" || _tag === "StoreJump"

export const jumpsOf = (events: ReadonlyArray<Event>): number => events.filter(isJump).length

/** The same events, without the jumps. */
export const withRightClocks = (events: ReadonlyArray<Event>): ReadonlyArray<Event> =>
  events.filter((event) => !isJump(event))

/** By how much clocks were set back, all jumps together, from one true time to another. */
const setBackBetween = (schedule: ReadonlyArray<Event>, from: number, to: number): number => {
  let now = 0
  let setBack = 0
  for (const event of schedule) {
    if (event._tag === "Wait") now += event.millis
    if ((event._tag === "Jump" || event._tag === "StoreJump") && from <= now && now <= to) {
      setBack += Math.max(-event.millis, 0)
    }
  }
  return setBack
}

/**
 * The answers with a token that had expired, unless the store's clock explains them: if it was set back, an entry seems
 * to be that much younger. It does not to a process that has had this token before. But if the endpoint returns its
 * token again, another process may have stored a further entry with it.
 */
export const unexplained = (
  { endpoint, life }: Fleet,
  report: Report
): ReadonlyArray<Answer> =>
  expired(report).filter(({ at, end, process, value }) => {
    if (endpoint !== "mints") return at >= end + setBackBetween(report.schedule, 0, at)
    const first = report.answers.find((answer) =>
      answer.process === process && answer.value === value
    )
    return at >= end + setBackBetween(report.schedule, end - life, first?.at ?? at)
  })
