/** One member of a fleet: a provider, a client and a token store, composed as an application composes them. */
import { createHash } from "node:crypto"
import type { HttpClientError } from "@effect/platform"
import type { AccessToken, AccessTokenError } from "@store-api/core"
import { AccessTokenProvider, AuthorizedHttpClient, TokenRequest, TokenStore } from "@store-api/core"
import { NodeStoreAuth } from "@store-api/platform-node"
import { RedisTokenStore } from "@store-api/redis"
import { type Duration, Effect, Fiber, HashMap, Layer, Logger, LogLevel, Redacted, type Scope } from "effect"

/** Serializable as JSON. */
export interface Settings {
  readonly authUrl: string
  readonly apiUrl: string
  readonly clientId: string
  readonly clientSecret: string
  /** A member without it sends the request of the specification. */
  readonly scope?: string
  /** A member without it shares nothing. */
  readonly redisUrl?: string
  readonly lease?: Duration.DurationInput
  readonly maxWait?: Duration.DurationInput
  readonly storeTimeout?: Duration.DurationInput
  /** Of the token endpoint. */
  readonly attemptTimeout?: Duration.DurationInput
  readonly deadline?: Duration.DurationInput
}

export interface Warning {
  readonly message: string
  readonly annotations: Readonly<Record<string, string>>
}

type GetError = AccessTokenError.AccessTokenError

type CallError = GetError | AccessTokenError.UntrustedOriginError | HttpClientError.HttpClientError

export interface Member {
  /** A digest of the token. */
  readonly get: Effect.Effect<string, GetError>
  readonly refresh: Effect.Effect<string, GetError>
  /** One API request; its status. */
  readonly call: Effect.Effect<number, CallError>
  readonly isAcquiring: Effect.Effect<boolean>
  /** Whether the store works. */
  readonly reaches: Effect.Effect<boolean>
  readonly warnings: Effect.Effect<ReadonlyArray<Warning>>
  /** When each token expires that the provider acquired, or found in the store. In milliseconds. */
  readonly expiries: Effect.Effect<ReadonlyArray<number>>
  /** Starts to call the API at this interval in milliseconds. */
  readonly begin: (every: number) => Effect.Effect<void>
  /** Stops the calls that `begin` started. Returns the status or the error tag of each. */
  readonly end: Effect.Effect<ReadonlyArray<string>>
}

export const shown = ({ value }: Pick<AccessToken.AccessToken, "value">): string =>
  createHash("sha256").update(Redacted.value(value)).digest("hex").slice(0, 12)

/** A member shares through this store, or through the one at `redisUrl`. */
export const make = (
  settings: Settings,
  own?: Layer.Layer<TokenStore.TokenStore>
): Effect.Effect<Member, unknown, Scope.Scope> =>
  Effect.gen(function*() {
    const { attemptTimeout, deadline, lease, maxWait, redisUrl, storeTimeout } = settings
    const { scope: wanted } = settings
    const request = wanted === undefined ? undefined : TokenRequest.clientSecretPost({ scope: wanted })
    const options = {
      ...settings,
      clientSecret: Redacted.make(settings.clientSecret),
      endpoint: { attemptTimeout, deadline, request },
      shared: { lease, maxWait, storeTimeout }
    }
    const warnings: Array<Warning> = []
    const expiries: Array<number> = []
    const logger = Logger.make(({ annotations, logLevel, message }) => {
      const texts = Object.fromEntries(HashMap.toEntries(HashMap.map(annotations, String)))
      if (logLevel.label === "WARN") warnings.push({ message: String(message), annotations: texts })
      else if (String(message) === "Access token acquired") expiries.push(Date.parse(texts["expiresAt"] ?? ""))
    })
    const redis = redisUrl === undefined ? undefined : RedisTokenStore.layer({ url: Redacted.make(redisUrl) })
    const store = own ?? redis
    const runtime = yield* Layer.toRuntime((store === undefined
      ? Layer.merge(NodeStoreAuth.layer(options), TokenStore.layerMemory)
      : Layer.provideMerge(NodeStoreAuth.layerShared(options), store)).pipe(
        // The fibers that ask for a token use it too.
        Layer.provideMerge(
          Layer.merge(Logger.replace(Logger.defaultLogger, logger), Logger.minimumLogLevel(LogLevel.Debug))
        )
      ))
    const { get, refresh, status } = yield* Effect.provide(AccessTokenProvider.AccessTokenProvider, runtime)
    const client = yield* Effect.provide(AuthorizedHttpClient.AuthorizedHttpClient, runtime)
    const { get: look } = yield* Effect.provide(TokenStore.TokenStore, runtime)

    // A busy machine can leave a connection idle until the server closes it. Only that error is retried: a fault of the
    // token has another tag.
    const call = client.get("/v1/orders").pipe(
      Effect.flatMap((response) => Effect.as(response.text, response.status)),
      Effect.retry({ while: ({ _tag }) => _tag === "RequestError", times: 3 }),
      Effect.provide(runtime)
    )
    let isCalling = false
    let calling: Fiber.Fiber<ReadonlyArray<string>> | undefined
    const scope = yield* Effect.scope
    return {
      get: Effect.provide(Effect.map(get, shown), runtime),
      refresh: Effect.provide(Effect.map(refresh, shown), runtime),
      call,
      isAcquiring: Effect.map(status, ({ acquiring }) => acquiring),
      reaches: Effect.isSuccess(look("store-api-token-v1:any")),
      warnings: Effect.sync(() => [...warnings]),
      expiries: Effect.sync(() => [...expiries]),
      begin: (every) =>
        Effect.gen(function*() {
          isCalling = true
          const outcomes: Array<string> = []
          calling = yield* call.pipe(
            Effect.match({ onFailure: ({ _tag }) => _tag, onSuccess: String }),
            Effect.tap((outcome) => Effect.sync(() => outcomes.push(outcome))),
            Effect.zipRight(Effect.sleep(every)),
            Effect.repeat({ while: () => isCalling }),
            Effect.as(outcomes),
            Effect.forkIn(scope)
          )
        }),
      end: Effect.suspend(() => {
        isCalling = false
        return calling === undefined ? Effect.succeed([]) : Fiber.join(calling)
      })
    }
  })
