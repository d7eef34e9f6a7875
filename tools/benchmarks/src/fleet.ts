/** A simulated fleet: many providers with shared sources over one store, in one process. */
import {
  AccessToken,
  AccessTokenProvider,
  ClientCredentials,
  SharedTokenSource,
  TokenSource,
  TokenStore
} from "@store-api/core"
import { DateTime, Effect, Exit, Option, Random, Redacted } from "effect"
import { max, sum } from "./harness.js"
import { type Now, simulate } from "./virtualTime.js"

/** The lifetime of tokens, and the longest pause of a process between two calls. Pauses are uniform from 0. */
const [life, longestPause] = [3_600_000, 60_000]

/** All times in milliseconds. */
export interface Setup {
  readonly processes: number
  readonly shared: boolean
  /** How long the simulation lasts. */
  readonly lasts: number
  /** How long the token endpoint takes. */
  readonly answer: number
  /** Whether the first calls of all processes are at the same moment, or after such a pause. */
  readonly start: "together" | "spread"
  /** The commands that the store executes in a second, one after the other. Without it, any number at once. */
  readonly capacity?: number
  /** When the store refuses connections. Its entries are lost. */
  readonly outage?: { readonly from: number; readonly to: number }
  /** The process that sends this token request, counted from 1, crashes before the response, holding the lease. */
  readonly dies?: number
  /** When the token is revoked; every process gets a 401 from its API at the same moment. */
  readonly revoked?: number
}

/** What to count of a fleet. */
export interface Counted {
  readonly setup: Setup
  /** The period that is counted, in milliseconds since the start, or since the second token request. */
  readonly view: readonly [from: number, to: number, since?: "renewal"]
  /** Whether `requests` are the renewals an hour, between the first and the last of each process or of the fleet. */
  readonly perHour?: true
}

/** Simulates a fleet. The same setup always has the same outcome. */
export const count = async ({ perHour, setup, view: [from, to, since] }: Counted) => {
  const { commands, requests, requestsOf, ...calls } = await simulate(20_260_115, (now) => simulated(setup, now))
  const start = since === undefined ? 0 : requests[1] ?? Number.NaN
  const inView = (times: ReadonlyArray<number>) => times.filter((at) => at - start >= from && at - start < to)
  const [sent, asked] = [inView(commands), inView(requests)]
  const streams = setup.shared ? [requests] : requestsOf
  const time = sum(streams.map((stream) => (stream.at(-1) ?? 0) - (stream[0] ?? 0)))
  const rate = streams.length * sum(streams.map(({ length }) => length - 1)) / time * 3_600_000
  return {
    requests: perHour === undefined ? asked.length : rate,
    commands: sent.length,
    mostCommands: busiest(sent, 100),
    mostRequests: busiest(asked, 1000),
    ...calls
  }
}

/** The most of these times within one period of this length. */
const busiest = (times: ReadonlyArray<number>, length: number): number => {
  const periods = new Map<number, number>()
  for (const time of times) {
    const period = Math.floor(time / length)
    periods.set(period, (periods.get(period) ?? 0) + 1)
  }
  return max([...periods.values()])
}

const authUrl = "https://auth.store.example"

const credentials = ClientCredentials.make({
  clientId: "an-invented-client",
  clientSecret: Redacted.make("an-invented-secret")
})

const simulated = (setup: Setup, now: Now) =>
  Effect.gen(function*() {
    const store = storeOf(setup, now)
    const requests: Array<number> = []
    const requestsOf: Array<Array<number>> = []
    let [calls, failed, longestWait, waited] = [0, 0, 0, 0]

    const pause = Effect.flatMap(Random.next, (chance) => Effect.sleep(chance * longestPause))

    const process = Effect.gen(function*() {
      const own: Array<number> = []
      requestsOf.push(own)
      const state = { isDead: false }

      const endpoint = TokenSource.make(() =>
        Effect.gen(function*() {
          const acquiredAt = yield* DateTime.now
          const number = requests.push(now())
          own.push(now())
          if (number === setup.dies) {
            state.isDead = true
            return yield* Effect.never
          }
          yield* Effect.sleep(setup.answer)
          return new AccessToken.AccessToken({
            value: Redacted.make(`token-${number}`),
            acquiredAt,
            expiresAt: DateTime.add(acquiredAt, { millis: life })
          })
        })
      )
      const ownStore = mapCommands(() => store.service, (_, command) =>
        Effect.suspend(() => state.isDead ? Effect.never : command))
      const source = setup.shared
        ? yield* SharedTokenSource.make({ authUrl, credentials }).pipe(
          Effect.provideService(TokenSource.TokenSource, endpoint),
          Effect.provideService(TokenStore.TokenStore, ownStore),
          Effect.orDie
        )
        : endpoint
      const provider = yield* Effect.provideService(AccessTokenProvider.make(), TokenSource.TokenSource, source)

      const call = Effect.gen(function*() {
        const from = now()
        const exit = yield* Effect.exit(provider.get)
        const wait = now() - from
        calls += 1
        if (wait > 0) {
          waited += 1
        }
        longestWait = Math.max(longestWait, wait)
        if (Exit.isFailure(exit)) {
          failed += 1
        }
        return exit
      })

      if (setup.revoked !== undefined) {
        const replaced = Effect.gen(function*() {
          const exit = yield* call
          if (Exit.isSuccess(exit)) {
            yield* provider.invalidate(exit.value)
          }
          yield* call
        })
        yield* Effect.fork(Effect.delay(replaced, setup.revoked))
      }
      if (setup.start === "spread") {
        yield* pause
      }
      while (!state.isDead) {
        yield* call
        yield* pause
      }
    })

    for (let number = 0; number < setup.processes; number++) {
      yield* Effect.fork(Effect.scoped(process))
    }
    yield* Effect.sleep(setup.lasts)
    // A copy, because interrupted processes may still add to the original.
    return structuredClone({ requestsOf, requests, commands: store.commands, calls, waited, longestWait, failed })
  })

/** The bounds of the round trip to the store in milliseconds, which is random for each command. */
export const [shortestWay, longestWay] = [0.3, 1]

/** The memory store with delays, a list of when each command was sent, and outages. */
const storeOf = ({ capacity, outage }: Setup, now: Now) => {
  const commands: Array<number> = []
  let memory = Effect.runSync(TokenStore.makeMemory)
  let isEmptied = false
  let busyUntil = 0

  const service = mapCommands(() => memory, (operation, command) =>
    Effect.gen(function*() {
      const sent = now()
      if (outage !== undefined && sent >= outage.from && sent < outage.to) {
        return yield* new TokenStore.TokenStoreError({ operation, reason: "ECONNREFUSED" })
      }
      if (outage !== undefined && sent >= outage.to && !isEmptied) {
        memory = Effect.runSync(TokenStore.makeMemory)
        isEmptied = true
      }
      commands.push(sent)
      const way = shortestWay + (longestWay - shortestWay) * (yield* Random.next)
      if (capacity === undefined) yield* Effect.sleep(way)
      else {
        // In the order of arrival, also when the caller no longer waits for the response.
        busyUntil = Math.max(busyUntil, sent + way / 2) + 1000 / capacity
        yield* Effect.sleep(busyUntil - sent + way / 2)
      }
      return yield* command
    }))

  return { commands, service }
}

type Change = <A>(
  operation: TokenStore.TokenStoreError["operation"],
  command: Effect.Effect<A, TokenStore.TokenStoreError>
) => Effect.Effect<A, TokenStore.TokenStoreError>

/** A store whose commands, with those of its leases, are changed alike. */
const mapCommands = (store: () => TokenStore.Service, change: Change): TokenStore.Service => ({
  get: (key) => change("get", Effect.suspend(() => store().get(key))),
  put: (key, entry, life) => change("put", Effect.suspend(() => store().put(key, entry, life))),
  remove: (key, entry) => change("remove", Effect.suspend(() => store().remove(key, entry))),
  lease: (key, duration) =>
    change("lease", Effect.suspend(() => store().lease(key, duration))).pipe(
      Effect.map(Option.map(({ extend, release }) => ({
        extend: change("extend", extend),
        release: change("release", release)
      })))
    )
})
