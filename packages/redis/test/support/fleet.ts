/** A fleet of members over one endpoint and one Redis. */
import { Emulator } from "@store-api/emulator"
import { Clock, Effect, Option, Redacted, type Scope } from "effect"
import * as VirtualClock from "../../../core/test/support/virtualClock.js"
import { bundle, type ChildProcess, start } from "../../../platform-node/test/support/childProcess.js"
import * as Member from "./member.js"
import { proxyTo } from "./proxy.js"

export type Members = ReadonlyArray<Member.Member>

/** Starts this number of members with these settings. */
export type Start = (count: number, settings: Member.Settings) => Effect.Effect<Members, never, Scope.Scope>

/** Members are providers in this process. */
export const inProcess: Start = (count, settings) =>
  Effect.orDie(Effect.all(Effect.replicate(Member.make(settings), count), { concurrency: "unbounded" }))

/** Runs an effect on all members at once, and returns the results. All must succeed. */
export const all = <A, E>(members: Members, order: (member: Member.Member) => Effect.Effect<A, E>) =>
  Effect.forEach(members, order, { concurrency: "unbounded" })

/** The distinct tokens. */
export const tokensOf = (results: ReadonlyArray<Member.Shown>): ReadonlyArray<string> => [
  ...new Set(results.map(({ token }) => token))
]

/** Gets a token for all members at once. Returns the number of distinct tokens. */
export const tokens = (members: Members) =>
  Effect.map(all(members, ({ get }) => get), (results) => tokensOf(results).length)

/** Refreshes all members at once. Returns the number of distinct tokens and of token requests. */
export const renewal = <E>(members: Members, tokenRequests: Effect.Effect<number, E>) =>
  Effect.gen(function*() {
    const before = yield* tokenRequests
    const results = yield* all(members, ({ refresh }) => refresh)
    return { tokens: tokensOf(results).length, requests: (yield* tokenRequests) - before }
  })

/** Starts this number of members with one Redis, and waits until they are connected to it. */
export const share = (
  start: Start,
  count: number,
  redis: { readonly url: string },
  settings: Member.Settings
) => Effect.tap(start(count, { ...settings, redisUrl: redis.url }), connected)

export const connected = (members: Members) =>
  until(
    "all are connected",
    Effect.map(all(members, ({ reaches }) => reaches), (results) => results.every((reaches) => reaches))
  )

/** The warnings of each member. */
export const warningsOf = (members: Members) => all(members, ({ warnings }) => warnings)

/** The reasons of each member's warnings. */
export const reasonsOf = (members: Members) =>
  Effect.map(
    warningsOf(members),
    (warnings) => warnings.map((of) => of.map(({ annotations }) => annotations["reason"]))
  )

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

/** Waits at most a minute of real time until the condition holds. */
export const until = <E, R>(description: string, condition: Effect.Effect<boolean, E, R>): Effect.Effect<void, E, R> =>
  Effect.clockWith((clock) =>
    Effect.withClock(condition, clock).pipe(
      Effect.zipLeft(Effect.sleep("10 millis")),
      Effect.repeat({ until: (is) => is }),
      Effect.timeoutOption("1 minute"),
      Effect.flatMap(Option.match({
        onNone: () => Effect.dieMessage(`The condition did not hold within a minute: ${description}`),
        onSome: () => Effect.void
      })),
      Effect.withClock(Clock.make())
    )
  )

/** Runs the body on a clock that only the body advances. The network takes real time. */
export const onVirtualTime = <A, E, R>(body: (virtual: VirtualClock.VirtualClock) => Effect.Effect<A, E, R>) =>
  Effect.suspend(() => {
    const virtual = VirtualClock.make()
    return Effect.withClock(body(virtual), virtual.clock)
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
    acquired: order({ name: "acquired" }),
    warnings: order({ name: "warnings" }),
    begin: (every) => order({ name: "begin", every }),
    end: order({ name: "end" })
  })
}

/** A fleet of processes that the tests share, because the start of a process takes almost half a second of CPU time. */
export const fleetOfProcesses = (count: number): Effect.Effect<Start, never, Scope.Scope> =>
  Effect.map(
    processes(count),
    (all): Start => (count, settings) =>
      Effect.forEach(all.slice(0, count), (process) => open(process, settings), { concurrency: "unbounded" })
  )
