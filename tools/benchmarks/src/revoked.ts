/** All tokens are revoked while 200 requests are in flight. */
import { AuthorizedHttpClient } from "@store-api/core"
import { Emulator, Fault } from "@store-api/emulator"
import { NodeStoreAuth } from "@store-api/platform-node"
import { Context, Effect, Layer } from "effect"
import { type Spread, spread } from "./harness.js"

export interface Revoked {
  readonly repetitions: number
  /** The most in any repetition. */
  readonly failed: number
  /** The most in any repetition, without those for the first token. */
  readonly tokenRequests: number
  /** The fewest 401 responses in any repetition: the requests that were in flight at the revocation. */
  readonly rejected: number
  /** Milliseconds from the revocation until the last call had its response. */
  readonly wall: Spread
}

export const inFlight = 200
const apiDelay = 300

const once = Effect.gen(function*() {
  const emulator = yield* Emulator.Emulator
  const context = yield* Layer.build(NodeStoreAuth.layer({
    authUrl: emulator.url,
    apiUrl: emulator.url,
    clientId: Emulator.demoClient.clientId,
    clientSecret: Emulator.demoClient.clientSecret,
    http: { proxy: "none" }
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
  const statuses = yield* calls.await.pipe(Effect.flatten)
  const wall = performance.now() - start
  const requests = yield* emulator.requests
  return {
    failed: statuses.filter((status) => status._tag === "None" || status.value !== 200).length,
    tokenRequests: requests.filter(({ kind }) => kind === "token").length,
    rejected: requests.filter(({ kind, status }) => kind === "api" && status._tag === "Some" && status.value === 401)
      .length,
    wall
  }
})

export const measureRevoked = async (repetitions: number): Promise<Revoked> => {
  const runs = []
  for (let i = 0; i < repetitions; i++) {
    runs.push(await once.pipe(Effect.provide(Emulator.layer()), Effect.scoped, Effect.runPromise))
  }
  return {
    repetitions,
    failed: Math.max(...runs.map(({ failed }) => failed)),
    tokenRequests: Math.max(...runs.map(({ tokenRequests }) => tokenRequests)),
    rejected: Math.min(...runs.map(({ rejected }) => rejected)),
    wall: spread(runs.map(({ wall }) => wall))
  }
}
