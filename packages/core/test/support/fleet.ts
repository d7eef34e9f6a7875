import {
  AccessToken,
  AccessTokenError,
  ClientCredentials,
  SharedTokenSource,
  TokenSource,
  TokenStore
} from "@store-api/core"
import { DateTime, type Duration, Effect, Exit, Fiber, Option, Redacted, Ref, TestClock } from "effect"

export const authUrl = "https://auth.shop.example/base"

export const credentialsOf = (clientId: string, clientSecret: string) =>
  Effect.orDie(ClientCredentials.make({ clientId, clientSecret: Redacted.make(clientSecret) }))

export const credentials = Effect.runSync(credentialsOf("invented-client-id", "invented-client-secret-0123456789"))

/** A token of the clock's now, with every field filled. */
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

export const valueOf = ({ value }: AccessToken.AccessToken) => Redacted.value(value)

/** The values that many acquisitions at once came to. */
export const valuesOf = (
  exits: Exit.Exit<ReadonlyArray<AccessToken.AccessToken>, unknown>
) => [...new Set(Exit.match(exits, { onFailure: () => [], onSuccess: (tokens) => tokens.map(valueOf) }))]

/** A store that shows its keys and entries, and the lives it gives them. */
export const watched = Effect.map(
  Effect.all([
    TokenStore.makeMemory,
    Ref.make<ReadonlyArray<readonly [key: string, entry: string, life: Duration.DurationInput]>>([])
  ]),
  ([store, puts]) => ({
    puts: Ref.get(puts),
    store: TokenStore.TokenStore.of({
      ...store,
      put: (key, entry, life) =>
        Effect.zipRight(Ref.update(puts, (all) => [...all, [key, entry, life] as const]), store.put(key, entry, life))
    })
  })
)

/** The endpoint of a fleet: counts what it is asked, and answers `token-1`, `token-2`, … after a while. */
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

/** A process of the fleet: its shared source, over the endpoint and the store of all. */
export const member = (
  source: TokenSource.Service,
  store: TokenStore.Service,
  options: Partial<SharedTokenSource.Options> = {}
) =>
  SharedTokenSource.make({ authUrl, credentials: Effect.succeed(credentials), ...options }).pipe(
    Effect.provideService(TokenSource.TokenSource, source),
    Effect.provideService(TokenStore.TokenStore, store)
  )

/** How many operations of the platform's cryptography run now: they take real time, in threads. */
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

/** A turn of the event loop: fibers that can go on do. */
const turn = Effect.promise(() => new Promise<void>((resolve) => setTimeout(resolve, 1)))

/** Lets everything go on that does not wait for virtual time. */
export const settled: Effect.Effect<void> = Effect.repeatN(turn, 1).pipe(
  Effect.flatMap(() => encrypting === 0 ? Effect.void : settled)
)

/**
 * Lets virtual time pass, from one awakening to the next, until the fiber ends; its exit, and how much time passed, in
 * milliseconds.
 */
export const drive = <A, E>(fiber: Fiber.Fiber<A, E>) =>
  Effect.gen(function*() {
    const started = yield* TestClock.currentTimeMillis
    while (Option.isNone(yield* Fiber.poll(fiber))) {
      yield* settled
      const next = Math.min(...(yield* TestClock.sleeps()))
      if (Option.isNone(yield* Fiber.poll(fiber)) && Number.isFinite(next)) yield* TestClock.setTime(next)
    }
    return { exit: yield* Fiber.await(fiber), took: (yield* TestClock.currentTimeMillis) - started }
  })

export const outage = new AccessTokenError.TokenRequestError({ reason: "Transport", attempts: 6 })
