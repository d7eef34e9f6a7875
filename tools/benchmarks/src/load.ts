/** Short-lived tokens under load: the callers that wait, the expired tokens, and the token requests. */
import { AccessTokenProvider, TokenSource } from "@store-api/core"
import { Effect, Option, Redacted } from "effect"
import { token } from "./harness.js"
import type { Peer } from "./peers.js"
import { aheadOf, type TokenServer, withTokenServer } from "./tokenServer.js"

export const life = 2
export const delay = 200
export const callers = 200

/** The pause between two calls of one caller. The first calls are spread over it. */
const rest = 20

export type Load = Effect.Effect.Success<ReturnType<typeof underLoad>>

/** Any library, through promises, with an endpoint over HTTP. */
export const measureLoad = (peer: Peer, seconds: number) =>
  withTokenServer({ life, delay }, async (server) => {
    const client = await peer.make({ server, ahead: aheadOf(life) })
    const load = await Effect.runPromise(underLoad(peer.name, Effect.tryPromise(client.token), seconds, server))
    await client.close?.()
    return load
  })

/** Our provider in fibers, over a source that sleeps as long as the endpoint would take. */
export const measureFibers = (seconds: number) =>
  Effect.gen(function*() {
    const arrivals: Array<number> = []
    const expiries = new Map<string, number>()
    const source = TokenSource.make(() =>
      Effect.gen(function*() {
        arrivals.push(Date.now())
        const acquired = yield* token(life * 1000)
        yield* Effect.sleep(delay)
        expiries.set(Redacted.value(acquired.value), acquired.expiresAt.epochMillis)
        return acquired
      })
    )
    const provider = yield* Effect.provideService(AccessTokenProvider.make(), TokenSource.TokenSource, source)
    const get = Effect.map(provider.get, ({ value }) => Redacted.value(value))
    const expiresAt = (value: string) => expiries.get(value) ?? Number.NaN
    return yield* underLoad("@store-api/core, fibers", get, seconds, { arrivals, expiresAt })
  }).pipe(Effect.scoped, Effect.runPromise)

/**
 * A call waited if its result came in a later turn of the event loop than the call, and more than 5 ms later. A cached
 * token is returned in the same turn, however busy the machine is, and a fiber that yields resumes within about a
 * millisecond. A caller that waits for an acquisition waits for any part of 200 ms, so 5 ms hide one in forty.
 */
const slice = 5

const underLoad = (
  name: string,
  get: Effect.Effect<string, unknown>,
  seconds: number,
  { arrivals, expiresAt }: Pick<TokenServer, "arrivals" | "expiresAt">
) =>
  Effect.gen(function*() {
    yield* Effect.orDie(get)
    const until = performance.now() + seconds * 1000
    let [calls, expired, failed, longest, turn, waited] = [0, 0, 0, 0, 0, 0]

    const call = Effect.gen(function*() {
      const [begun, at] = [turn, performance.now()]
      setImmediate(() => turn++)
      const value = yield* Effect.option(get)
      const millis = performance.now() - at
      calls++
      if (turn !== begun && millis > slice) {
        waited++
        longest = Math.max(longest, millis)
      }
      if (Option.isNone(value)) failed++
      else if (!(Date.now() < expiresAt(value.value))) expired++
      yield* Effect.sleep(rest)
    })
    yield* Effect.forEach(
      Array.from({ length: callers }, (_, caller) => rest * caller / callers),
      (wait) => Effect.delay(Effect.repeat(call, { while: () => performance.now() < until }), wait),
      { concurrency: "unbounded", discard: true }
    )
    // The token requests include the one before the load.
    return { name, calls, waited, longest, expired, failed, requests: arrivals.length }
  })
