/** Short-lived tokens under load: the callers that wait, the expired tokens, and the token requests. */
import { type AccessToken, AccessTokenProvider, TokenSource } from "@store-api/core"
import { Effect, Redacted } from "effect"
import { max, pause } from "./harness.js"
import { aheadOf } from "./peers/index.js"
import type { Peer } from "./peers/Peer.js"
import { token } from "./sample.js"
import { withTokenServer } from "./tokenServer.js"

export const life = 2
export const delay = 200
export const callers = 200

/** The pause between two calls of one caller. The first calls are spread over it. */
const rest = 20

/** Times are milliseconds since the load began. */
export interface Load {
  readonly name: string
  readonly calls: number
  readonly waited: number
  readonly longest: number
  readonly expired: number
  readonly failed: number
  /** Token requests, including the one before the load. */
  readonly requests: number
  readonly flights: ReadonlyArray<{ readonly from: number; readonly to: number }>
  readonly waits: ReadonlyArray<{ readonly at: number; readonly millis: number }>
}

/**
 * A call waited if its result came in a later turn of the event loop than the call, and more than 5 ms later. A cached
 * token is returned in the same turn, however busy the machine is, and a fiber that yields resumes within about a
 * millisecond. A caller that waits for an acquisition waits for any part of 200 ms, so 5 ms hide one in forty.
 */
const slice = 5

const recorder = (expiresAt: (value: string) => number) => {
  const origin = Date.now()
  const start = performance.now()
  const waits: Array<{ at: number; millis: number }> = []
  let turn = 0
  let watching = false
  let calls = 0
  let expired = 0
  let failed = 0
  return {
    origin,
    begin: () => {
      if (!watching) {
        watching = true
        setImmediate(() => {
          turn++
          watching = false
        })
      }
      return { turn, at: performance.now() }
    },
    end: (begun: { readonly turn: number; readonly at: number }, value: string | undefined) => {
      calls++
      const millis = performance.now() - begun.at
      if (begun.turn !== turn && millis > slice) waits.push({ at: begun.at - start, millis })
      if (value === undefined) failed++
      else if (!(Date.now() < expiresAt(value))) expired++
    },
    result: (name: string, arrivals: ReadonlyArray<{ readonly at: number; readonly answeredAt: number }>): Load => ({
      name,
      calls,
      waited: waits.length,
      longest: Math.max(max(waits.map(({ millis }) => millis)), 0),
      expired,
      failed,
      requests: arrivals.length,
      flights: arrivals.map(({ answeredAt, at }) => ({ from: at - origin, to: answeredAt - origin })),
      waits
    })
  }
}

/** Any library, through promises, with an endpoint over HTTP. */
export const measureLoad = (peer: Peer, seconds: number): Promise<Load> =>
  withTokenServer({ life, delay, fault: "none" }, async (server) => {
    const client = await peer.make({ server, ahead: aheadOf(life) })
    await client.token()
    const record = recorder(server.expiresAt)
    const until = performance.now() + seconds * 1000
    await Promise.all(Array.from({ length: callers }, async (_, caller) => {
      await pause(rest * caller / callers)
      while (performance.now() < until) {
        const begun = record.begin()
        record.end(begun, await client.token().catch(() => undefined))
        await pause(rest)
      }
    }))
    const load = record.result(peer.name, server.arrivals.slice())
    await client.close()
    return load
  })

/** Our provider in fibers, over a source that sleeps as long as the endpoint would take. */
export const measureFibers = (seconds: number): Promise<Load> =>
  Effect.gen(function*() {
    const arrivals: Array<{ at: number; answeredAt: number }> = []
    const expiries = new Map<string, number>()
    const acquire: TokenSource.Service["acquire"] = () =>
      Effect.gen(function*() {
        const arrival = { at: Date.now(), answeredAt: Number.NaN }
        arrivals.push(arrival)
        const acquired: AccessToken.AccessToken = yield* token(life * 1000)
        yield* Effect.sleep(delay)
        expiries.set(Redacted.value(acquired.value), acquired.expiresAt.epochMillis)
        arrival.answeredAt = Date.now()
        return acquired
      })
    const provider = yield* Effect.provideService(
      AccessTokenProvider.make(),
      TokenSource.TokenSource,
      TokenSource.make(acquire)
    )
    yield* provider.get
    const record = recorder((value) => expiries.get(value) ?? Number.NaN)
    const until = performance.now() + seconds * 1000
    const caller = Effect.gen(function*() {
      while (performance.now() < until) {
        const begun = record.begin()
        const value = yield* Effect.option(provider.get)
        record.end(begun, value._tag === "Some" ? Redacted.value(value.value.value) : undefined)
        yield* Effect.sleep(rest)
      }
    })
    yield* Effect.forEach(
      Array.from({ length: callers }, (_, caller) => rest * caller / callers),
      (wait) => Effect.delay(caller, wait),
      { concurrency: "unbounded", discard: true }
    )
    return record.result("@store-api/core, fibers", arrivals)
  }).pipe(Effect.scoped, Effect.runPromise)
