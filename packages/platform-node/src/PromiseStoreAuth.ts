/**
 * The provider and the authorized client as functions that return promises, for code without Effect.
 *
 * @since 1.0.0
 */
import type { AccessToken } from "@store-api/core/AccessToken"
import {
  AccessTokenProvider,
  type ProviderStatus,
  type Service
} from "@store-api/core/AccessTokenProvider"
import type { AuthorizedHttpClient } from "@store-api/core/AuthorizedHttpClient"
import * as StoreAuth from "@store-api/core/StoreAuth"
import type { TokenStore } from "@store-api/core/TokenStore"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Predicate from "effect/Predicate"
import * as nativeFetch from "./internal/nativeFetch.js"
import { check, checkRecord } from "./internal/options.js"
import * as promises from "./internal/promises.js"
import * as NodeStoreAuth from "./NodeStoreAuth.js"

/**
 * Functions that share one token. Their promises reject with typed errors: `AccessTokenError`, `ConfigurationError` or,
 * for a missing variable, an `Error` with the `_tag` `ConfigError`. Those of `fetch` also reject with
 * `UntrustedOriginError`, the errors of the global `fetch`, or the reason of your signal. Unless that reason is another
 * value, each is an `Error` with a sentence and a stack that can be sent to another thread.
 *
 * @see make
 *
 * @since 1.0.0
 * @category models
 */
export interface PromiseStoreAuth extends AsyncDisposable {
  /** `AccessTokenProvider.get`: a valid token, from the cache or freshly acquired. */
  readonly getToken: () => Promise<AccessToken>
  /** `AccessTokenProvider.invalidate`: reports a token that an API rejected, so that `getToken` acquires another. */
  readonly reject: (token: AccessToken) => Promise<void>
  /** `AccessTokenProvider.status`: the state of the cached token. Sends no request. */
  readonly status: () => Promise<ProviderStatus>
  /**
   * Sends a request with Node's global `fetch` (the Fetch standard) and the token. After a 401 it repeats the request
   * once, with another token. It differs from the global `fetch` in these points:
   *
   * - A relative URL is joined to `apiUrl`. A request to an origin that is not trusted rejects with
   *   `UntrustedOriginError`.
   * - A request that already has the `Authorization` header keeps it, and is not repeated.
   * - It follows no redirect, because the token must not leave its origin. `redirect: "follow"` acts as `"manual"`: you
   *   receive the response with the status 3xx.
   * - It reads the body into memory before it sends the request, so that it can repeat the request. Only a stream in
   *   `init.body` is sent as it comes. Such a request is not repeated, so you receive its 401.
   * - It sends bytes without a content type as `application/octet-stream`, and a `User-Agent` of `store-api` if the
   *   request has none.
   * - It ignores `dispatcher`, because the option `http` determines the connections, unless you give it a `fetch`.
   * - On Deno, and with a dispatcher of your own, it uses only the method, headers, body, signal and `redirect` of a
   *   request.
   *
   * Read or cancel the body of each response: until then it holds a connection.
   */
  readonly fetch: typeof globalThis.fetch
  /**
   * Ends calls in flight and closes the connections, also those of the store. Later calls also reject with
   * `TokenRequestError`, `Closed`. `await using` calls it by itself.
   */
  readonly dispose: () => Promise<void>
}

/**
 * The options without the URLs and the credentials, which then come from the variables `STORE_API_AUTH_URL`,
 * `STORE_API_URL`, `STORE_API_CLIENT_ID`, and `STORE_API_CLIENT_SECRET` or `STORE_API_CLIENT_ASSERTION_FILE`. All
 * of these options are optional.
 *
 * @see make
 *
 * @since 1.0.0
 * @category models
 */
export interface ConfiguredOptions extends
  Omit<
    NodeStoreAuth.SecretOptions,
    "authUrl" | "apiUrl" | "clientId" | "clientSecret" | "credentials"
  >
{
  /** Comes from `STORE_API_AUTH_URL`. */
  readonly authUrl?: undefined
  /** Comes from `STORE_API_URL`. */
  readonly apiUrl?: undefined
  /** Comes from `STORE_API_CLIENT_ID`. */
  readonly clientId?: undefined
  /** Comes from `STORE_API_CLIENT_SECRET`. */
  readonly clientSecret?: undefined
  /** Requires `authUrl` and `apiUrl`. */
  readonly credentials?: undefined
}

/**
 * The options that share the token with other processes. `shared` is optional.
 *
 * @see make
 *
 * @since 1.0.0
 * @category models
 */
export interface SharedOptions extends StoreAuth.Sharing {
  /**
   * The layer of the store, such as `RedisTokenStore.layerConfig()`. It is built once, at the first call. If that
   * fails, every call rejects with its error.
   */
  readonly store: Layer.Layer<TokenStore, unknown>
}

/**
 * The option that determines what sends the requests.
 *
 * @see make
 *
 * @since 1.0.0
 * @category models
 */
export interface FetchOptions {
  /**
   * Sends all requests, token requests included: for mocks in tests and for other runtimes. It takes a string and an
   * `init`, and must not follow redirects if `init.redirect` is `"manual"`. If you pass the global `fetch`, the one at
   * the time of each request is used, so a mock that you install later receives the requests too. Not allowed together
   * with `http`. Default: undici for token requests and the global `fetch` for API requests, with the connections of
   * `http`. On Deno, and with a dispatcher of your own, undici sends the API requests too.
   */
  readonly fetch?: typeof globalThis.fetch | undefined
}

/**
 * The options of `NodeStoreAuth.layer`, and a `store` with those of `NodeStoreAuth.layerShared`. The URLs and the
 * credentials come from the configuration only if you omit all of them. If you give some, every call rejects with a
 * `ConfigurationError` that names a missing one. As for the layers, `clientSecret` is `Redacted`: in JavaScript, wrap
 * it with `Redacted.make` of `effect`.
 *
 * @see make
 *
 * @since 1.0.0
 * @category models
 */
export type Options =
  & (NodeStoreAuth.Options | ConfiguredOptions)
  & FetchOptions
  & (SharedOptions | { readonly store?: undefined; readonly shared?: undefined })

/**
 * Creates the functions. Sends no request before the first call, and never throws: calls reject if an option is
 * unusable. Call `make` once per store, and `dispose` at the end.
 *
 * Without options it reads the configuration, as `NodeStoreAuth.layerConfig` does. With a `store`, processes share the
 * token, as with `NodeStoreAuth.layerShared` and `NodeStoreAuth.layerSharedConfig`. A `transformClient` may change and
 * repeat requests, but it may not invent a response: `fetch` would reject.
 *
 * @example
 * ```ts
 * import { PromiseStoreAuth } from "@store-api/platform-node"
 *
 * const store = PromiseStoreAuth.make()
 *
 * const orders = async (): Promise<unknown> => {
 *   const response = await store.fetch("/orders")
 *   if (!response.ok) throw new Error(`The store API responded with ${response.status}`)
 *   return await response.json()
 * }
 * ```
 *
 * @since 1.0.0
 * @category constructors
 */
export const make = (options: Options = {}): PromiseStoreAuth => {
  const { dispose, run } = promises.make(layer(options))
  const ask = <A, E>(question: (provider: Service) => Effect.Effect<A, E>) =>
    run(() => ({ effect: Effect.flatMap(AccessTokenProvider, question) }))
  return {
    getToken: () => ask((provider) => provider.get),
    reject: (token) => ask((provider) => provider.invalidate(token)),
    status: () => ask((provider) => provider.status),
    fetch: (input, init) =>
      run(() => {
        const call = nativeFetch.makeCall(input, init)
        return {
          effect: nativeFetch.execute(call),
          signal: call.request.signal,
          onFailure: (error) => nativeFetch.discard(call, error)
        }
      }),
    dispose,
    [Symbol.asyncDispose]: dispose
  }
}

/** Either form of the options, which JavaScript may mix. */
type AnyOptions =
  & (NodeStoreAuth.Options | ConfiguredOptions)
  & FetchOptions
  & {
    readonly [Name in keyof SharedOptions]?: SharedOptions[Name] | undefined
  }

const layer = (
  options: AnyOptions
): Layer.Layer<AccessTokenProvider | AuthorizedHttpClient, unknown> =>
  Layer.unwrapEffect(Effect.gen(function*() {
    yield* checkRecord("options", options)
    const { fetch, http, shared, store } = options
    yield* check("store", store === undefined || Layer.isLayer(store), "must be a Layer")
    yield* check(
      "store",
      store !== undefined || shared === undefined,
      "is missing, shared needs it"
    )
    yield* check(
      "fetch",
      fetch === undefined || Predicate.isFunction(fetch),
      "must be a function"
    )
    yield* check(
      "fetch",
      fetch === undefined || http === undefined,
      "must not be given together with http"
    )
    const complete = isFromConfiguration(options) ? yield* addConfigured(options) : options
    const services = store === undefined
      ? StoreAuth.layer(complete)
      : Layer.provide(StoreAuth.layerShared(complete), store)
    return Layer.provide(
      services,
      fetch === undefined ? nativeFetch.layer(http) : nativeFetch.layerFetch(fetch)
    )
  }))

/** The endpoint may get its request from the configuration, and for example its path from the options. */
const addConfigured = (options: AnyOptions & ConfiguredOptions) =>
  Effect.map(NodeStoreAuth.config(), (configured) => ({
    ...options,
    ...configured,
    endpoint: { ...configured.endpoint, ...options.endpoint }
  }))

/** Whether none of the options is given that could come from the configuration. Then all of them do. */
const isFromConfiguration = (options: AnyOptions): options is AnyOptions & ConfiguredOptions =>
  [
    options.authUrl,
    options.apiUrl,
    options.clientId,
    options.clientSecret,
    options.credentials
  ]
    .every(Predicate.isUndefined)
