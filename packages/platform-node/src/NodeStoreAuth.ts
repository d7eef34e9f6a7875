/**
 * `StoreAuth` with nothing left to provide: the provider and the authorized client over Node's HTTP.
 *
 * @since 0.1.0
 */
import type { ConfigurationError, CredentialsError } from "@store-api/core/AccessTokenError"
import type { AccessTokenProvider } from "@store-api/core/AccessTokenProvider"
import type { AuthorizedHttpClient } from "@store-api/core/AuthorizedHttpClient"
import * as StoreAuth from "@store-api/core/StoreAuth"
import type { TokenSource } from "@store-api/core/TokenSource"
import * as Config from "effect/Config"
import type * as ConfigError from "effect/ConfigError"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as NodeHttp from "./NodeHttp.js"

/**
 * What the options have here besides those of `StoreAuth`.
 *
 * @see layer
 *
 * @since 0.1.0
 * @category models
 */
export interface HttpOptions {
  /** Connections, proxy and certificates, for the token requests and the API's alike. Each has a default. */
  readonly http?: NodeHttp.Options | undefined
}

/**
 * What is needed over a source of your own: `apiUrl`.
 *
 * @see layerFromSource
 *
 * @since 0.1.0
 * @category models
 */
export interface SourceOptions extends StoreAuth.SourceOptions, HttpOptions {}

/**
 * The options with the id and the secret as they are: `authUrl`, `apiUrl`, `clientId`, `clientSecret`.
 *
 * @see layer
 *
 * @since 0.1.0
 * @category models
 */
export interface SecretOptions extends StoreAuth.SecretOptions, HttpOptions {}

/**
 * The options with checked credentials, or an effect that reads them: `authUrl`, `apiUrl`, `credentials`.
 *
 * @see layer, ClientCredentials.fromConfig
 *
 * @since 0.1.0
 * @category models
 */
export interface CredentialsOptions extends StoreAuth.CredentialsOptions, HttpOptions {}

/**
 * Either form of the options: the id and the secret, or credentials.
 *
 * @see layer
 *
 * @since 0.1.0
 * @category models
 */
export type Options = SecretOptions | CredentialsOptions

/**
 * The provider and the authorized client. Each call of `layer` makes another cache, another token and other connections:
 * bind the result to a constant.
 *
 * Fails while it is built with `ConfigurationError` when an option cannot be used, with `CredentialsError` when the id or
 * the secret cannot be sent. No request is sent until the first token is asked for; the connections close with the scope.
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
 * @since 0.1.0
 * @category layers
 */
export const layer = (
  options: Options
): Layer.Layer<AccessTokenProvider | AuthorizedHttpClient, ConfigurationError | CredentialsError> =>
  Layer.provide(StoreAuth.layer(options), NodeHttp.layer(options.http))

/**
 * The same over the `TokenSource` in the context: a shared store, or a script. Fails with `ConfigurationError` when an
 * option cannot be used.
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
 * @since 0.1.0
 * @category layers
 */
export const layerFromSource = (
  options: SourceOptions
): Layer.Layer<AccessTokenProvider | AuthorizedHttpClient, ConfigurationError, TokenSource> =>
  Layer.provide(StoreAuth.layerFromSource(options), NodeHttp.layer(options.http))

/**
 * `layer`, its options read from the configuration; by default `STORE_API_AUTH_URL`, `STORE_API_URL`,
 * `STORE_API_CLIENT_ID` and `STORE_API_CLIENT_SECRET`. All that are missing are named by one `ConfigError`.
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
 * @since 0.1.0
 * @category layers
 */
export const layerConfig = (
  config: Config.Config.Wrap<SecretOptions> | Config.Config.Wrap<CredentialsOptions> = StoreAuth.config()
): Layer.Layer<
  AccessTokenProvider | AuthorizedHttpClient,
  ConfigurationError | CredentialsError | ConfigError.ConfigError
> => Layer.unwrapEffect(Effect.map(Config.unwrap<Options>(config), layer))
