/** One cached call as a promise: `Effect.runPromise(get)`, and the peers in their own form. */
import { AccessTokenProvider, TokenSource } from "@store-api/core"
import { Effect, Exit, Scope } from "effect"
import { alternate, awaiting, nanoseconds, ratio, type Spread } from "./harness.js"
import { aheadOf, peers } from "./peers/index.js"
import { token } from "./sample.js"
import { withTokenServer } from "./tokenServer.js"

export interface Call {
  readonly name: string
  readonly ns: Spread
  /** To `Effect.runPromise(Effect.succeed(x))`. */
  readonly ratio: Spread
}

export const baseline = "Effect.runPromise(Effect.succeed(x))"
export const ours = "Effect.runPromise(provider.get)"

const hour = 3600

export const measureCalls = (millis: number): Promise<ReadonlyArray<Call>> =>
  withTokenServer({ life: hour, delay: 0, fault: "none" }, async (server) => {
    const scope = await Effect.runPromise(Scope.make())
    const provider = await Effect.runPromise(
      AccessTokenProvider.make().pipe(
        Effect.provideService(TokenSource.TokenSource, TokenSource.make(() => token(hour * 1000))),
        Scope.extend(scope)
      )
    )
    const succeed = Effect.succeed(await Effect.runPromise(token(hour * 1000)))
    const cached = peers.filter(({ caches, name }) => caches && name !== "@store-api/core")
    const clients = await Promise.all(
      cached.map(async (peer) => ({ peer, client: await peer.make({ server, ahead: aheadOf(hour) }) }))
    )
    for (const { client } of clients) await client.get()
    const asked = server.arrivals.length
    const rounds = await alternate([
      awaiting(baseline, () => Effect.runPromise(succeed)),
      awaiting(ours, () => Effect.runPromise(provider.get)),
      ...clients.map(({ client, peer }) => awaiting(peer.name, client.get))
    ], millis)
    if (server.arrivals.length !== asked) throw new Error("A cached call sent a token request.")
    for (const { client } of clients) await client.close()
    await Effect.runPromise(Scope.close(scope, Exit.void))
    return Object.keys(rounds).map((name) => ({
      name,
      ns: nanoseconds(rounds, name),
      ratio: ratio(rounds, name, baseline)
    }))
  })
