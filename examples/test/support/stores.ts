/** Two stores in this process, each with its own shared token store, that serve metrics to Prometheus. */
import { NodeSdk } from "@effect/opentelemetry"
import { PrometheusExporter } from "@opentelemetry/exporter-prometheus"
import {
  AccessToken,
  AccessTokenProvider,
  ClientCredentials,
  SharedTokenSource,
  TokenSource,
  TokenStore
} from "@store-api/core"
import { Emulator } from "@store-api/emulator"
import { Context, DateTime, Effect, Layer, Logger, Redacted, type Scope } from "effect"
import { freePort } from "../../../packages/platform-node/test/utils.js"

/** No other test may use these: the series of a worker begin at zero here. */
export const names = ["scraped one", "scraped two"] as const

export interface TwoStores {
  /** The addresses at which their series are scraped. */
  readonly port: number
  /**
   * Changes the series of both stores: tokens are acquired, awaited, refused and found in the shared store, which then
   * fails.
   */
  readonly use: Effect.Effect<void>
}

const bought = Effect.map(DateTime.now, (acquiredAt) =>
  new AccessToken.AccessToken({
    value: Redacted.make("an-invented-token"),
    acquiredAt,
    expiresAt: DateTime.add(acquiredAt, { hours: 1 })
  }))

/** Adds labels as in docs/guides/telemetry.md. */
const provider = (name: string, store: TokenStore.Service) =>
  Effect.gen(function*() {
    const credentials = ClientCredentials.make(Emulator.demoClient)
    const layer = AccessTokenProvider.layer().pipe(
      // A busy machine must not look like a store that fails.
      Layer.provide(
        SharedTokenSource.layer({ authUrl: "https://auth.store.example", credentials, storeTimeout: "30 seconds" })
      ),
      Layer.provide([TokenSource.layer(() => bought), Layer.succeed(TokenStore.TokenStore, store)])
    )
    const context = yield* Effect.tagMetrics(Layer.build(layer), "store", name)
    return Context.get(context, AccessTokenProvider.AccessTokenProvider)
  }).pipe(Effect.orDie)

export const twoStores: Effect.Effect<TwoStores, never, Scope.Scope> = Effect.gen(function*() {
  const port = yield* freePort
  yield* Layer.build(NodeSdk.layer(() => ({
    resource: { serviceName: "shop" },
    metricReader: new PrometheusExporter({ host: "127.0.0.1", port, withoutScopeInfo: true })
  })))
  const uses = yield* Effect.forEach(names, (name) =>
    Effect.gen(function*() {
      const store = yield* TokenStore.makeMemory
      const down = new TokenStore.TokenStoreError({ operation: "get", reason: "ECONNREFUSED" })
      const buyer = yield* provider(name, store)
      const finder = yield* provider(name, store)
      const alone = yield* provider(name, { ...store, get: () => Effect.fail(down) })
      return Effect.gen(function*() {
        const [token] = yield* Effect.all([buyer.get, buyer.get], { concurrency: 2 })
        yield* finder.get
        yield* alone.get
        yield* buyer.invalidate(token)
      })
    }))
  return {
    port,
    use: Effect.all(uses, { discard: true }).pipe(Effect.orDie, Effect.provide(Logger.remove(Logger.defaultLogger)))
  }
})
