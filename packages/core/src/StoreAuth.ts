/**
 * One layer with the token endpoint, the provider and the authorized client.
 *
 * @since 1.0.0
 */
import * as HttpClient from "@effect/platform/HttpClient"
import * as Config from "effect/Config"
import type * as ConfigError from "effect/ConfigError"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Predicate from "effect/Predicate"
import type * as Redacted from "effect/Redacted"
import type * as Scope from "effect/Scope"
import type { ConfigurationError, CredentialsError } from "./AccessTokenError.js"
import * as AccessTokenProvider from "./AccessTokenProvider.js"
import * as AuthorizedHttpClient from "./AuthorizedHttpClient.js"
import * as ClientCredentials from "./ClientCredentials.js"
import { baseUrl } from "./internal/baseUrl.js"
import * as trustedOrigins from "./internal/client/trustedOrigins.js"
import { configOf } from "./internal/configOf.js"
import { checkBy } from "./internal/credentials.js"
import { checkKinds, composed, unusable } from "./internal/options.js"
import * as SharedTokenSource from "./SharedTokenSource.js"
import * as TokenEndpoint from "./TokenEndpoint.js"
import { specification } from "./TokenRequest.js"
import type * as TokenSource from "./TokenSource.js"
import type { TokenStore } from "./TokenStore.js"

/**
 * The options without those of the token endpoint, for your own `TokenSource`.
 *
 * @see layerFromSource
 *
 * @since 1.0.0
 * @category models
 */
export interface SourceOptions {
  /** The base URL of the store's APIs, to which relative URLs are appended. See `AuthorizedHttpClient.Options`. */
  readonly apiUrl: string | URL
  /** Allows http to any host. Default `false`: only https, or http on this machine. */
  readonly allowInsecure?: boolean | undefined
  /**
   * Changes the client for API requests and, unless the source is your own, for token requests. Use it for a
   * `User-Agent`, a proxy header or logging. The returned client sees tokens and the client secret. The client that the
   * function receives sends token requests only to the origin of `authUrl`, and API requests only to the origins of
   * `apiUrl` and `trustedOrigins`. With it, `fetch` follows no redirects. Default: no change.
   */
  readonly transformClient?:
    | ((client: HttpClient.HttpClient) => HttpClient.HttpClient)
    | undefined
  /** When a token is renewed, and the cooldown after failures. Each option has a default. */
  readonly provider?: AccessTokenProvider.Options | undefined
  /** Further trusted origins, the header, and whether a request is repeated after a 401. Each option has a default. */
  readonly client?: Omit<AuthorizedHttpClient.Options, "apiUrl" | "allowInsecure"> | undefined
}

/** The options without the credentials. */
interface EndpointOptions extends SourceOptions {
  /** The base URL of the access-token service, or with an empty `endpoint.path` its whole URL. */
  readonly authUrl: string | URL
  /** Further options of the token endpoint: its path, how it is asked, time limits. Each option has a default. */
  readonly endpoint?:
    | Omit<TokenEndpoint.Options, "authUrl" | "credentials" | "allowInsecure">
    | undefined
}

/**
 * The options with a client id and secret, which are checked when the layer is built.
 *
 * @see layer
 *
 * @since 1.0.0
 * @category models
 */
export interface SecretOptions extends EndpointOptions {
  /** The API key that the store issued. */
  readonly clientId: string
  /** The API secret that the store issued. */
  readonly clientSecret: Redacted.Redacted
  /** Not allowed together with `clientId` and `clientSecret`. */
  readonly credentials?: undefined
}

/**
 * The options with an effect that reads the credentials at each acquisition.
 *
 * @see layer, ClientCredentials.fromConfig
 *
 * @since 1.0.0
 * @category models
 */
export interface CredentialsOptions extends EndpointOptions {
  /** Reads the credentials. Runs at each acquisition, so a new secret needs no restart. */
  readonly credentials: TokenEndpoint.Options["credentials"]
  /** Not allowed together with `credentials`. */
  readonly clientId?: undefined
  /** Not allowed together with `credentials`. */
  readonly clientSecret?: undefined
}

/**
 * The options with either a client id and secret, or `credentials`.
 *
 * @see layer
 *
 * @since 1.0.0
 * @category models
 */
export type Options = SecretOptions | CredentialsOptions

/**
 * The additional option of `layerShared`.
 *
 * @see layerShared
 *
 * @since 1.0.0
 * @category models
 */
export interface Sharing {
  /** The lease, the maximum waits for other processes and for the store, and what seals stored tokens. */
  readonly shared?:
    | Omit<SharedTokenSource.Options, "leeway">
    | undefined
}

/** One `Config` of all options, or a record with a `Config` for each. */
type Configured<A> = Config.Config<A> | (A extends unknown ? Config.Config.Wrap<A> : never)

/**
 * What the layers of this module provide: the provider and the authorized client.
 *
 * @see layer
 *
 * @since 1.0.0
 * @category models
 */
export type Services =
  | AccessTokenProvider.AccessTokenProvider
  | AuthorizedHttpClient.AuthorizedHttpClient

/**
 * The provider and the authorized client of one store, as values.
 *
 * @see make
 *
 * @since 1.0.0
 * @category models
 */
export interface StoreAuth {
  /** Acquires, caches and renews the token. */
  readonly provider: AccessTokenProvider.Service
  /** Adds the token to each API request. */
  readonly client: AuthorizedHttpClient.Service
}

/**
 * Creates the provider and the authorized client as values, which work until the scope closes. Use it for a program
 * with two stores: each call of `make` has its own token, acquisition and cooldown. Fails with the errors of `layer`.
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
 * @since 1.0.0
 * @category constructors
 */
export const make = (
  options: Options
): Effect.Effect<
  StoreAuth,
  ConfigurationError | CredentialsError,
  HttpClient.HttpClient | Scope.Scope
> =>
  Effect.map(Layer.build(layer(options)), (context) => ({
    provider: Context.get(context, AccessTokenProvider.AccessTokenProvider),
    client: Context.get(context, AuthorizedHttpClient.AuthorizedHttpClient)
  }))

/**
 * Provides `AccessTokenProvider` and `AuthorizedHttpClient`. Both use the `HttpClient` in the context. Each call of
 * `layer` creates another cache with another token, so bind the result to a constant.
 *
 * The layer fails with `ConfigurationError` if an option is invalid or missing, and with `CredentialsError` if the
 * client id or secret is empty or cannot be sent. It sends no request until a token is needed.
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
 * @since 1.0.0
 * @category layers
 */
export const layer = (
  options: Options
): Layer.Layer<Services, ConfigurationError | CredentialsError, HttpClient.HttpClient> =>
  Layer.provide(layerFromSource(options), layerSource(options))

/**
 * `layer` with one token for all processes, which they share through the `TokenStore` in the context. Only processes
 * with the same `authUrl`, `path`, credentials and `request` share a token. Fails with the errors of `layer`.
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
 * @since 1.0.0
 * @category layers
 */
export const layerShared = (
  options: Options & Sharing
): Layer.Layer<
  Services,
  ConfigurationError | CredentialsError,
  HttpClient.HttpClient | TokenStore
> => Layer.provide(layerFromSource(options), layerSharedSource(options))

/**
 * `layer` with the `TokenSource` in the context instead of the token endpoint. Fails with `ConfigurationError` if an
 * option is invalid.
 *
 * @example
 * ```ts
 * import { FetchHttpClient } from "@effect/platform"
 * import { AccessTokenError, StoreAuth, TokenSource } from "@store-api/core"
 * import { Effect, Layer } from "effect"
 *
 * const Unreachable = TokenSource.layer(() =>
 *   Effect.fail(new AccessTokenError.TokenRequestError({ reason: "Transport", attempts: 1 }))
 * )
 *
 * const StoreAuthTest = StoreAuth.layerFromSource({ apiUrl: "https://api.store.example" }).pipe(
 *   Layer.provide([Unreachable, FetchHttpClient.layer])
 * )
 * ```
 *
 * @since 1.0.0
 * @category layers
 */
export const layerFromSource = (
  options: SourceOptions
): Layer.Layer<
  Services,
  ConfigurationError,
  TokenSource.TokenSource | HttpClient.HttpClient
> =>
  Layer.unwrapEffect(Effect.gen(function*() {
    yield* checkOptions(options)
    const { allowInsecure, apiUrl, provider, transformClient } = options
    const client = { ...options.client, apiUrl, allowInsecure }
    const origins = Effect.map(trustedOrigins.make(client), ({ origins }) => origins)
    return AuthorizedHttpClient.layer(client).pipe(
      Layer.provide(transformedClient(transformClient, origins)),
      Layer.provideMerge(AccessTokenProvider.layer(provider))
    )
  }))

/**
 * Provides the `TokenSource` of `layer`: it asks the token endpoint, through the `HttpClient` in the context. Use it
 * with `layerFromSource` and the same options, to give token requests a client of their own, such as one with other
 * connections or another proxy. Fails with the errors of `layer`.
 *
 * @example
 * ```ts
 * import { FetchHttpClient } from "@effect/platform"
 * import { ClientCredentials, StoreAuth } from "@store-api/core"
 * import { Layer } from "effect"
 *
 * const options: StoreAuth.Options = {
 *   authUrl: "https://auth.store.example",
 *   apiUrl: "https://api.store.example",
 *   credentials: ClientCredentials.fromConfig()
 * }
 *
 * const SourceLive = StoreAuth.layerSource(options).pipe(Layer.provide(FetchHttpClient.layer))
 *
 * const StoreAuthLive = StoreAuth.layerFromSource(options).pipe(
 *   Layer.provide([SourceLive, Layer.fresh(FetchHttpClient.layer)])
 * )
 * ```
 *
 * @since 1.0.0
 * @category layers
 */
export const layerSource = (
  options: Options
): Layer.Layer<
  TokenSource.TokenSource,
  ConfigurationError | CredentialsError,
  HttpClient.HttpClient
> =>
  Layer.unwrapEffect(Effect.gen(function*() {
    yield* checkOptions(options)
    const { allowInsecure, authUrl, transformClient } = options
    const credentials = yield* credentialsOf(options)
    const endpoint = { ...options.endpoint, authUrl, allowInsecure, credentials }
    const origins = Effect.map(
      baseUrl("authUrl", authUrl, allowInsecure, true),
      ({ origin }) => [origin]
    )
    return Layer.provide(
      TokenEndpoint.layer(endpoint),
      transformedClient(transformClient, origins)
    )
  }))

/**
 * `layerSource` for `layerShared`: it shares its tokens through the `TokenStore` in the context. Fails with the errors
 * of `layer`.
 *
 * @example
 * ```ts
 * import { FetchHttpClient } from "@effect/platform"
 * import { StoreAuth, TokenStore } from "@store-api/core"
 * import { Layer } from "effect"
 *
 * const sourceOf = (options: StoreAuth.Options & StoreAuth.Sharing) =>
 *   StoreAuth.layerSharedSource(options).pipe(Layer.provide([FetchHttpClient.layer, TokenStore.layerMemory]))
 * ```
 *
 * @since 1.0.0
 * @category layers
 */
export const layerSharedSource = (
  options: Options & Sharing
): Layer.Layer<
  TokenSource.TokenSource,
  ConfigurationError | CredentialsError,
  HttpClient.HttpClient | TokenStore
> =>
  Layer.unwrapEffect(Effect.map(checkOptions(options), () => {
    const shared = { ...options.shared, leeway: options.provider?.leeway }
    return Layer.provide(SharedTokenSource.layer(shared), layerSource(options))
  }))

/**
 * Reads the options from the variables `STORE_API_AUTH_URL`, `STORE_API_URL`, `STORE_API_CLIENT_ID` and
 * `STORE_API_CLIENT_SECRET`. The default of `prefix` is `"STORE_API"`. One `ConfigError` names all missing variables.
 * An empty variable does not count as missing, but `layer` fails with it.
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
 * @since 1.0.0
 * @category config
 */
export const config = (prefix = "STORE_API"): Config.Config<SecretOptions> =>
  configOf({
    authUrl: Config.string(`${prefix}_AUTH_URL`),
    apiUrl: Config.string(`${prefix}_URL`),
    clientId: Config.string(`${prefix}_CLIENT_ID`),
    clientSecret: Config.redacted(`${prefix}_CLIENT_SECRET`)
  })

/**
 * `layer` with options from the configuration: one `Config` of all options, or a record with a `Config` for each. The
 * default is `config()`. Also fails with Effect's `ConfigError` if a variable is missing or invalid.
 *
 * Each option is a `Config`: pass plain values to `layer`, or wrap them with `Config.succeed`.
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
 * @since 1.0.0
 * @category layers
 */
export const layerConfig = (
  options: Configured<Options> = config()
): Layer.Layer<
  Services,
  ConfigurationError | CredentialsError | ConfigError.ConfigError,
  HttpClient.HttpClient
> => Layer.unwrapEffect(Effect.map(Config.unwrap<Options>(options), layer))

/**
 * `layerShared` with options from the configuration: one `Config` of all options, or a record with a `Config` for each.
 * The default is `config()`. Also fails with Effect's `ConfigError` if a variable is missing or invalid.
 *
 * Each option is a `Config`: pass plain values to `layerShared`, or wrap them with `Config.succeed`.
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
 * @since 1.0.0
 * @category layers
 */
export const layerSharedConfig = (
  options: Configured<Options & Sharing> = config()
): Layer.Layer<
  Services,
  ConfigurationError | CredentialsError | ConfigError.ConfigError,
  HttpClient.HttpClient | TokenStore
> => Layer.unwrapEffect(Effect.map(Config.unwrap<Options & Sharing>(options), layerShared))

const checkOptions = (options: SourceOptions & Partial<Options & Sharing>) =>
  checkKinds(composed, options, {
    allowInsecure: "boolean",
    client: "object",
    endpoint: "object",
    shared: "object",
    transformClient: "function"
  })

/** Called once for the endpoint and once for the APIs: the token must not go to `authUrl`, nor the secret to an API. */
const transformedClient = (
  transform: SourceOptions["transformClient"],
  origins: Effect.Effect<ReadonlyArray<string>, ConfigurationError>
): Layer.Layer<HttpClient.HttpClient, ConfigurationError, HttpClient.HttpClient> =>
  Layer.effect(
    HttpClient.HttpClient,
    Effect.gen(function*() {
      const client = yield* HttpClient.HttpClient
      if (transform === undefined) return client
      const transformed = transform(yield* trustedOrigins.boundClient(client, yield* origins))
      if (Predicate.hasProperty(transformed, "execute")) return transformed
      return yield* unusable("transformClient", "must return an HttpClient")
    })
  )

/** Checks a client id and secret when the layer is built. The effect `credentials` runs at each acquisition. */
const credentialsOf = (options: Options) =>
  Effect.gen(function*() {
    const hasSecret = [options.clientId, options.clientSecret].some(Predicate.isNotUndefined)
    if (options.credentials !== undefined) {
      if (!hasSecret) return options.credentials
      return yield* unusable(
        "credentials",
        "must not be given together with clientId or clientSecret"
      )
    }
    yield* Effect.mapError(
      checkBy([], options),
      ({ field, reason }) => unusable(field, reason)
    )
    const credentials = ClientCredentials.make(options)
    const { checkCredentials } = options.endpoint?.request ?? specification
    // The endpoint finds one that is not a function.
    if (Predicate.isFunction(checkCredentials)) {
      yield* Effect.flatMap(credentials, checkCredentials)
    }
    return credentials
  })
