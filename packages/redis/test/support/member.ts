/** One member of a fleet: a provider, a client and a token store, composed as an application composes them. */
import { createHash } from "node:crypto"
import type { HttpClientError } from "@effect/platform"
import type { AccessToken, AccessTokenError } from "@store-api/core"
import {
  AccessTokenProvider,
  AuthorizedHttpClient,
  ClientCredentials,
  SharedTokenSource,
  TokenEndpoint,
  TokenSource,
  TokenStore
} from "@store-api/core"
import { NodeHttp, NodeStoreAuth } from "@store-api/platform-node"
import { RedisTokenStore } from "@store-api/redis"
import { DateTime, type Duration, Effect, Fiber, HashMap, Layer, Logger, Redacted, type Scope } from "effect"

/** Serializable as JSON. */
export interface Settings {
  readonly authUrl: string
  readonly apiUrl: string
  readonly clientId: string
  readonly clientSecret: string
  /** A member without it shares nothing. */
  readonly redisUrl?: string
  readonly lease?: Duration.DurationInput
  readonly maxWait?: Duration.DurationInput
  readonly storeTimeout?: Duration.DurationInput
  /** Of the token endpoint. */
  readonly attemptTimeout?: Duration.DurationInput
  readonly deadline?: Duration.DurationInput
}

/** A token without its value: `token` is a digest. */
export interface Shown {
  readonly token: string
  readonly acquiredAt: number
}

export interface Warning {
  readonly message: string
  readonly annotations: Readonly<Record<string, string>>
}

type GetError = AccessTokenError.AccessTokenError

type CallError = GetError | AccessTokenError.UntrustedOriginError | HttpClientError.HttpClientError

export interface Member {
  readonly get: Effect.Effect<Shown, GetError>
  readonly refresh: Effect.Effect<Shown, GetError>
  /** One API request; its status. */
  readonly call: Effect.Effect<number, CallError>
  readonly isAcquiring: Effect.Effect<boolean>
  /** Whether the store works. */
  readonly reaches: Effect.Effect<boolean>
  /** The `acquiredAt` of each token that this member requested from the endpoint. */
  readonly acquired: Effect.Effect<ReadonlyArray<number>>
  readonly warnings: Effect.Effect<ReadonlyArray<Warning>>
  /** Starts to call the API at this interval in milliseconds. */
  readonly begin: (every: number) => Effect.Effect<void>
  /** Stops the calls that `begin` started. Returns the status or the error tag of each. */
  readonly end: Effect.Effect<ReadonlyArray<string>>
}

const shown = ({ acquiredAt, value }: AccessToken.AccessToken): Shown => ({
  token: createHash("sha256").update(Redacted.value(value)).digest("hex").slice(0, 12),
  acquiredAt: DateTime.toEpochMillis(acquiredAt)
})

/** A member shares through this store, or through the one at `redisUrl`. */
export const make = (
  settings: Settings,
  own?: Layer.Layer<TokenStore.TokenStore>
): Effect.Effect<Member, unknown, Scope.Scope> =>
  Effect.gen(function*() {
    const { apiUrl, authUrl, clientId, redisUrl } = settings
    const warnings: Array<Warning> = []
    const acquired: Array<number> = []
    const logger = Logger.make(({ annotations, logLevel, message }) => {
      if (logLevel.label !== "WARN") return
      const texts = HashMap.map(annotations, String)
      warnings.push({ message: String(message), annotations: Object.fromEntries(HashMap.toEntries(texts)) })
    })
    const credentials = ClientCredentials.make({ clientId, clientSecret: Redacted.make(settings.clientSecret) })
    const endpoint = Layer.effect(
      TokenSource.TokenSource,
      Effect.map(
        TokenEndpoint.make({ ...settings, credentials }),
        ({ acquire }) =>
          TokenSource.make((replacing) =>
            Effect.tap(acquire(replacing), (token) => Effect.sync(() => acquired.push(shown(token).acquiredAt)))
          )
      )
    )
    const shared = own ?? (redisUrl === undefined ? undefined : RedisTokenStore.layer({ url: Redacted.make(redisUrl) }))
    const store = shared ?? TokenStore.layerMemory
    const source = shared === undefined
      ? endpoint
      : SharedTokenSource.layer({ ...settings, authUrl, credentials }).pipe(Layer.provide([endpoint, store]))
    const runtime = yield* Layer.toRuntime(
      NodeStoreAuth.layerFromSource({ apiUrl }).pipe(
        Layer.provide(source),
        Layer.provide(NodeHttp.layer()),
        Layer.merge(store),
        // The fibers that ask for a token use it too.
        Layer.provideMerge(Logger.replace(Logger.defaultLogger, logger))
      )
    )
    const { get, refresh, status } = yield* Effect.provide(AccessTokenProvider.AccessTokenProvider, runtime)
    const client = yield* Effect.provide(AuthorizedHttpClient.AuthorizedHttpClient, runtime)
    const { get: look } = yield* Effect.provide(TokenStore.TokenStore, runtime)

    // A busy machine can leave a connection idle until the server closes it. Only that error is retried: a fault of the
    // token is never a `RequestError`.
    const call = client.get("/v1/orders").pipe(
      Effect.flatMap((response) => Effect.as(response.text, response.status)),
      Effect.retry({ while: ({ _tag }) => _tag === "RequestError", times: 3 }),
      Effect.provide(runtime)
    )
    let isCalling = false
    let calling: Fiber.Fiber<ReadonlyArray<string>> | undefined
    const calls = (every: number) =>
      Effect.suspend(() => {
        const outcomes: Array<string> = []
        return call.pipe(
          Effect.match({ onFailure: ({ _tag }) => _tag, onSuccess: String }),
          Effect.tap((outcome) => Effect.sync(() => outcomes.push(outcome))),
          Effect.zipRight(Effect.sleep(every)),
          Effect.repeat({ while: () => isCalling }),
          Effect.as(outcomes)
        )
      })
    const scope = yield* Effect.scope
    return {
      get: Effect.provide(Effect.map(get, shown), runtime),
      refresh: Effect.provide(Effect.map(refresh, shown), runtime),
      call,
      isAcquiring: Effect.map(status, ({ acquiring }) => acquiring),
      reaches: Effect.isSuccess(look("store-api-token-v1:any")),
      acquired: Effect.sync(() => [...acquired]),
      warnings: Effect.sync(() => [...warnings]),
      begin: (every) =>
        Effect.map(
          Effect.suspend(() => {
            isCalling = true
            return Effect.forkIn(calls(every), scope)
          }),
          (fiber) => {
            calling = fiber
          }
        ),
      end: Effect.suspend(() => {
        isCalling = false
        return calling === undefined ? Effect.succeed([]) : Fiber.join(calling)
      })
    }
  })
