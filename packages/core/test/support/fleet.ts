import { AccessToken, type AccessTokenError, ClientCredentials, SharedTokenSource, TokenSource } from "@store-api/core"
import { TokenStore } from "@store-api/core"
import { DateTime, type Duration, Effect, Exit, Fiber, Option, Redacted, Ref, TestClock } from "effect"
import { Renewal } from "../../src/internal/renewal.js"
import { nextWakeUp, watchSleeps } from "./effectLine.js"
import { type Acquisition, outcomeOf, settle, valueOf } from "./scriptedSource.js"

export const authUrl = "https://auth.shop.example/base"

/** What the shared token is for. */
export const purpose = { url: `${authUrl}/v1/oauth/accesstoken`, identity: "" }

export const credentialsOf = (clientId: string, clientSecret: string) =>
  Effect.orDie(ClientCredentials.make({ clientId, clientSecret: Redacted.make(clientSecret) }))

export const credentials = Effect.runSync(credentialsOf("invented-client-id", "invented-client-secret-0123456789"))

/** A token that is acquired now, by the clock in the context, with a value in every field. */
export const fullToken = (value: string, minutes = 60) =>
  Effect.map(DateTime.now, (acquiredAt) =>
    new AccessToken.AccessToken({
      value: Redacted.make(value),
      scope: "read write",
      acquiredAt,
      expiresAt: DateTime.add(acquiredAt, { minutes }),
      applicationName: Option.some("an application"),
      developerEmail: Option.some(Redacted.make("developer@shop.example")),
      issuedAt: Option.some("1767225600000"),
      clientId: Option.some("invented-client-id")
    }))

/** The distinct token values of concurrent acquisitions. */
export const valuesOf = (
  exits: Exit.Exit<ReadonlyArray<AccessToken.AccessToken>, unknown>
) => [...new Set(Exit.match(exits, { onFailure: () => [], onSuccess: (tokens) => tokens.map(valueOf) }))]

/** A store that records the key, the entry and the lifetime of every `put`. */
export const watched = Effect.map(
  Effect.all([
    TokenStore.makeMemory,
    Ref.make<ReadonlyArray<readonly [key: string, entry: string, lifetime: Duration.DurationInput]>>([])
  ]),
  ([store, puts]) => ({
    puts: Ref.get(puts),
    store: TokenStore.TokenStore.of({
      ...store,
      put: (key, entry, lifetime) =>
        Effect.zipRight(
          Ref.update(puts, (all) => [...all, [key, entry, lifetime] as const]),
          store.put(key, entry, lifetime)
        )
    })
  })
)

/** The endpoint of a fleet. Counts the requests, and returns `token-1`, `token-2`, … after `takes` milliseconds. */
export const endpoint = (options: {
  readonly takes?: number
  readonly answer?: (
    number: number,
    replacing: Option.Option<AccessToken.AccessToken>
  ) => Effect.Effect<AccessToken.AccessToken, AccessTokenError.AccessTokenError>
} = {}) =>
  Effect.map(Ref.make(0), (count) => ({
    requests: Ref.get(count),
    source: TokenSource.make((replacing) =>
      Effect.gen(function*() {
        const number = yield* Ref.updateAndGet(count, (n) => n + 1)
        if (options.takes !== undefined) yield* Effect.sleep(options.takes)
        return yield* options.answer?.(number, replacing) ?? fullToken(`token-${number}`)
      })
    )
  }))

/** The shared source of one process of the fleet, over the common endpoint and store. */
export const member = (
  source: TokenSource.Service,
  store: TokenStore.Service,
  options: Partial<SharedTokenSource.Options> = {}
) =>
  Effect.zipRight(
    watchSleeps,
    SharedTokenSource.make({ authUrl, credentials: Effect.succeed(credentials), ...options })
  ).pipe(Effect.provideService(TokenSource.TokenSource, source), Effect.provideService(TokenStore.TokenStore, store))

/** A process of a fleet. */
export interface Member {
  readonly shared: TokenSource.Service
  /** Acquires a token. An API has rejected the given one. */
  readonly get: (rejected?: AccessToken.AccessToken) => Acquisition
  /** Renews the cached token. */
  readonly renew: (cached: AccessToken.AccessToken) => Acquisition
}

/** A fleet over one endpoint and one store. `start` starts a process, which may reach the store in its own way. */
export const fleet = (options: Parameters<typeof endpoint>[0] = {}) =>
  Effect.map(Effect.all([endpoint(options), watched]), ([{ requests, source }, { puts, store }]) => ({
    requests,
    source,
    puts,
    store,
    start: ({ store: own = store, ...options }: Partial<SharedTokenSource.Options> & {
      readonly store?: TokenStore.Service
    } = {}) =>
      Effect.map(member(source, own, options), (shared): Member => ({
        shared,
        get: (rejected) => shared.acquire(Option.fromNullable(rejected)),
        renew: (cached) => Effect.provideService(shared.acquire(Option.some(cached)), Renewal, true)
      }))
  }))

/** Runs calls at once by virtual time. Returns their distinct outcomes, and how long they took, in milliseconds. */
export const timed = (...calls: ReadonlyArray<Acquisition>) =>
  Effect.gen(function*() {
    const all = Effect.forEach(calls, outcomeOf, { concurrency: "unbounded" })
    const { exit, took } = yield* drive(yield* Effect.fork(all))
    return [[...new Set(yield* exit)].sort().join(), took] as const
  })

/** The number of running Web Crypto operations. They run in threads and take real time. */
let encrypting = 0

for (const name of ["importKey", "deriveKey", "deriveBits", "encrypt", "decrypt"] as const) {
  const original: (...args: Array<never>) => Promise<unknown> = crypto.subtle[name].bind(crypto.subtle)
  Object.defineProperty(crypto.subtle, name, {
    configurable: true,
    value: (...args: Array<never>) => {
      encrypting += 1
      return original(...args).finally(() => {
        encrypting -= 1
      })
    }
  })
}

/** Waits until every fiber waits for virtual time. */
export const settled: Effect.Effect<void> = Effect.repeatN(settle, 1).pipe(
  Effect.flatMap(() => encrypting === 0 ? Effect.void : settled)
)

/**
 * Advances virtual time from one wake-up to the next until the fiber ends. Returns its exit and the time that passed,
 * in milliseconds.
 */
export const drive = <A, E>(fiber: Fiber.Fiber<A, E>) =>
  Effect.gen(function*() {
    const started = yield* TestClock.currentTimeMillis
    while (Option.isNone(yield* Fiber.poll(fiber))) {
      yield* settled
      const next = yield* nextWakeUp
      if (Option.isNone(yield* Fiber.poll(fiber)) && Number.isFinite(next)) yield* TestClock.setTime(next)
    }
    return { exit: yield* Fiber.await(fiber), took: (yield* TestClock.currentTimeMillis) - started }
  })
