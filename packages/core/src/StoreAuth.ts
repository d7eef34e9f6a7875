/**
 * Everything composed: the endpoint, the provider and the authorized client as one layer.
 *
 * @since 0.1.0
 */
import * as HttpClient from "@effect/platform/HttpClient"
import * as Config from "effect/Config"
import type * as ConfigError from "effect/ConfigError"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import type * as Redacted from "effect/Redacted"
import type * as Scope from "effect/Scope"
import type { ConfigurationError, CredentialsError } from "./AccessTokenError.js"
import * as AccessTokenProvider from "./AccessTokenProvider.js"
import * as AuthorizedHttpClient from "./AuthorizedHttpClient.js"
import * as ClientCredentials from "./ClientCredentials.js"
import { baseUrl } from "./internal/baseUrl.js"
import * as boundClient from "./internal/boundClient.js"
import * as trustedOrigins from "./internal/trustedOrigins.js"
import * as SharedTokenSource from "./SharedTokenSource.js"
import * as TokenEndpoint from "./TokenEndpoint.js"
import type * as TokenSource from "./TokenSource.js"
import type { TokenStore } from "./TokenStore.js"

/**
 * The options for a `TokenSource` of your own: no endpoint, no credentials.
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
  /**
   * Changes the client of API requests, and of token requests unless the source is your own: a `User-Agent`, a proxy header,
   * logging. The result sees tokens and the client secret. It cannot send a token request to another origin than that of
   * `authUrl`, nor an API request to another than those of `apiUrl` and `trustedOrigins`, through the client that it was
   * given; nor does `fetch` follow redirects. Default: none.
   */
  readonly transformClient?: ((client: HttpClient.HttpClient) => HttpClient.HttpClient) | undefined
  /** How early a token is renewed, and the cooldown after failures. Each option has a default. */
  readonly provider?: AccessTokenProvider.Options | undefined
  /** Further trusted origins, another header, and whether a request is repeated after a 401. Each option has a default. */
  readonly client?: Omit<AuthorizedHttpClient.Options, "apiUrl" | "allowInsecure"> | undefined
}

/**
 * The options for the access-token service, without the credentials.
 *
 * @see layer
 *
 * @since 0.1.0
 * @category models
 */
export interface EndpointOptions extends SourceOptions {
  /** The base of the access-token service; `/v1/oauth/accesstoken` is appended (the specification, "Endpoints"). */
  readonly authUrl: string | URL
  /** Timeouts and the size of the response. Each option has a default. */
  readonly endpoint?: Omit<TokenEndpoint.Options, "authUrl" | "credentials" | "allowInsecure"> | undefined
}

/**
 * The options with the id and the secret, which are checked while the layer is built.
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
  /** Not beside an id and a secret. */
  readonly credentials?: undefined
}

/**
 * The options with an effect that reads the credentials at each acquisition.
 *
 * @see layer, ClientCredentials.fromConfig
 *
 * @since 0.1.0
 * @category models
 */
export interface CredentialsOptions extends EndpointOptions {
  /** An effect that yields checked credentials, run at each acquisition: a secret can change without a restart. */
  readonly credentials: TokenEndpoint.Options["credentials"]
  /** Not beside credentials. */
  readonly clientId?: undefined
  /** Not beside credentials. */
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
 * What `layerShared` takes besides.
 *
 * @see layerShared
 *
 * @since 0.1.0
 * @category models
 */
export interface Sharing {
  /** The lease, how long to wait for other processes, and for the store. Each option has a default. */
  readonly shared?: Omit<SharedTokenSource.Options, "authUrl" | "credentials"> | undefined
}

/**
 * Both services of one store, as values.
 *
 * @see make
 *
 * @since 0.1.0
 * @category models
 */
export interface StoreAuth {
  /** Acquires, caches and renews the token. */
  readonly provider: AccessTokenProvider.Service
  /** Adds the token to each request. */
  readonly client: AuthorizedHttpClient.Service
}

/**
 * Both services as values, for as long as the scope is open. For a program that uses two stores: each call has a token, an
 * acquisition and a cooldown of its own. Fails as `layer` does.
 *
 * @example
 * ```ts
 * import { StoreAuth } from "@store-api/core"
 * import { Effect } from "effect"
 *
 * const orders = Effect.gen(function*() {
 *   const north = yield* StoreAuth.make(yield* StoreAuth.config("NORTH"))
 *   const south = yield* StoreAuth.make(yield* StoreAuth.config("SOUTH"))
 *   return yield* Effect.all([north.client.get("/orders"), south.client.get("/orders")])
 * })
 * ```
 *
 * @since 0.1.0
 * @category constructors
 */
export const make = (
  options: Options
): Effect.Effect<StoreAuth, ConfigurationError | CredentialsError, HttpClient.HttpClient | Scope.Scope> =>
  Effect.map(Layer.build(layer(options)), (context) => ({
    provider: Context.get(context, AccessTokenProvider.AccessTokenProvider),
    client: Context.get(context, AuthorizedHttpClient.AuthorizedHttpClient)
  }))

/**
 * The provider and the authorized client, over the `HttpClient` in the context. Each call of `layer` makes another cache
 * and another token: bind the result to a constant.
 *
 * Fails while it is built with `ConfigurationError` when an option cannot be used, with `CredentialsError` when the id or
 * the secret cannot be sent. No request is sent until the first token is asked for.
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
> => composed(options, endpoint(options))

/**
 * `layer`, with the token shared between processes through the `TokenStore` in the context: they send one token request
 * together. Only processes with the same `authUrl` and credentials share a token. Fails as `layer` does.
 *
 * @example
 * ```ts
 * import { FetchHttpClient } from "@effect/platform"
 * import { ClientCredentials, StoreAuth, TokenStore } from "@store-api/core"
 * import { Layer } from "effect"
 *
 * const StoreAuthLive = StoreAuth.layerShared({
 *   authUrl: "https://auth.store.example",
 *   apiUrl: "https://api.store.example",
 *   credentials: ClientCredentials.fromConfig(),
 *   shared: { lease: "10 seconds" }
 * }).pipe(Layer.provide([FetchHttpClient.layer, TokenStore.layerMemory]))
 * ```
 *
 * @since 0.1.0
 * @category layers
 */
export const layerShared = (
  options: Options & Sharing
): Layer.Layer<
  AccessTokenProvider.AccessTokenProvider | AuthorizedHttpClient.AuthorizedHttpClient,
  ConfigurationError | CredentialsError,
  HttpClient.HttpClient | TokenStore
> =>
  composed(
    options,
    Layer.unwrapEffect(Effect.map(credentialsOf(options), (credentials) =>
      SharedTokenSource.layer({ ...options.shared, authUrl: options.authUrl, credentials }).pipe(
        Layer.provide(endpoint(options))
      )))
  )

/**
 * `layer` over the `TokenSource` in the context. Fails with `ConfigurationError` when an option cannot be used.
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
  options: SourceOptions
): Layer.Layer<
  AccessTokenProvider.AccessTokenProvider | AuthorizedHttpClient.AuthorizedHttpClient,
  ConfigurationError,
  TokenSource.TokenSource | HttpClient.HttpClient
> => composed(options, Layer.empty)

/**
 * The options from the variables `STORE_API_AUTH_URL`, `STORE_API_URL`, `STORE_API_CLIENT_ID` and
 * `STORE_API_CLIENT_SECRET`, or with another `prefix` (default `"STORE_API"`). One `ConfigError` names all that are missing.
 * An empty variable is not missing: `layer` fails on it.
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
 * `layer` with options from the configuration, by default those of `config()`. Also fails with Effect's `ConfigError`, when
 * a variable is missing or cannot be read.
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

/**
 * `layerShared` with options from the configuration, by default those of `config()`. Also fails with Effect's `ConfigError`,
 * when a variable is missing or cannot be read.
 *
 * @example
 * ```ts
 * import { FetchHttpClient } from "@effect/platform"
 * import { StoreAuth, TokenStore } from "@store-api/core"
 * import { Layer } from "effect"
 *
 * const StoreAuthLive = StoreAuth.layerSharedConfig().pipe(
 *   Layer.provide([FetchHttpClient.layer, TokenStore.layerMemory])
 * )
 * ```
 *
 * @since 0.1.0
 * @category layers
 */
export const layerSharedConfig = (
  options:
    | Config.Config<Options & Sharing>
    | Config.Config.Wrap<SecretOptions & Sharing>
    | Config.Config.Wrap<CredentialsOptions & Sharing> = config()
): Layer.Layer<
  AccessTokenProvider.AccessTokenProvider | AuthorizedHttpClient.AuthorizedHttpClient,
  ConfigurationError | CredentialsError | ConfigError.ConfigError,
  HttpClient.HttpClient | TokenStore
> => Layer.unwrapEffect(Effect.map(Config.unwrap<Options & Sharing>(options), layerShared))

/** The services over a source. */
const composed = <A, E, R>(
  { allowInsecure, apiUrl, client, provider, transformClient }: SourceOptions,
  source: Layer.Layer<A, E, R>
) => {
  const options = { ...client, apiUrl, allowInsecure }
  const origins = Effect.map(trustedOrigins.make(options), ({ origins }) => origins)
  return AuthorizedHttpClient.layer(options).pipe(
    Layer.provide(transformed(transformClient, origins)),
    Layer.provideMerge(Layer.provide(AccessTokenProvider.layer(provider), source))
  )
}

/** The token may not go to the origin of the endpoint, nor the secret to those of the APIs: each has a client of its own. */
const transformed = (
  transform: SourceOptions["transformClient"],
  origins: Effect.Effect<ReadonlyArray<string>, ConfigurationError>
): Layer.Layer<HttpClient.HttpClient, ConfigurationError, HttpClient.HttpClient> =>
  Layer.effect(
    HttpClient.HttpClient,
    Effect.gen(function*() {
      const client = yield* HttpClient.HttpClient
      return transform === undefined ? client : transform(yield* boundClient.make(client, yield* origins))
    })
  )

const endpoint = (options: Options): Layer.Layer<
  TokenSource.TokenSource,
  ConfigurationError | CredentialsError,
  HttpClient.HttpClient
> =>
  Layer.unwrapEffect(Effect.map(credentialsOf(options), (credentials) =>
    TokenEndpoint.layer({
      ...options.endpoint,
      authUrl: options.authUrl,
      allowInsecure: options.allowInsecure,
      credentials
    }))).pipe(Layer.provide(transformed(
      options.transformClient,
      Effect.map(baseUrl("authUrl", options.authUrl, options.allowInsecure ?? false), ({ origin }) => [origin])
    )))

/** An id and a secret are checked now; an effect is run at each acquisition. */
const credentialsOf = (
  options: Options
): Effect.Effect<TokenEndpoint.Options["credentials"], CredentialsError> =>
  options.credentials === undefined
    ? Effect.map(ClientCredentials.make(options), Effect.succeed)
    : Effect.succeed(options.credentials)
