/** A simulated fleet: many providers with shared sources over one store, in one process. */
import {
  AccessToken,
  AccessTokenProvider,
  ClientCredentials,
  SharedTokenSource,
  TokenSource,
  TokenStore
} from "@store-api/core"
import { DateTime, Effect, Exit, Random, Redacted } from "effect"
import * as store from "./store.js"
import { simulate, type VirtualTime } from "./virtualTime.js"

const usualSeed = 20_260_115

/** All times in milliseconds. */
export interface Setup {
  readonly processes: number
  readonly shared: boolean
  /** How long the simulation lasts. */
  readonly lasts: number
  readonly life: number
  /** Whether the endpoint returns one token, with what is left of its lifetime, until that expires. */
  readonly repeats?: boolean
  /** How long the token endpoint takes. */
  readonly answer: number
  /** The longest pause of a process between two calls. Pauses are uniformly distributed from 0. */
  readonly longestPause: number
  /** Whether the first calls of all processes are at the same moment, or after such a pause. */
  readonly start: "together" | "spread"
  /** The commands that the store executes in a second. Default: no limit. */
  readonly capacity?: number
  readonly outage?: store.Outage
  /**
   * The process that sends this token request, counted from 1, crashes before the response, while it holds the lease.
   */
  readonly dies?: number
  /** When the token is revoked; every process gets a 401 from its API at the same moment. */
  readonly revoked?: number
  /** The seed of all randomness. */
  readonly seed?: number
}

/** One acquisition of a process, from the provider's call to its result. */
export interface Acquisition {
  readonly from: number
  readonly to: number
  /** Whether it asked the token endpoint. */
  readonly asked: boolean
  /** The commands that it sent to the store. */
  readonly commands: number
}

export interface Outcome {
  /** When token requests were sent, in milliseconds since the start: all of them, and those of each process. */
  readonly requests: ReadonlyArray<number>
  readonly requestsOf: ReadonlyArray<ReadonlyArray<number>>
  readonly commands: ReadonlyArray<store.Command>
  readonly acquisitions: ReadonlyArray<Acquisition>
  readonly calls: number
  /** The calls that waited, and the longest wait. */
  readonly waited: number
  readonly longestWait: number
  readonly failed: number
}

const authUrl = "https://auth.store.example"

const credentials = Effect.runSync(
  ClientCredentials.make({ clientId: "an-invented-client", clientSecret: Redacted.make("an-invented-secret") })
)

const describe = (setup: Setup, time: VirtualTime): Effect.Effect<Outcome> =>
  Effect.gen(function*() {
    const shared = store.make({ capacity: setup.capacity, outage: setup.outage }, time)
    const requests: Array<number> = []
    const requestsOf: Array<Array<number>> = []
    const acquisitions: Array<Acquisition> = []
    let [calls, failed, longestWait, waited] = [0, 0, 0, 0]

    let last: Pick<AccessToken.AccessToken, "expiresAt" | "value"> | undefined

    /** The token of a response, from the time at which the request was sent. */
    const issue = (number: number, acquiredAt: DateTime.Utc) => {
      if (setup.repeats !== true || last === undefined || DateTime.lessThanOrEqualTo(last.expiresAt, acquiredAt)) {
        const expiresAt = DateTime.add(acquiredAt, { millis: setup.life })
        last = { value: Redacted.make(`token-${number}`), expiresAt }
      }
      const seconds = Math.floor(DateTime.distance(acquiredAt, last.expiresAt) / 1000)
      return new AccessToken.AccessToken({
        value: last.value,
        acquiredAt,
        expiresAt: DateTime.add(acquiredAt, { seconds })
      })
    }

    const pause = Effect.map(Random.next, (chance) => chance * setup.longestPause)

    const process = Effect.gen(function*() {
      const own: Array<number> = []
      requestsOf.push(own)
      let [commands, isDead] = [0, false]

      const endpoint = TokenSource.make(() =>
        Effect.gen(function*() {
          const acquiredAt = yield* DateTime.now
          const number = requests.push(time.now())
          own.push(time.now())
          if (number === setup.dies) {
            isDead = true
            return yield* Effect.never
          }
          const token = issue(number, acquiredAt)
          yield* Effect.sleep(setup.answer)
          return token
        })
      )

      const counted = <A>(command: Effect.Effect<A, TokenStore.TokenStoreError>) =>
        Effect.suspend(() => {
          commands += 1
          return isDead ? Effect.never : command
        })

      const toStore = TokenStore.TokenStore.of({
        get: (key) => counted(shared.service.get(key)),
        put: (key, entry, life) => counted(shared.service.put(key, entry, life)),
        remove: (key, entry) => counted(shared.service.remove(key, entry)),
        lease: (key, duration) =>
          Effect.map(counted(shared.service.lease(key, duration)), (lease) =>
            lease._tag === "None" ? lease : {
              ...lease,
              value: { extend: counted(lease.value.extend), release: counted(lease.value.release) }
            })
      })

      const source = setup.shared
        ? yield* SharedTokenSource.make({ authUrl, credentials: Effect.succeed(credentials) }).pipe(
          Effect.provideService(TokenSource.TokenSource, endpoint),
          Effect.provideService(TokenStore.TokenStore, toStore),
          Effect.orDie
        )
        : endpoint

      const observed = TokenSource.make((replacing) =>
        Effect.suspend(() => {
          const from = time.now()
          const [requestsBefore, commandsBefore] = [own.length, commands]
          return Effect.ensuring(
            source.acquire(replacing),
            Effect.sync(() =>
              acquisitions.push({
                from,
                to: time.now(),
                asked: own.length > requestsBefore,
                commands: commands - commandsBefore
              })
            )
          )
        })
      )

      const provider = yield* AccessTokenProvider.make().pipe(
        Effect.provideService(TokenSource.TokenSource, observed)
      )

      const call = Effect.gen(function*() {
        const from = time.now()
        const exit = yield* Effect.exit(provider.get)
        const wait = time.now() - from
        calls += 1
        if (wait > 0) waited += 1
        if (wait > longestWait) longestWait = wait
        if (Exit.isFailure(exit)) failed += 1
        return exit
      })

      if (setup.revoked !== undefined) {
        yield* Effect.fork(Effect.gen(function*() {
          yield* Effect.sleep(setup.revoked ?? 0)
          const exit = yield* call
          if (Exit.isSuccess(exit)) yield* provider.invalidate(exit.value)
          yield* call
        }))
      }

      if (setup.start === "spread") yield* Effect.sleep(yield* pause)
      while (!isDead) {
        yield* call
        yield* Effect.sleep(yield* pause)
      }
    })

    for (let number = 0; number < setup.processes; number++) yield* Effect.fork(Effect.scoped(process))
    yield* Effect.sleep(setup.lasts)
    // Copies, because interrupted processes may still add to the originals.
    return {
      ...{ requests: [...requests], requestsOf: requestsOf.map((own) => [...own]), commands: [...shared.commands] },
      ...{ acquisitions: [...acquisitions], calls, waited, longestWait, failed }
    }
  })

/** Simulates a fleet. The same setup always has the same outcome. */
export const outcomeOf = (setup: Setup): Promise<Outcome> =>
  simulate(setup.seed ?? usualSeed, (time) => describe(setup, time))
