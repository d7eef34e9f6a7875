/** Fleets of members over one endpoint and one Redis, and tests of each fleet. */
import { assert, describe } from "@effect/vitest"
import { deepStrictEqual } from "@effect/vitest/utils"
import { Emulator, Fault, type RecordedRequest } from "@store-api/emulator"
import { Effect, Fiber, Option, Redacted, type Scope } from "effect"
import { test } from "../../../core/test/support/test.js"
import { bundle, type ChildProcess, start } from "../../../platform-node/test/support/childProcess.js"
import { shared } from "../../../platform-node/test/utils.js"
import * as Member from "./member.js"
import { onVirtualTime, proxyTo, until } from "./network.js"
import { isLeftOut, sharedRedis } from "./servers.js"

export type Members = ReadonlyArray<Member.Member>

/** Starts this number of members with these settings. Those of odd numbers get `others`, by default the same. */
export type Start = (
  count: number,
  settings: Member.Settings,
  others?: Partial<Member.Settings>
) => Effect.Effect<Members, never, Scope.Scope>

const settingsOf = (index: number, settings: Member.Settings, others: Partial<Member.Settings> = {}) => (
  index % 2 === 0 ? settings : { ...settings, ...others }
)

/** Members are providers in this process. */
export const inProcess: Start = (count, ...settings) =>
  Effect.orDie(
    Effect.forEach(Array(count).keys(), (index) => Member.make(settingsOf(index, ...settings)), {
      concurrency: "unbounded"
    })
  )

/** Runs an effect on all members at once, and returns the results. All must succeed. */
export const all = <A, E>(members: Members, order: (member: Member.Member) => Effect.Effect<A, E>) =>
  Effect.forEach(members, order, { concurrency: "unbounded" })

/** Gets a token for all members at once. Returns the number of distinct tokens. */
export const tokens = (members: Members) => Effect.map(all(members, ({ get }) => get), (all) => new Set(all).size)

/** Refreshes all members at once. Returns the number of distinct tokens and of token requests. */
export const renewal = <E>(members: Members, tokenRequests: Effect.Effect<number, E>) =>
  Effect.gen(function*() {
    const before = yield* tokenRequests
    const results = yield* all(members, ({ refresh }) => refresh)
    return { tokens: new Set(results).size, requests: (yield* tokenRequests) - before }
  })

/** Renews the token of all members. They share one. */
export const sharesOne = <E>(members: Members, tokenRequests: Effect.Effect<number, E>) =>
  Effect.map(renewal(members, tokenRequests), (renewed) => deepStrictEqual(renewed, { requests: 1, tokens: 1 }))

/** Starts this number of members with one Redis, and waits until they are connected to it. */
export const share = (
  start: Start,
  count: number,
  redis: { readonly url: string },
  settings: Member.Settings,
  others?: Partial<Member.Settings>
) => Effect.tap(start(count, { ...settings, redisUrl: redis.url }, others), connected)

const isIdle = (members: Members) =>
  Effect.map(all(members, ({ isAcquiring }) => isAcquiring), (each) => each.every((isAcquiring) => !isAcquiring))

export const connected = (members: Members) =>
  until(
    "all are connected",
    Effect.map(all(members, ({ reaches }) => reaches), (results) => results.every((reaches) => reaches))
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
    tokenRequests: Effect.map(emulator.requests, (requests) => requests.filter(({ kind }) => kind === "token").length),
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
  return { ...made, hold, release, settings: { ...made.settings, authUrl: `http://127.0.0.1:${port}` } }
})

/** An order to `child/member.ts`. */
export type Order =
  | { readonly name: "open"; readonly settings: Member.Settings }
  | { readonly name: "begin"; readonly every: number }
  | { readonly name: Exclude<keyof Member.Member, "begin"> }

/** Starts this number of processes with these environment variables. */
export const processes = (
  count: number,
  variables: Readonly<Record<string, string>> = {}
): Effect.Effect<ReadonlyArray<ChildProcess>, never, Scope.Scope> =>
  Effect.flatMap(
    bundle(new URL("../child/member.ts", import.meta.url)),
    (file) => Effect.all(Effect.replicate(start(file, variables), count))
  )

/** Starts a member with these settings in the process. */
export const open = ({ ask }: ChildProcess, settings: Member.Settings): Effect.Effect<Member.Member> => {
  const order = (order: Order) => ask(order) as Effect.Effect<never> // the result of the member's method of that name
  return Effect.as(order({ name: "open", settings }), {
    get: order({ name: "get" }),
    refresh: order({ name: "refresh" }),
    call: order({ name: "call" }),
    isAcquiring: order({ name: "isAcquiring" }),
    reaches: order({ name: "reaches" }),
    warnings: order({ name: "warnings" }),
    expiries: order({ name: "expiries" }),
    begin: (every) => order({ name: "begin", every }),
    end: order({ name: "end" })
  })
}

/** Starts members in these processes. */
export const inThese = (processes: ReadonlyArray<ChildProcess>): Start => (count, ...settings) =>
  Effect.forEach(processes.slice(0, count), (process, index) => open(process, settingsOf(index, ...settings)), {
    concurrency: "unbounded"
  })

/** A fleet of processes that the tests share, because the start of a process takes almost half a second of CPU time. */
export const fleetOfProcesses = (count: number): Effect.Effect<Start, never, Scope.Scope> =>
  Effect.map(processes(count), inThese)

/** All calls until `end` had the status 200, and each member called. */
export const allSucceed = (outcomes: ReadonlyArray<ReadonlyArray<string>>) => {
  for (const { length } of outcomes) assert.isAbove(length, 0)
  deepStrictEqual(new Set(outcomes.flat()), new Set(["200"]))
}

const limit = 120_000

/** Makes all members call the API repeatedly until `isOver`. Returns the outcomes of each member's calls. */
type Calling = (members: Members, isOver: Effect.Effect<boolean>) => Effect.Effect<ReadonlyArray<ReadonlyArray<string>>>

/** Runs a test with a clock and a way to call the API. */
type Pace = <A, E, R>(use: (calling: Calling) => Effect.Effect<A, E, R>) => Effect.Effect<A, E, R>

/** Each member calls at this interval in milliseconds. */
export const realTime = (every: number): Pace => (use) =>
  use((members, isOver) =>
    all(members, ({ begin }) => begin(every)).pipe(
      Effect.zipRight(until("it is over", isOver)),
      Effect.zipRight(all(members, ({ end }) => end))
    )
  )

/**
 * All members call at once, at this interval in milliseconds of virtual time. A round ends when no member acquires a
 * token.
 */
export const virtualTime = (every: number): Pace => (use) =>
  onVirtualTime(({ advance }) =>
    use((members, isOver) =>
      Effect.gen(function*() {
        const outcomes: Array<ReadonlyArray<string>> = []
        while (!(yield* isOver)) {
          const calling = yield* Effect.fork(
            all(
              members,
              ({ call }) => Effect.match(call, { onFailure: ({ _tag }) => _tag as string, onSuccess: String })
            )
          )
          const isDone = Effect.zipRight(advance("10 millis"), Effect.map(Fiber.poll(calling), Option.isSome))
          yield* until("all have called", isDone)
          outcomes.push(yield* Fiber.join(calling))
          yield* until("no acquisition is in flight", Effect.zipRight(advance("10 millis"), isIdle(members)))
          yield* advance(every)
        }
        return outcomes
      })
    )
  )

const isRefused = ({ status }: RecordedRequest.RecordedRequest) => Option.contains(status, 401)

/** Tests of a fleet that shares a token. Its members are providers in one process, or processes. */
export const fleetTests = ({ fleet, life, name, pace, redis = sharedRedis, size }: {
  readonly name: string
  readonly size: number
  /** Acquired once for all tests. */
  readonly fleet: Effect.Effect<Start, never, Scope.Scope>
  /** Called once for all tests. */
  readonly redis?: () => Effect.Effect<{ readonly url: string }>
  /** For the calls during several token lifetimes. */
  readonly pace: Pace
  /** The lifetime of a token, in milliseconds. A renewal begins when at most a quarter of it remains. */
  readonly life: number
}) => {
  // The API accepts a token for longer than `life`, because a call can take long on a busy machine.
  const shortLived = Effect.tap(
    shop({ tokenLife: 1.5 * life }),
    ({ fail }) => fail(Fault.fields({ expires_in: life / 1000 }, { times: Infinity }))
  )

  /**
   * The number of tokens that were acquired before three quarters of the lifetime of another one were over. A token's
   * lifetime counts from its `acquiredAt`, so a slow request does not matter. Two with the same expiry count as well.
   */
  const early = (members: Members, { tokens }: Emulator.Service) =>
    Effect.gen(function*() {
      yield* until("no acquisition is in flight", isIdle(members))
      const times = [...new Set((yield* all(members, ({ expiries }) => expiries)).flat())].sort((a, b) => a - b)
      const gaps = times.slice(1).map((time, index) => time - (times[index] ?? NaN))
      return (yield* tokens).length - times.length + gaps.filter((gap) => gap < 0.75 * life).length
    })

  describe.skipIf(isLeftOut)(name, () => {
    const [start, emptyRedis] = [shared(fleet), redis()]

    test.live("all members get a token at once: one token request, one token", function*() {
      const { tokenRequests, settings } = yield* shop()
      const members = yield* share(yield* start, size, yield* emptyRedis, settings)
      deepStrictEqual([yield* tokens(members), yield* tokenRequests], [1, 1])
      yield* warnedOf(members)
    }, limit)

    test.live("half of the members want another scope: one token request and one token for each scope", function*() {
      const made = yield* shop({ clientAuthentication: "client_secret_post" })
      const [one, other] = [{ ...made.settings, scope: "read" }, { scope: "write" }]
      const members = yield* share(yield* start, size, yield* emptyRedis, one, other)
      const held = yield* all(members, ({ get }) => get)
      assert.strictEqual(yield* made.tokenRequests, 2)
      const scopes = new Map((yield* made.tokens).map((token) => [Member.shown(token), token.scope]))
      deepStrictEqual(
        held.map((token) => scopes.get(token)),
        members.map((_, index) => index % 2 === 0 ? "read" : "write")
      )
      yield* warnedOf(members)
    }, limit)

    test.live("the token is revoked while all members call: one token request, no call fails", function*() {
      const { tokenRequests, requests, revoke, settings } = yield* shop()
      const members = yield* share(yield* start, size, yield* emptyRedis, settings)
      yield* all(members, ({ begin }) => begin(500))
      yield* all(members, ({ call }) => call)
      deepStrictEqual([yield* tokenRequests, yield* revoke()], [1, 1])
      // Each member now has a response to a call that it started after the revocation.
      yield* all(members, ({ call }) => call)
      allSucceed(yield* all(members, ({ end }) => end))
      deepStrictEqual([yield* tokenRequests, yield* tokens(members)], [2, 1])
      assert.isAtLeast((yield* requests).filter(isRefused).length, size, "the API rejects each member's token once")
      yield* warnedOf(members)
    }, limit)

    // A member renews when at most a quarter of the token's lifetime remains. Members that acquire a token each do so
    // at almost the same time.
    test.live("calls continue for several lifetimes: one token request per lifetime, no call fails", function*() {
      yield* pace((calling) =>
        Effect.gen(function*() {
          const shop = yield* shortLived
          const members = yield* share(yield* start, size, yield* emptyRedis, shop.settings)
          allSucceed(yield* calling(members, Effect.map(shop.tokenRequests, (count) => count >= 4)))
          assert.strictEqual(yield* early(members, shop), 0)
          assert.lengthOf((yield* shop.requests).filter(isRefused), 0)
          yield* warnedOf(members)
        })
      )
    }, limit)

    test.live("control: without a store, each of five members sends a token request per lifetime", function*() {
      yield* pace((calling) =>
        Effect.gen(function*() {
          const shop = yield* shortLived
          const { tokenRequests } = shop
          const members = yield* (yield* start)(5, shop.settings)
          deepStrictEqual([yield* tokens(members), yield* tokenRequests], [5, 5])
          yield* calling(members, Effect.map(tokenRequests, (count) => count >= 10))
          assert.isAbove(yield* early(members, shop), 4)
          const before = yield* tokenRequests
          yield* shop.revoke()
          yield* all(members, ({ call }) => call)
          assert.isAtLeast((yield* tokenRequests) - before, 5)
        })
      )
    }, limit)
  })
}
