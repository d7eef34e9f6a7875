/** Failures: the endpoint fails around the end of a token, or all tokens are revoked. */
import { setTimeout as pause } from "node:timers/promises"
import { AuthorizedHttpClient } from "@store-api/core"
import { Emulator, Fault } from "@store-api/emulator"
import { NodeStoreAuth } from "@store-api/platform-node"
import { Context, Effect, Layer } from "effect"
import { aheadOf, type Fault as EndpointFault, withTokenServer } from "./comparison.js"
import { inTurn, spread, sum } from "./harness.js"
import { store } from "./peers.js"

/** Ten callers around an outage of 3 s that begins `from` seconds after the end of the token. */
const measureOutage = (life: number, from: number, fault: EndpointFault) =>
  withTokenServer({ life, delay: 20 }, async (server) => {
    const client = await store.make({ server, ahead: aheadOf(life) })
    const first = await client.token()
    const dies = server.expiresAt(first)
    const begins = dies + from * 1000
    const ends = begins + 3000
    let [recovered, lost] = [Infinity, 0]
    const calling = Promise.all(Array.from({ length: 10 }, async () => {
      while (recovered === Infinity && Date.now() < ends + 10_000) {
        const value = await client.token().catch(() => undefined)
        const now = Date.now()
        if (value === undefined && now < dies) lost++
        if (value !== undefined && value !== first && now >= ends) recovered = Math.min(recovered, now)
        await pause(10)
      }
    }))
    await pause(begins - Date.now())
    server.fault = fault
    await pause(ends - Date.now())
    server.fault = undefined
    const requests = server.arrivals.filter((at) => at >= begins && at < ends).length
    await calling
    await client.close?.()
    // `recovery`: milliseconds from the end of the outage until a caller has the first new token.
    return { fault, from, requests, recovery: recovered - ends, lost }
  })

export const measureOutages = async (quick: boolean) => {
  const life = quick ? 4 : 8
  // The first outage ends when the renewal has just begun; the last begins with the last attempt.
  const phases = quick ? [-2, -0.5] : [-3.5, -3, -2.5, -2, -1.5, -1, -0.5]
  const faults = quick ? ["status 503"] as const : ["status 503", "reset", "status 503", "reset"] as const
  const outages = await Promise.all(
    phases.flatMap((from) => faults.map((fault) => measureOutage(life, from, fault)))
  )
  const requests = outages.map(({ requests }) => requests)
  return {
    count: outages.length,
    /** Token requests while the endpoint failed. */
    requests: { median: spread(requests).median, worst: Math.max(...requests) },
    recovery: spread(outages.map(({ recovery }) => recovery)).median,
    /** Calls that failed although the old token was valid. */
    lost: sum(outages.map(({ lost }) => lost)),
    slowest: outages.reduce((a, b) => a.recovery >= b.recovery ? a : b)
  }
}

export const inFlight = 200
const apiDelay = 300

const revocation = Effect.gen(function*() {
  const emulator = yield* Emulator.Emulator
  const context = yield* Layer.build(NodeStoreAuth.layer({
    ...{ authUrl: emulator.url, apiUrl: emulator.url, http: { proxy: "none" } },
    clientId: Emulator.demoClient.clientId,
    clientSecret: Emulator.demoClient.clientSecret
  }))
  const client = Context.get(context, AuthorizedHttpClient.AuthorizedHttpClient)
  const call = Effect.flatMap(client.get("/v1/orders"), (response) => Effect.as(response.text, response.status))
  yield* call
  yield* emulator.clearRequests
  yield* emulator.fail(Fault.delay(apiDelay, { on: "api", times: inFlight }))
  const calls = yield* Effect.fork(
    Effect.forEach(Array.from({ length: inFlight }), () => Effect.option(call), { concurrency: "unbounded" })
  )
  yield* Effect.sleep(apiDelay / 3)
  yield* emulator.revoke()
  const start = performance.now()
  const statuses = yield* Effect.flatten(calls.await)
  const wall = performance.now() - start
  const requests = yield* emulator.requests
  const isRejected = ({ kind, status }: typeof requests[number]) =>
    kind === "api" && status._tag === "Some" && status.value === 401
  return {
    failed: statuses.filter((status) => status._tag === "None" || status.value !== 200).length,
    tokenRequests: requests.filter(({ kind }) => kind === "token").length,
    rejected: requests.filter(isRejected).length,
    wall
  }
}).pipe(Effect.provide(Emulator.layer()), Effect.scoped)

/** All tokens are revoked while 200 requests are in flight. */
export const measureRevoked = async (repetitions: number) => {
  const runs = await inTurn(Array.from({ length: repetitions }), () => Effect.runPromise(revocation))
  return {
    repetitions,
    /** The most in any repetition, without the request for the first token. */
    failed: Math.max(...runs.map(({ failed }) => failed)),
    tokenRequests: Math.max(...runs.map(({ tokenRequests }) => tokenRequests)),
    /** The fewest 401 responses in any repetition: the requests that were in flight at the revocation. */
    rejected: Math.min(...runs.map(({ rejected }) => rejected)),
    /** Milliseconds from the revocation until the last call had its response. */
    wall: spread(runs.map(({ wall }) => wall)).median
  }
}
