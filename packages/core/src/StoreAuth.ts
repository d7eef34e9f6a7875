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
 * Over a source of your own: no endpoint, no credentials.
 *
 * - `apiUrl`: the base of the store's APIs.
 * - `allowInsecure`: http to any host. Default `false`: https, or http on this machine.
 * - `provider`, `client`: the finer options of `AccessTokenProvider` and `AuthorizedHttpClient`.
 *
 * @since 0.1.0
 * @category models
 */
export interface SourceOptions {
  readonly apiUrl: string | URL
  readonly allowInsecure?: boolean | undefined
  readonly provider?: AccessTokenProvider.Options | undefined
  readonly client?: Omit<AuthorizedHttpClient.Options, "apiUrl" | "allowInsecure"> | undefined
}

/**
 * - `authUrl`: the base of the access-token service.
 * - `endpoint`: the finer options of `TokenEndpoint`.
 *
 * @since 0.1.0
 * @category models
 */
export interface EndpointOptions extends SourceOptions {
  readonly authUrl: string | URL
  readonly endpoint?: Omit<TokenEndpoint.Options, "authUrl" | "credentials" | "allowInsecure"> | undefined
}

/**
 * With the id and the secret as they are; they are checked while the layer is built.
 *
 * @since 0.1.0
 * @category models
 */
export interface SecretOptions extends EndpointOptions {
  readonly clientId: string
  readonly clientSecret: Redacted.Redacted
}

/**
 * With checked credentials, or with an effect that reads them at each acquisition.
 *
 * @since 0.1.0
 * @category models
 */
export interface CredentialsOptions extends EndpointOptions {
  readonly credentials: TokenEndpoint.Options["credentials"]
}

/**
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
 * The same over the `TokenSource` in the context: a shared store, or a script.
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
 * `STORE_API_CLIENT_SECRET`, or with another prefix. All that are missing are reported at once.
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
 * `layer`, its options read from the configuration; by default those of `config()`.
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
  return "credentials" in options
    ? withCredentials(options.credentials)
    : Layer.unwrapEffect(Effect.map(ClientCredentials.make(options), withCredentials))
}
