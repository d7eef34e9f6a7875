/** Fleets of members over one endpoint and one store. */
import { assert, describe } from "@effect/vitest"
import { deepStrictEqual } from "@effect/vitest/utils"
import { Emulator, Fault } from "@store-api/emulator"
import { Clock, Effect, Fiber, Redacted, type Scope } from "effect"
import { bundle, type ChildProcess, start } from "./childProcess.js"
import { shared } from "./loopback.js"
import * as Member from "./member.js"
import { inTime, onVirtualTime, proxyTo, until } from "./network.js"
import { test } from "./test.js"
import type { VirtualClock } from "./virtualClock.js"

export type Members = ReadonlyArray<Member.Member>

/** Starts this number of members with these settings. */
export type Start = (
  count: number,
  settings: Member.Settings
) => Effect.Effect<Members, never, Scope.Scope>

/** Members are providers in this process. */
export const providers = (storeAt: Member.StoreAt): Start => (count, settings) =>
  Effect.orDie(
    Effect.all(Effect.replicate(Member.make(settings, storeAt), count), {
      concurrency: "unbounded"
    })
  )

/** Runs an effect on all members at once, and returns the results. All must succeed. */
export const all = <A, E>(
  members: Members,
  order: (member: Member.Member) => Effect.Effect<A, E>
) => Effect.forEach(members, order, { concurrency: "unbounded" })

/** Gets a token for all members at once. Returns the number of distinct tokens. */
export const tokens = (members: Members) =>
  Effect.map(all(members, ({ get }) => get), (all) => new Set(all).size)

/** Refreshes all members at once. Returns the number of distinct tokens and of token requests. */
export const renewal = <E>(members: Members, tokenRequests: Effect.Effect<number, E>) =>
  Effect.gen(function*() {
    const before = yield* tokenRequests
    const results = yield* all(members, ({ refresh }) => refresh)
    return { tokens: new Set(results).size, requests: (yield* tokenRequests) - before }
  })

/** Renews the token of all members. They share one. */
export const expectOneRenewal = <E>(
  members: Members,
  tokenRequests: Effect.Effect<number, E>
) =>
  Effect.map(
    renewal(members, tokenRequests),
    (renewed) => deepStrictEqual(renewed, { requests: 1, tokens: 1 })
  )

/** Starts this number of members with one store, and waits until they are connected to it. */
export const share = (
  start: Start,
  count: number,
  store: { readonly url: string },
  settings: Member.Settings
) => Effect.tap(start(count, { ...settings, storeUrl: store.url }), connected)

const isIdle = (members: Members) =>
  Effect.map(
    all(members, ({ isAcquiring }) => isAcquiring),
    (each) => each.every((isAcquiring) => !isAcquiring)
  )

export const connected = (members: Members) =>
  until(
    "all are connected",
    Effect.map(all(members, ({ reaches }) => reaches), (results) =>
      results.every((reaches) => reaches))
  )

/** Each member has warned for these reasons. */
export const warnedOf = (members: Members, ...reasons: ReadonlyArray<string>) =>
  Effect.map(all(members, ({ warnings }) => warnings), (warnings) => {
    deepStrictEqual(
      warnings.map((of) => of.map(({ annotations }) => annotations["reason"])),
      members.map(() => [...reasons])
    )
    assert.notInclude(JSON.stringify(warnings), "invented")
  })

/** The endpoint and the API of a fleet, and the number of token requests so far. */
export const shop = (options: Emulator.Options = {}) =>
  Effect.map(Emulator.make(options), (emulator) => ({
    ...emulator,
    tokenRequests: Effect.map(
      emulator.requests,
      (requests) => requests.filter(({ kind }) => kind === "token").length
    ),
    settings: {
      authUrl: emulator.url,
      apiUrl: emulator.url,
      clientId: Emulator.demoClient.clientId,
      clientSecret: Redacted.value(Emulator.demoClient.clientSecret),
      // Longer than any test: a member that waits for one of these times fails its test by the time limit.
      storeTimeout: "10 minutes",
      lease: "10 minutes",
      maxWait: "20 minutes"
    } satisfies Member.Settings
  }))

/** A shop whose endpoint's responses arrive only when the test releases them. */
export const heldShop = Effect.gen(function*() {
  const made = yield* shop()
  const { hold, release, port } = yield* proxyTo(Number(new URL(made.settings.authUrl).port))
  return {
    ...made,
    hold,
    release,
    settings: { ...made.settings, authUrl: `http://127.0.0.1:${port}` }
  }
})

/** Starts this number of processes of a program that calls `Member.run`, with these environment variables. */
export const processes = (
  program: URL,
  count: number,
  variables: Readonly<Record<string, string>> = {}
): Effect.Effect<ReadonlyArray<ChildProcess>, never, Scope.Scope> =>
  Effect.flatMap(
    bundle(program),
    (file) => Effect.all(Effect.replicate(start(file, variables), count))
  )

/** Starts a member with these settings in the process. */
export const open = (
  { ask }: ChildProcess,
  settings: Member.Settings
): Effect.Effect<Member.Member> => {
  const order = (order: Member.Order) => ask(order) as Effect.Effect<never> // the result of the member's method of that name
  return Effect.as(order({ name: "open", settings }), {
    get: order({ name: "get" }),
    refresh: order({ name: "refresh" }),
    call: order({ name: "call" }),
    isAcquiring: order({ name: "isAcquiring" }),
    reaches: order({ name: "reaches" }),
    warnings: order({ name: "warnings" }),
    begin: (every) => order({ name: "begin", every }),
    end: order({ name: "end" }),
    advance: (by) => order({ name: "advance", by })
  })
}

/** Starts members in these processes. */
export const inThese = (processes: ReadonlyArray<ChildProcess>): Start => (count, settings) =>
  Effect.forEach(processes.slice(0, count), (process) => open(process, settings), {
    concurrency: "unbounded"
  })

/** All calls until `end` had the status 200, and each member called. */
export const allSucceed = (outcomes: ReadonlyArray<ReadonlyArray<string>>) => {
  for (const { length } of outcomes) assert.isAbove(length, 0)
  deepStrictEqual(new Set(outcomes.flat()), new Set(["200"]))
}

/** Starts a fleet with these settings. */
type Starting = (settings: Member.Settings) => ReturnType<Start>

/** Starts members. Their clock also advances those of members in other processes, after that of the endpoint. */
const onClock = (own: VirtualClock, start: Starting, settings: Member.Settings) =>
  Effect.map(start({ ...settings, isVirtual: true }), (members) => {
    const advance: VirtualClock["advance"] = (by) =>
      Effect.zipRight(own.advance(by), all(members, ({ advance }) => advance(by)))
    return { members, virtual: { ...own, advance } }
  })

/** All members call the API at once, every so many milliseconds of virtual time. Returns the results of their calls. */
const callUntil = (
  { members, virtual }: { readonly members: Members; readonly virtual: VirtualClock },
  every: number,
  isOver: Effect.Effect<boolean>
) =>
  Effect.gen(function*() {
    const outcomes: Array<ReadonlyArray<string>> = []
    while (!(yield* isOver)) {
      const call = ({ call }: Member.Member) =>
        Effect.match(call, { onFailure: ({ _tag }) => _tag as string, onSuccess: String })
      outcomes.push(yield* inTime(virtual, all(members, call), 10))
      yield* inTime(virtual, until("no acquisition is in flight", isIdle(members)), 10)
      yield* virtual.advance(every)
    }
    return outcomes
  })

const minute = 60_000

/** The lifetime of a token, in milliseconds. A renewal begins when at most a quarter of it remains. */
const life = 30 * minute

// The API accepts a token for longer than `life`, because a call can take long on a busy machine.
const shortLived = Effect.tap(
  shop({ tokenLife: 1.5 * life }),
  ({ fail }) => fail(Fault.fields({ expires_in: life / 1000 }, { times: Infinity }))
)

/** Members call on virtual time for three lifetimes with the store, three without it, and three with it again. */
const nineLifetimes = (start: Starting, { end, fault }: Outage) =>
  onVirtualTime((own) =>
    Effect.gen(function*() {
      const { settings, tokenRequests } = yield* shortLived
      const fleet = yield* onClock(own, start, { ...settings, storeTimeout: "30 seconds" })
      const { members, virtual } = fleet
      const isConnected = inTime(virtual, connected(members))
      const three = Effect.gen(function*() {
        const [from, before] = yield* Effect.all([Clock.currentTimeMillis, tokenRequests])
        const calls = yield* callUntil(
          fleet,
          4 * minute,
          Effect.map(Clock.currentTimeMillis, (now) => now > from + 3 * life)
        )
        return { calls, requests: (yield* tokenRequests) - before }
      })
      const [, before, , without] = yield* Effect.all([isConnected, three, fault, three])
      const [, , after] = yield* Effect.all([end, isConnected, three])
      return { members, before, without, after }
    })
  )

/** Declares the tests of one run over nine lifetimes. */
export const testLifetimes = (
  start: Effect.Effect<
    { readonly start: Starting; readonly outage: Outage },
    never,
    Scope.Scope
  >
) =>
  describe("six members that call for nine lifetimes, three of them without the store", () => {
    const run = shared(
      Effect.gen(function*() {
        const { outage, start: startMembers } = yield* start
        const run = yield* Effect.orDie(nineLifetimes(startMembers, outage))
        return { ...run, reason: outage.reason }
      })
    )

    test.live("no call fails in nine lifetimes, three of them without the store", function*() {
      const { after, before, without } = yield* run
      for (const { calls } of [before, without, after]) allSucceed(calls)
    })

    test.live("members with one store send one token request per lifetime", function*() {
      const { after, before } = yield* run
      // A renewal begins after three quarters of a lifetime.
      for (const { requests } of [before, after]) assert.isAtMost(requests, 4)
    })

    test.live("members that lose their store each send one token request per lifetime", function*() {
      const { members, without } = yield* run
      assert.isAtLeast(without.requests, 3 * members.length)
    })

    test.live("members that lose their store for three lifetimes warn once", function*() {
      const { members, reason } = yield* run
      yield* warnedOf(members, reason)
    })
  })

/** Members call on virtual time an endpoint that repeats its token, for two tokens. Returns the number of requests. */
export const repeated = (start: Starting) =>
  onVirtualTime((own) =>
    Effect.gen(function*() {
      const { settings, tokenRequests, tokens } = yield* shop({
        tokenLife: life,
        repeatToken: true
      })
      const fleet = yield* onClock(own, start, settings)
      yield* inTime(fleet.virtual, connected(fleet.members))
      allSucceed(
        yield* callUntil(fleet, minute, Effect.map(tokens, ({ length }) => length > 2))
      )
      return yield* tokenRequests
    })
  )

export interface Outage {
  /** The reason in the warning of each member. */
  readonly reason: string
  readonly fault: Effect.Effect<unknown>
  readonly end: Effect.Effect<unknown>
  /** When the store fails. By default, once the members share a token. */
  readonly when?: "from the start" | undefined
}

/** The store of a fleet fails: each member acquires tokens and warns once, until they can share one again. */
export const outage = (start: Starting, { end, fault, reason, when }: Outage) =>
  onVirtualTime((own) =>
    Effect.gen(function*() {
      const { tokenRequests, settings } = yield* shop()
      if (when !== undefined) yield* fault
      const ofEndpoint = { attemptTimeout: "10 minutes", deadline: "10 minutes" } as const
      const brief = { ...settings, ...ofEndpoint, storeTimeout: "3 seconds" } as const
      const { members, virtual } = yield* onClock(own, start, brief)
      // The virtual milliseconds that pass in at least 10 real ones. So a store that responds may take 3 real seconds,
      // and nobody waits as long for one that does not.
      const step = /^(no response in time|ECONNREFUSED|SQLITE_BUSY)$/.test(reason) ? 100 : 10
      // A new token expires later than the old one, although the store counts its lifetime in real time.
      const isShared = Effect.zipRight(
        virtual.advance("1 minute"),
        inTime(
          virtual,
          Effect.zipRight(connected(members), expectOneRenewal(members, tokenRequests)),
          5
        )
      )
      const isNotShared = Effect.map(
        inTime(virtual, renewal(members, tokenRequests), step),
        (renewed) =>
          deepStrictEqual(renewed, { requests: members.length, tokens: members.length })
      )
      if (when === undefined) yield* Effect.zipRight(isShared, fault)
      yield* isNotShared
      yield* isNotShared
      yield* warnedOf(members, reason)
      yield* end
      yield* isShared
      yield* warnedOf(members, reason)
    })
  )

/** Of six processes, the one that acquires the token for all is killed. The others send one more token request. */
export const holderIsKilled = (program: URL, store: { readonly url: string }) =>
  Effect.gen(function*() {
    const [holder, ...others] = yield* processes(program, 6)
    assert(holder !== undefined)
    const { tokenRequests, fail, settings } = yield* shop()
    const [first] = yield* share(inThese([holder]), 1, store, {
      ...settings,
      lease: "5 seconds"
    })
    // Longer than an acquisition may take, so that only the end of the lease lets them go on.
    const members = yield* share(inThese(others), 5, store, {
      ...settings,
      maxWait: "20 minutes"
    })
    assert(first !== undefined)
    yield* fail(Fault.hang())
    const killed = yield* Effect.fork(Effect.exit(first.get))
    yield* until("it sends a token request", Effect.map(tokenRequests, (count) => count === 1))
    yield* holder.kill
    const distinct = yield* tokens(members)
    yield* warnedOf(members)
    deepStrictEqual([distinct, yield* tokenRequests, (yield* Fiber.join(killed))._tag], [
      1,
      2,
      "Failure"
    ])
  })
