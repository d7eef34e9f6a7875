/**
 * An `HttpClient` that adds the access token to every request, and sends it only to trusted origins. After a 401 it
 * acquires another token and repeats the request.
 *
 * @since 1.0.0
 */
import * as Headers from "@effect/platform/Headers"
import * as HttpClient from "@effect/platform/HttpClient"
import * as HttpClientError from "@effect/platform/HttpClientError"
import type * as HttpClientRequest from "@effect/platform/HttpClientRequest"
import * as Config from "effect/Config"
import type * as ConfigError from "effect/ConfigError"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import { dual, identity } from "effect/Function"
import * as Layer from "effect/Layer"
import {
  type AccessTokenError,
  type ConfigurationError,
  isTransient,
  type UntrustedOriginError
} from "./AccessTokenError.js"
import { AccessTokenProvider } from "./AccessTokenProvider.js"
import * as baseUrl from "./internal/baseUrl.js"
import * as attempt from "./internal/client/attempt.js"
import * as trustedOrigins from "./internal/client/trustedOrigins.js"
import * as httpErrors from "./internal/httpErrors.js"
import * as manualRedirect from "./internal/manualRedirect.js"
import { checkKinds, unusable } from "./internal/options.js"

/**
 * The trusted origins, the header, and what to do after a 401. Only `apiUrl` is required.
 *
 * @see layer
 *
 * @since 1.0.0
 * @category models
 */
export interface Options {
  /**
   * The base URL of the store's APIs, to which relative URLs are appended. May have a path, but no query, fragment or
   * user name. Must be https, or http on this machine.
   */
  readonly apiUrl: string | URL
  /** Allows http to any host. Default `false`: only https, or http on this machine (RFC 6750 §5.3). */
  readonly allowInsecure?: boolean | undefined
  /** Further origins that may receive the token, without a path. Default none. */
  readonly trustedOrigins?: ReadonlyArray<string | URL> | undefined
  /**
   * The header that carries the token. Default `Authorization: Bearer <token>` (RFC 6750 §2.1), or `DPoP <token>` for a
   * token of that type. The specification does not define the header. A header with another name is also redacted in
   * the logs and spans of `@effect/platform`.
   */
  readonly header?: {
    /** The name of the header. Case does not matter. */
    readonly name: string
    /** Returns the header value for a token. It must be printable ASCII. Default `Bearer <token>`. */
    readonly format?: ((accessToken: string) => string) | undefined
  } | undefined
  /** Whether a request is repeated after a 401. Default `true`. `RetryUnauthorized` overrides it for a request. */
  readonly retryUnauthorized?: boolean | undefined
}

/**
 * An `HttpClient` of `@effect/platform` that can also fail with an `AccessTokenError` or `UntrustedOriginError`. All
 * combinators of `HttpClient` work on it.
 *
 * @see AuthorizedHttpClient
 *
 * @since 1.0.0
 * @category models
 */
export type Service = HttpClient.HttpClient.With<
  HttpClientError.HttpClientError | AccessTokenError | UntrustedOriginError
>

/**
 * The tag of the authorized client: an `HttpClient` that adds the token to each request to the store's APIs. You can
 * pass it to `HttpApiClient.makeWith`.
 *
 * @example
 * ```ts
 * import { HttpClient } from "@effect/platform"
 * import { AuthorizedHttpClient } from "@store-api/core"
 * import { Effect } from "effect"
 *
 * const orders = Effect.gen(function*() {
 *   const client = HttpClient.filterStatusOk(yield* AuthorizedHttpClient.AuthorizedHttpClient)
 *   const response = yield* client.get("/orders")
 *   return yield* response.json
 * })
 * ```
 *
 * @since 1.0.0
 * @category tags
 */
export class AuthorizedHttpClient
  extends Context.Tag("@store-api/core/AuthorizedHttpClient")<AuthorizedHttpClient, Service>()
{}

/**
 * Whether the requests in an effect are repeated with another token after a 401. Provide it to that effect. The
 * default, `undefined`, means that the option `retryUnauthorized` of the client applies.
 *
 * @example
 * ```ts
 * import { AuthorizedHttpClient } from "@store-api/core"
 * import { Effect } from "effect"
 *
 * const once = Effect.flatMap(AuthorizedHttpClient.AuthorizedHttpClient, (client) => client.get("/orders")).pipe(
 *   Effect.provideService(AuthorizedHttpClient.RetryUnauthorized, false)
 * )
 * ```
 *
 * @since 1.0.0
 * @category references
 */
export class RetryUnauthorized extends Context.Reference<RetryUnauthorized>()(
  "@store-api/core/AuthorizedHttpClient/RetryUnauthorized",
  { defaultValue: (): boolean | undefined => undefined }
) {}

/**
 * Returns a client that adds the token to every request and sends it with the given client (the specification,
 * "Authentication"). Fails with `ConfigurationError` if an option is invalid.
 *
 * It also adds a `User-Agent` to a request that has none, because some gateways require one, and leaves a `traceparent`
 * of the caller alone.
 *
 * The origin is checked when the request is sent, after the `mapRequest` of the given client. A request to an untrusted
 * origin is not sent and fails with `UntrustedOriginError`. A request that already has the header keeps it, and is not
 * repeated after a 401.
 *
 * After a 401 the client invalidates the token at the provider, waits for another one and repeats the request once. You
 * receive the response to the repeated request, whatever it is. If that is a 401 too, the client invalidates its token
 * as well. If no other token can be acquired, the request fails with the error of that acquisition, as the next request
 * would.
 *
 * If the repeat gets a 401 for a token that was acquired more than a second before the first 401 arrived, the request
 * is repeated once more: processes that share tokens may have two, and both may have been revoked.
 *
 * You receive the first 401, with its body unread, if
 * - the body of the request cannot be sent again, because it is a stream or raw,
 * - `retryUnauthorized` or `RetryUnauthorized` is `false`,
 * - its `WWW-Authenticate` says that another token would not help, such as `insufficient_scope`, or
 * - the provider keeps the token, because too many tokens were rejected before (see `AccessTokenProvider.Service`).
 *
 * Responses and `HttpClientError`s contain the request without the header, so that printing them shows no token.
 *
 * If the given client follows redirects, it sends the token to the redirect target too. Apply `followRedirects` to the
 * result instead. Apply `withScope` to the given client and not to the result: a scope is tied to the request that it
 * was given, but this client sends a copy of that request, with the header.
 *
 * @example
 * ```ts
 * import { HttpClient } from "@effect/platform"
 * import { AuthorizedHttpClient } from "@store-api/core"
 * import { Effect } from "effect"
 *
 * const client = Effect.gen(function*() {
 *   const plain = yield* HttpClient.HttpClient
 *   const authorized = yield* AuthorizedHttpClient.withAccessToken(plain, { apiUrl: "https://api.store.example" })
 *   return HttpClient.followRedirects(authorized, 3)
 * })
 * ```
 *
 * @since 1.0.0
 * @category combinators
 */
export const withAccessToken: {
  (options: Options): <E, R>(client: HttpClient.HttpClient.With<E, R>) => Authorized<E, R>
  <E, R>(client: HttpClient.HttpClient.With<E, R>, options: Options): Authorized<E, R>
} = dual(
  2,
  <E, R>(client: HttpClient.HttpClient.With<E, R>, options: Options) =>
    Effect.gen(function*() {
      yield* checkKinds("client", options, {
        header: "object",
        retryUnauthorized: "boolean",
        trustedOrigins: "list"
      })
      const header = yield* headerName(options)
      const trusted = yield* trustedOrigins.make(options)
      const execute = attempt.makeExecute(client, {
        header,
        format: options.header?.format,
        provider: yield* AccessTokenProvider,
        retryUnauthorized: Effect.map(
          RetryUnauthorized,
          (own) => own ?? options.retryUnauthorized ?? true
        ),
        trusted
      })
      const protect = header === "authorization"
        ? identity
        : yield* protectCustomHeader(header)
      return HttpClient.makeWith<E | attempt.Failure, R, E | attempt.Failure, R>(
        Effect.flatMap((request) => protect(execute(request))),
        Effect.succeed
      )
    })
)

/**
 * Applies `withAccessToken` to the `HttpClient` in the context. Fails with `ConfigurationError` if an option is
 * invalid.
 *
 * @example
 * ```ts
 * import { AuthorizedHttpClient } from "@store-api/core"
 * import { Effect } from "effect"
 *
 * const status = Effect.gen(function*() {
 *   const client = yield* AuthorizedHttpClient.make({ apiUrl: "https://api.store.example/v1/" })
 *   const response = yield* client.get("orders")
 *   return response.status
 * })
 * ```
 *
 * @since 1.0.0
 * @category constructors
 */
export const make = (
  options: Options
): Effect.Effect<Service, ConfigurationError, AccessTokenProvider | HttpClient.HttpClient> =>
  Effect.flatMap(HttpClient.HttpClient, withAccessToken(options))

/**
 * Provides the authorized client as a layer, with its own tag and typed errors. The layer fails with
 * `ConfigurationError` if an option is invalid.
 *
 * @example
 * ```ts
 * import { AuthorizedHttpClient } from "@store-api/core"
 * import { Effect } from "effect"
 *
 * const ClientLive = AuthorizedHttpClient.layer({ apiUrl: "https://api.store.example" })
 *
 * const orders = Effect.gen(function*() {
 *   const client = yield* AuthorizedHttpClient.AuthorizedHttpClient
 *   const response = yield* client.get("/v1/orders")
 *   return yield* response.json
 * }).pipe(Effect.provide(ClientLive))
 * ```
 *
 * @since 1.0.0
 * @category layers
 */
export const layer = (
  options: Options
): Layer.Layer<
  AuthorizedHttpClient,
  ConfigurationError,
  AccessTokenProvider | HttpClient.HttpClient
> => Layer.effect(AuthorizedHttpClient, make(options))

/**
 * `layer` with options from the configuration: a `Config` for each option or one for all. Also fails with Effect's
 * `ConfigError` if a variable is missing or invalid.
 *
 * Each option is a `Config`: pass plain values to `layer`, or wrap them with `Config.succeed`.
 *
 * @example
 * ```ts
 * import { AuthorizedHttpClient } from "@store-api/core"
 * import { Config } from "effect"
 *
 * const ClientLive = AuthorizedHttpClient.layerConfig({
 *   apiUrl: Config.string("STORE_API_URL")
 * })
 * ```
 *
 * @since 1.0.0
 * @category layers
 */
export const layerConfig = (
  config: Config.Config.Wrap<Options>
): Layer.Layer<
  AuthorizedHttpClient,
  ConfigurationError | ConfigError.ConfigError,
  AccessTokenProvider | HttpClient.HttpClient
> => Layer.unwrapEffect(Effect.map(Config.unwrap(config), layer))

/**
 * Provides the authorized client behind the plain `HttpClient` tag, for libraries that use that tag. All its errors are
 * `HttpClientError`s. For an `UntrustedOriginError`, the reason is `InvalidUrl`. For an `AccessTokenError`, it is
 * `Transport` if that is transient, and `Encode` otherwise. The typed error is the `cause`, and the request does
 * not contain the header.
 *
 * @example
 * ```ts
 * import { FetchHttpClient, HttpClient } from "@effect/platform"
 * import { AuthorizedHttpClient } from "@store-api/core"
 * import { Effect, Layer } from "effect"
 *
 * const HttpLive = AuthorizedHttpClient.layerHttpClient({ apiUrl: "https://api.store.example" }).pipe(
 *   Layer.provide(FetchHttpClient.layer)
 * )
 *
 * const orders = HttpClient.get("/orders").pipe(Effect.provide(HttpLive))
 * ```
 *
 * @since 1.0.0
 * @category layers
 */
export const layerHttpClient = (
  options: Options
): Layer.Layer<
  HttpClient.HttpClient,
  ConfigurationError,
  AccessTokenProvider | HttpClient.HttpClient
> =>
  Layer.effect(
    HttpClient.HttpClient,
    Effect.map(make(options), (client) =>
      HttpClient.makeWith<never, never, HttpClientError.HttpClientError, never>(
        Effect.flatMap((request) =>
          Effect.mapError(
            client.execute(request),
            (error) =>
              HttpClientError.isHttpClientError(error) ? error : plainError(error, request)
          )
        ),
        Effect.succeed
      ))
  )

/** The client with the errors of the token. */
type Authorized<E, R> = Effect.Effect<
  HttpClient.HttpClient.With<E | attempt.Failure, R>,
  ConfigurationError,
  AccessTokenProvider
>

const plainError = (
  error: AccessTokenError | UntrustedOriginError,
  request: HttpClientRequest.HttpClientRequest
): HttpClientError.HttpClientError =>
  httpErrors.make(
    error._tag === "UntrustedOriginError"
      ? "InvalidUrl"
      : isTransient(error)
      ? "Transport"
      : "Encode",
    request,
    error
  )

const headerName = (
  { header = { name: "authorization" } }: Options
): Effect.Effect<string, ConfigurationError> =>
  Effect.gen(function*() {
    yield* checkKinds("client.header", header, { format: "function" })
    const { name } = header
    if (typeof name === "string" && /^[!#$%&'*+\-.^`|~\w]+$/.test(name)) {
      return name.toLowerCase()
    }
    return yield* unusable("client.header.name", "is not the name of an HTTP header")
  })

/**
 * Redacts a custom header in logs and spans, and stops `fetch` from following redirects with it. `Authorization` needs
 * neither.
 */
const protectCustomHeader = (name: string) =>
  Effect.map(
    manualRedirect.make,
    (withoutRedirects) => <A, E, R>(effect: Effect.Effect<A, E, R>) =>
      withoutRedirects(
        Effect.locallyWith(effect, Headers.currentRedactedNames, (names) => [...names, name])
      )
  )

/**
 * Returns whether the host of a URL is this machine. A secret may be sent there over http (RFC 6761 §6.3, RFC 1122
 * §3.2.1.3). An HTTP layer must not send such a request through a proxy, because the secret would leave the machine in
 * clear text.
 *
 * @example
 * ```ts
 * import { AuthorizedHttpClient } from "@store-api/core"
 *
 * AuthorizedHttpClient.isLoopback(new URL("http://127.0.0.1:4010")) // true
 * AuthorizedHttpClient.isLoopback(new URL("http://10.0.0.1")) // false
 * ```
 *
 * @since 1.0.0
 * @category predicates
 */
export const isLoopback: (url: URL) => boolean = baseUrl.isLoopback
