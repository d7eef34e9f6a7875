/**
 * `StoreAuth` with the HTTP client of `NodeHttp`. Its layers need no further service, except a `TokenStore` where they
 * share.
 *
 * @since 1.0.0
 */
import type * as HttpClient from "@effect/platform/HttpClient"
import { type ConfigurationError, CredentialsError } from "@store-api/core/AccessTokenError"
import { AccessTokenProvider } from "@store-api/core/AccessTokenProvider"
import { AuthorizedHttpClient } from "@store-api/core/AuthorizedHttpClient"
import * as ClientCredentials from "@store-api/core/ClientCredentials"
import * as StoreAuth from "@store-api/core/StoreAuth"
import * as TokenRequest from "@store-api/core/TokenRequest"
import type { TokenSource } from "@store-api/core/TokenSource"
import type { TokenStore } from "@store-api/core/TokenStore"
import * as Config from "effect/Config"
import type * as ConfigError from "effect/ConfigError"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Option from "effect/Option"
import * as Predicate from "effect/Predicate"
import type * as Scope from "effect/Scope"
import * as ClientAssertion from "./ClientAssertion.js"
import * as NodeHttp from "./NodeHttp.js"

/**
 * The options in addition to those of `StoreAuth`.
 *
 * @see layer
 *
 * @since 1.0.0
 * @category models
 */
export interface HttpOptions {
  /**
   * Connections, proxy and certificates for token requests and API requests, which share no connection. Each option has
   * a default.
   */
  readonly http?: NodeHttp.Options | undefined
}

/**
 * The options for your own `TokenSource`: `apiUrl` is required.
 *
 * @see layerFromSource
 *
 * @since 1.0.0
 * @category models
 */
export interface SourceOptions extends StoreAuth.SourceOptions, HttpOptions {}

/**
 * The options with an id and a secret. Required: `authUrl`, `apiUrl`, `clientId`, `clientSecret`.
 *
 * @see layer
 *
 * @since 1.0.0
 * @category models
 */
export interface SecretOptions extends StoreAuth.SecretOptions, HttpOptions {}

/**
 * The options with an effect that reads the credentials. Required: `authUrl`, `apiUrl`, `credentials`.
 *
 * @see layer, ClientCredentials.fromConfig
 *
 * @since 1.0.0
 * @category models
 */
export interface CredentialsOptions extends StoreAuth.CredentialsOptions, HttpOptions {}

/**
 * Either form of the options: an id and a secret, or an effect that reads the credentials.
 *
 * @see layer
 *
 * @since 1.0.0
 * @category models
 */
export type Options = SecretOptions | CredentialsOptions

/**
 * Creates both services as values that work until the scope closes, for a program that uses two stores. Each call
 * creates a separate token, cooldown and connection pool. Fails like `layer`.
 *
 * @example
 * ```ts
 * import { StoreAuth } from "@store-api/core"
 * import { NodeStoreAuth } from "@store-api/platform-node"
 * import { Effect } from "effect"
 *
 * const orders = Effect.scoped(Effect.gen(function*() {
 *   const north = yield* NodeStoreAuth.make(yield* StoreAuth.config("NORTH"))
 *   const south = yield* NodeStoreAuth.make(yield* StoreAuth.config("SOUTH"))
 *   return yield* Effect.all([north.client.get("/orders"), south.client.get("/orders")])
 * }))
 * ```
 *
 * @since 1.0.0
 * @category constructors
 */
export const make = (
  options: Options
): Effect.Effect<StoreAuth.StoreAuth, ConfigurationError | CredentialsError, Scope.Scope> =>
  Effect.map(Layer.build(layer(options)), (context) => ({
    provider: Context.get(context, AccessTokenProvider),
    client: Context.get(context, AuthorizedHttpClient)
  }))

/**
 * Provides the provider and the authorized client. Bind the result to a constant: each call of `layer` creates another
 * cache with its own token and connections.
 *
 * Fails with `ConfigurationError` when an option is unusable, and with `CredentialsError` when the id or the secret
 * cannot be sent. Sends no request before the first token is needed. The connections close with the scope.
 *
 * @example
 * ```ts
 * import { AuthorizedHttpClient } from "@store-api/core"
 * import { NodeStoreAuth } from "@store-api/platform-node"
 * import { Effect, Redacted } from "effect"
 *
 * const StoreAuthLive = NodeStoreAuth.layer({
 *   authUrl: "https://auth.store.example",
 *   apiUrl: "https://api.store.example",
 *   clientId: "demo-client",
 *   clientSecret: Redacted.make("an invented secret"),
 *   http: { connections: 32 }
 * })
 *
 * const orders = Effect.gen(function*() {
 *   const client = yield* AuthorizedHttpClient.AuthorizedHttpClient
 *   const response = yield* client.get("/v1/orders")
 *   return yield* response.json
 * }).pipe(Effect.provide(StoreAuthLive))
 * ```
 *
 * @since 1.0.0
 * @category layers
 */
export const layer = (
  options: Options
): Layer.Layer<
  AccessTokenProvider | AuthorizedHttpClient,
  ConfigurationError | CredentialsError
> => withConnections(options, StoreAuth.layerSource(options))

/**
 * Like `layer`, and shares the token between processes through the `TokenStore` in the context, so that they send one
 * token request together. Only processes with the same `authUrl`, `path`, credentials and `request` share a token.
 * Fails like `layer`.
 *
 * @example
 * ```ts
 * import { ClientCredentials } from "@store-api/core"
 * import { FileTokenStore, NodeStoreAuth } from "@store-api/platform-node"
 * import { Layer } from "effect"
 *
 * const StoreAuthLive = NodeStoreAuth.layerShared({
 *   authUrl: "https://auth.store.example",
 *   apiUrl: "https://api.store.example",
 *   credentials: ClientCredentials.fromConfig(),
 *   shared: { lease: "10 seconds" }
 * }).pipe(Layer.provide(FileTokenStore.layer()))
 * ```
 *
 * @since 1.0.0
 * @category layers
 */
export const layerShared = (
  options: Options & StoreAuth.Sharing
): Layer.Layer<
  AccessTokenProvider | AuthorizedHttpClient,
  ConfigurationError | CredentialsError,
  TokenStore
> => withConnections(options, StoreAuth.layerSharedSource(options))

/**
 * Like `layer`, over the `TokenSource` in the context. Fails with `ConfigurationError` when an option is unusable.
 *
 * @example
 * ```ts
 * import { AccessTokenError, TokenSource } from "@store-api/core"
 * import { NodeStoreAuth } from "@store-api/platform-node"
 * import { Effect, Layer } from "effect"
 *
 * const OutOfOrder = TokenSource.layer(() =>
 *   Effect.fail(new AccessTokenError.TokenRequestError({ reason: "Transport", attempts: 1 }))
 * )
 *
 * const StoreAuthTest = NodeStoreAuth.layerFromSource({ apiUrl: "https://api.store.example" }).pipe(
 *   Layer.provide(OutOfOrder)
 * )
 * ```
 *
 * @since 1.0.0
 * @category layers
 */
export const layerFromSource = (
  options: SourceOptions
): Layer.Layer<AccessTokenProvider | AuthorizedHttpClient, ConfigurationError, TokenSource> =>
  Layer.provide(StoreAuth.layerFromSource(options), http(options))

/**
 * Reads the options from the configuration, as `StoreAuth.config` does. If `PREFIX_CLIENT_ASSERTION_FILE` is set, not
 * `PREFIX_CLIENT_SECRET`, token requests send the assertion in this file (RFC 7523 §2.2). The file is read at each
 * attempt, so the platform may replace it. If both variables are set, the layer fails with a `CredentialsError` that
 * names both. To share tokens of a client with an assertion, add `shared.sealingKey`.
 *
 * @example
 * ```ts
 * import { NodeStoreAuth } from "@store-api/platform-node"
 * import { Config } from "effect"
 *
 * const StoreAuthLive = NodeStoreAuth.layerConfig(
 *   Config.map(NodeStoreAuth.config("MY_STORE"), (options) => ({
 *     ...options,
 *     endpoint: { ...options.endpoint, path: "/oauth2/token" }
 *   }))
 * )
 * ```
 *
 * @since 1.0.0
 * @category constructors
 */
export const config = (prefix = "STORE_API"): Config.Config<Options> => {
  const file = `${prefix}_CLIENT_ASSERTION_FILE`
  const secret = `${prefix}_CLIENT_SECRET`
  const withAssertion = Config.all({
    authUrl: Config.string(`${prefix}_AUTH_URL`),
    apiUrl: Config.string(`${prefix}_URL`),
    clientId: Config.string(`${prefix}_CLIENT_ID`),
    path: Config.string(file),
    clientSecret: Config.option(Config.redacted(secret))
  })
  const options = Config.map(
    withAssertion,
    ({ apiUrl, authUrl, clientId, clientSecret, path }): Options => {
      const request = TokenRequest.clientAssertion(ClientAssertion.fromFile(path))
      if (Option.isNone(clientSecret)) {
        const credentials = ClientCredentials.withoutSecret(clientId)
        return { apiUrl, authUrl, credentials, endpoint: { request } }
      }
      const reason = `must not be set together with ${secret}`
      const error = new CredentialsError({ field: "clientAssertion", reason, variable: file })
      return {
        apiUrl,
        authUrl,
        clientId,
        clientSecret: clientSecret.value,
        endpoint: { request: { ...request, checkCredentials: () => error } }
      }
    }
  )
  return Config.orElse(options, () => StoreAuth.config(prefix))
}

/**
 * Like `layer`, with options from the configuration: by default `STORE_API_AUTH_URL`, `STORE_API_URL`,
 * `STORE_API_CLIENT_ID`, and `STORE_API_CLIENT_SECRET` or `STORE_API_CLIENT_ASSERTION_FILE` (see `config`). One
 * `ConfigError` names all variables that are missing.
 * Each option is a `Config`: pass plain values to `layer`, or wrap them with `Config.succeed`.
 *
 * @example
 * ```ts
 * import { StoreAuth } from "@store-api/core"
 * import { NodeStoreAuth } from "@store-api/platform-node"
 * import { Config } from "effect"
 *
 * const StoreAuthLive = NodeStoreAuth.layerConfig()
 *
 * const WithConnections = NodeStoreAuth.layerConfig(
 *   Config.map(StoreAuth.config("MY_STORE"), (options) => ({ ...options, http: { connections: 32 } }))
 * )
 * ```
 *
 * @since 1.0.0
 * @category layers
 */
export const layerConfig = (
  options:
    | Config.Config<Options>
    | Config.Config.Wrap<SecretOptions>
    | Config.Config.Wrap<CredentialsOptions> = config()
): Layer.Layer<
  AccessTokenProvider | AuthorizedHttpClient,
  ConfigurationError | CredentialsError | ConfigError.ConfigError
> => Layer.unwrapEffect(Effect.map(Config.unwrap<Options>(options), layer))

/**
 * Like `layerShared`, with options from the configuration: by default `STORE_API_AUTH_URL`, `STORE_API_URL`,
 * `STORE_API_CLIENT_ID`, and `STORE_API_CLIENT_SECRET` or `STORE_API_CLIENT_ASSERTION_FILE` (see `config`). One
 * `ConfigError` names all variables that are missing.
 * Each option is a `Config`: pass plain values to `layerShared`, or wrap them with `Config.succeed`.
 *
 * @example
 * ```ts
 * import { FileTokenStore, NodeStoreAuth } from "@store-api/platform-node"
 * import { Layer } from "effect"
 *
 * const StoreAuthLive = NodeStoreAuth.layerSharedConfig().pipe(Layer.provide(FileTokenStore.layer()))
 * ```
 *
 * @since 1.0.0
 * @category layers
 */
export const layerSharedConfig = (
  options:
    | Config.Config<Options & StoreAuth.Sharing>
    | Config.Config.Wrap<SecretOptions & StoreAuth.Sharing>
    | Config.Config.Wrap<CredentialsOptions & StoreAuth.Sharing> = config()
): Layer.Layer<
  AccessTokenProvider | AuthorizedHttpClient,
  ConfigurationError | CredentialsError | ConfigError.ConfigError,
  TokenStore
> =>
  Layer.unwrapEffect(
    Effect.map(Config.unwrap<Options & StoreAuth.Sharing>(options), layerShared)
  )

/**
 * Token requests have their own connections, so that API requests, which may occupy all of theirs for long, cannot keep
 * a token request waiting.
 */
const withConnections = <E, R>(
  options: SourceOptions,
  source: Layer.Layer<TokenSource, E, HttpClient.HttpClient | R>
) => Layer.provide(layerFromSource(options), Layer.provide(source, http(options)))

/**
 * Each layer that this returns has its own connections. `StoreAuth` finds options that are not an object.
 */
const http = (options: HttpOptions) =>
  NodeHttp.layer(Predicate.hasProperty(options, "http") ? options.http : undefined)
