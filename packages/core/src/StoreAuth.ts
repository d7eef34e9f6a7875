/**
 * Everything composed: the endpoint, the provider and the authorized client as one layer.
 *
 * @since 0.1.0
 */
import type * as HttpClient from "@effect/platform/HttpClient"
import * as Config from "effect/Config"
import type * as ConfigError from "effect/ConfigError"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import type * as Redacted from "effect/Redacted"
import type { ConfigurationError, CredentialsError } from "./AccessTokenError.js"
import * as AccessTokenProvider from "./AccessTokenProvider.js"
import * as AuthorizedHttpClient from "./AuthorizedHttpClient.js"
import * as ClientCredentials from "./ClientCredentials.js"
import * as TokenEndpoint from "./TokenEndpoint.js"
import type * as TokenSource from "./TokenSource.js"

/**
 * What is needed over a source of your own: no endpoint, no credentials.
 *
 * @see layerFromSource
 *
 * @since 0.1.0
 * @category models
 */
export interface SourceOptions {
  /** The base of the store's APIs, to which relative URLs are joined: `AuthorizedHttpClient.Options`. */
  readonly apiUrl: string | URL
  /** Whether secrets may go to any host over http. Default `false`: https, or http on this machine. */
  readonly allowInsecure?: boolean | undefined
  /** How early a token is renewed, and the pauses after failures. Each has a default. */
  readonly provider?: AccessTokenProvider.Options | undefined
  /** Further trusted origins, another header, and what a 401 leads to. Each has a default. */
  readonly client?: Omit<AuthorizedHttpClient.Options, "apiUrl" | "allowInsecure"> | undefined
}

/**
 * What is needed to ask the access-token service, but for the credentials.
 *
 * @see layer
 *
 * @since 0.1.0
 * @category models
 */
export interface EndpointOptions extends SourceOptions {
  /** The base of the access-token service; `/v1/oauth/accesstoken` is appended (the specification, "Endpoints"). */
  readonly authUrl: string | URL
  /** Timeouts and the size of the answer. Each has a default. */
  readonly endpoint?: Omit<TokenEndpoint.Options, "authUrl" | "credentials" | "allowInsecure"> | undefined
}

/**
 * The options with the id and the secret as they are; they are checked while the layer is built.
 *
 * @see layer
 *
 * @since 0.1.0
 * @category models
 */
export interface SecretOptions extends EndpointOptions {
  /** The client's API key, as the store issued it. */
  readonly clientId: string
  /** The client's API secret. */
  readonly clientSecret: Redacted.Redacted
  /** Not beside an id and a secret: one way or the other. */
  readonly credentials?: undefined
}

/**
 * The options with checked credentials, or with an effect that reads them at each acquisition.
 *
 * @see layer, ClientCredentials.fromConfig
 *
 * @since 0.1.0
 * @category models
 */
export interface CredentialsOptions extends EndpointOptions {
  /** Checked credentials, or an effect that is run at each acquisition: a secret can change without a restart. */
  readonly credentials: TokenEndpoint.Options["credentials"]
  /** Not beside credentials: one way or the other. */
  readonly clientId?: undefined
  /** Not beside credentials: one way or the other. */
  readonly clientSecret?: undefined
}

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
 * The provider and the authorized client, over the `HttpClient` in the context. Each call of `layer` makes another cache
 * and another token: bind the result to a constant.
 *
 * Fails while it is built with `ConfigurationError` when a URL cannot be used, with `CredentialsError` when the id or the
 * secret cannot be sent. No request is sent until the first token is asked for.
 *
 * @example
 * ```ts
 * import { FetchHttpClient } from "@effect/platform"
 * import { StoreAuth } from "@store-api/core"
 * import { Layer, Redacted } from "effect"
 *
 * const StoreAuthLive = StoreAuth.layer({
 *   authUrl: "https://auth.store.example",
 *   apiUrl: "https://api.store.example",
 *   clientId: "demo-client",
 *   clientSecret: Redacted.make("an invented secret")
 * }).pipe(Layer.provide(FetchHttpClient.layer))
 * ```
 *
 * @since 0.1.0
 * @category layers
 */
export const layer = (
  options: Options
): Layer.Layer<
  AccessTokenProvider.AccessTokenProvider | AuthorizedHttpClient.AuthorizedHttpClient,
  ConfigurationError | CredentialsError,
  HttpClient.HttpClient
> => Layer.provide(layerFromSource(options), endpoint(options))

/**
 * The same over the `TokenSource` in the context: a shared store, or a script. Fails with `ConfigurationError` when an
 * option cannot be used.
 *
 * @example
 * ```ts
 * import { FetchHttpClient } from "@effect/platform"
 * import { AccessTokenError, StoreAuth, TokenSource } from "@store-api/core"
 * import { Effect, Layer } from "effect"
 *
 * const OutOfOrder = TokenSource.layer(() =>
 *   Effect.fail(new AccessTokenError.TokenRequestError({ reason: "Transport", attempts: 1 }))
 * )
 *
 * const StoreAuthTest = StoreAuth.layerFromSource({ apiUrl: "https://api.store.example" }).pipe(
 *   Layer.provide([OutOfOrder, FetchHttpClient.layer])
 * )
 * ```
 *
 * @since 0.1.0
 * @category layers
 */
export const layerFromSource = (
  { allowInsecure, apiUrl, client, provider }: SourceOptions
): Layer.Layer<
  AccessTokenProvider.AccessTokenProvider | AuthorizedHttpClient.AuthorizedHttpClient,
  ConfigurationError,
  TokenSource.TokenSource | HttpClient.HttpClient
> =>
  Layer.provideMerge(
    AuthorizedHttpClient.layer({ ...client, apiUrl, allowInsecure }),
    AccessTokenProvider.layer(provider)
  )

/**
 * The options as the environment names them: `STORE_API_AUTH_URL`, `STORE_API_URL`, `STORE_API_CLIENT_ID` and
 * `STORE_API_CLIENT_SECRET`, or with another prefix (default `"STORE_API"`). All that are missing are reported at once, as
 * one `ConfigError`; an empty one is not missing, and `layer` finds that it cannot be used.
 *
 * @example
 * ```ts
 * import { StoreAuth } from "@store-api/core"
 * import { Config } from "effect"
 *
 * const StoreAuthLive = StoreAuth.layerConfig(
 *   Config.map(StoreAuth.config("MY_STORE"), (options) => ({ ...options, provider: { refreshAhead: "2 minutes" } }))
 * )
 * ```
 *
 * @since 0.1.0
 * @category config
 */
export const config = (prefix = "STORE_API"): Config.Config<SecretOptions> =>
  Config.all({
    authUrl: Config.string(`${prefix}_AUTH_URL`),
    apiUrl: Config.string(`${prefix}_URL`),
    clientId: Config.string(`${prefix}_CLIENT_ID`),
    clientSecret: Config.redacted(`${prefix}_CLIENT_SECRET`)
  })

/**
 * `layer`, its options read from the configuration, each alone or all of them; by default those of `config()`. Fails
 * besides with Effect's `ConfigError`, when one is missing or cannot be read.
 *
 * @example
 * ```ts
 * import { FetchHttpClient } from "@effect/platform"
 * import { StoreAuth } from "@store-api/core"
 * import { Layer } from "effect"
 *
 * const StoreAuthLive = StoreAuth.layerConfig().pipe(Layer.provide(FetchHttpClient.layer))
 * ```
 *
 * @since 0.1.0
 * @category layers
 */
export const layerConfig = (
  options: Config.Config<Options> | Config.Config.Wrap<SecretOptions> | Config.Config.Wrap<CredentialsOptions> =
    config()
): Layer.Layer<
  AccessTokenProvider.AccessTokenProvider | AuthorizedHttpClient.AuthorizedHttpClient,
  ConfigurationError | CredentialsError | ConfigError.ConfigError,
  HttpClient.HttpClient
> => Layer.unwrapEffect(Effect.map(Config.unwrap<Options>(options), layer))

const endpoint = (options: Options) => {
  const { allowInsecure, authUrl } = options
  const withCredentials = (credentials: TokenEndpoint.Options["credentials"]) =>
    TokenEndpoint.layer({ ...options.endpoint, authUrl, allowInsecure, credentials })
  return options.credentials !== undefined
    ? withCredentials(options.credentials)
    : Layer.unwrapEffect(Effect.map(ClientCredentials.make(options), withCredentials))
}
