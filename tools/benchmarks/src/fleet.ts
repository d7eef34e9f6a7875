/** A simulated fleet: many providers with shared sources over one store, in one process. */
import { AccessTokenProvider, ClientCredentials, SharedTokenSource, TokenSource, TokenStore } from "@store-api/core"
import { Effect, Exit, Option, Random, Redacted } from "effect"
import { token } from "./harness.js"
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
}

/** What to count of a fleet. */
export interface Counted {
  readonly setup: Setup
  /** The period that is counted, in milliseconds since the start, or since the second token request. */
  readonly view: readonly [from: number, to: number, since?: "renewal"]
}

/** Simulates a fleet. The same setup always has the same outcome. */
export const count = async ({ setup, view: [from, to, since] }: Counted) => {
  const { commands, requests, ...calls } = await simulate(20_260_115, (now) => simulated(setup, now))
  const start = since === undefined ? 0 : requests[1] ?? Number.NaN
  const inView = (times: ReadonlyArray<number>) => times.filter((at) => at - start >= from && at - start < to).length
  return { requests: inView(requests), commands: inView(commands), ...calls }
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
    let [calls, failed, longestWait, waited] = [0, 0, 0, 0]

    const pause = Effect.flatMap(Random.next, (chance) => Effect.sleep(chance * longestPause))

    const process = Effect.gen(function*() {
      const endpoint = TokenSource.make(() =>
        Effect.gen(function*() {
          const acquired = yield* token(life)
          requests.push(now())
          yield* Effect.sleep(setup.answer)
          return acquired
        })
      )
      const source = setup.shared
        ? yield* SharedTokenSource.make({ authUrl, credentials }).pipe(
          Effect.provideService(TokenSource.TokenSource, endpoint),
          Effect.provideService(TokenStore.TokenStore, store.service),
          Effect.orDie
        )
        : endpoint
      const provider = yield* Effect.provideService(AccessTokenProvider.make(), TokenSource.TokenSource, source)

      const call = Effect.gen(function*() {
        const from = now()
        const exit = yield* Effect.exit(provider.get)
        const wait = now() - from
        calls += 1
        if (wait > 0) waited += 1
        longestWait = Math.max(longestWait, wait)
        if (Exit.isFailure(exit)) failed += 1
      })

      if (setup.start === "spread") yield* pause
      while (true) {
        yield* call
        yield* pause
      }
    })

    for (let number = 0; number < setup.processes; number++) {
      yield* Effect.fork(Effect.scoped(process))
    }
    yield* Effect.sleep(setup.lasts)
    // A copy, because interrupted processes may still add to the original.
    return structuredClone({ requests, commands: store.commands, calls, waited, longestWait, failed })
  })

/** The bounds of the round trip to the store in milliseconds, which is random for each command. */
export const [shortestWay, longestWay] = [0.3, 1]

/** The memory store with delays, a list of when each command was sent, and outages. */
const storeOf = ({ capacity, outage }: Setup, now: Now) => {
  const commands: Array<number> = []
  let memory = Effect.runSync(TokenStore.makeMemory)
  let isEmptied = false
  let busyUntil = 0

  const sending = <A>(
    operation: TokenStore.TokenStoreError["operation"],
    command: Effect.Effect<A, TokenStore.TokenStoreError>
  ) =>
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
    })

  const service: TokenStore.Service = {
    get: (key) => sending("get", Effect.suspend(() => memory.get(key))),
    put: (key, entry, life) => sending("put", Effect.suspend(() => memory.put(key, entry, life))),
    remove: (key, entry) => sending("remove", Effect.suspend(() => memory.remove(key, entry))),
    lease: (key, duration) =>
      Effect.map(
        sending("lease", Effect.suspend(() => memory.lease(key, duration))),
        Option.map(({ extend, release }) => ({
          extend: sending("extend", extend),
          release: sending("release", release)
        }))
      )
  }
  return { commands, service }
}
