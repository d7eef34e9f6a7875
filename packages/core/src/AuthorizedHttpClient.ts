/**
 * An `HttpClient` that carries the access token on every request, and only to where it belongs; a 401 is answered with
 * another token, once.
 *
 * @since 0.1.0
 */
import * as Headers from "@effect/platform/Headers"
import * as HttpClient from "@effect/platform/HttpClient"
import * as HttpClientError from "@effect/platform/HttpClientError"
import * as HttpClientRequest from "@effect/platform/HttpClientRequest"
import type * as HttpClientResponse from "@effect/platform/HttpClientResponse"
import * as Config from "effect/Config"
import type * as ConfigError from "effect/ConfigError"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import { dual } from "effect/Function"
import * as Layer from "effect/Layer"
import * as Option from "effect/Option"
import type { AccessToken } from "./AccessToken.js"
import { type AccessTokenError, ConfigurationError, isTransient, UntrustedOriginError } from "./AccessTokenError.js"
import { AccessTokenProvider } from "./AccessTokenProvider.js"
import * as baseUrl from "./internal/baseUrl.js"
import * as boundedBody from "./internal/boundedBody.js"
import * as challenge from "./internal/challenge.js"
import * as headerValue from "./internal/headerValue.js"
import { sameValue } from "./internal/heldToken.js"
import * as hiddenHeader from "./internal/hiddenHeader.js"
import * as manualRedirect from "./internal/manualRedirect.js"
import * as trusted from "./internal/trustedOrigins.js"

/**
 * Where the token may go, and in which header. Only `apiUrl` has to be given.
 *
 * @see layer
 *
 * @since 0.1.0
 * @category models
 */
export interface Options {
  /**
   * The base of the store's APIs, to which relative URLs are joined. It may have a path, but no query, fragment or user
   * name. https, or http on this machine.
   */
  readonly apiUrl: string | URL
  /** Whether the token may go to any host over http. Default `false`: https, or http on this machine (RFC 6750 §5.3). */
  readonly allowInsecure?: boolean | undefined
  /** Further origins that the token may go to, without a path. Default none. */
  readonly trustedOrigins?: ReadonlyArray<string | URL> | undefined
  /**
   * Where the token goes. Default `Authorization: Bearer <token>` (RFC 6750 §2.1; the specification does not show it). A
   * header of another name is hidden from the platform's logs and spans too.
   */
  readonly header?: {
    /** The name of the header, in any case. */
    readonly name: string
    /** Makes the header's value of the token: printable ASCII. Default `Bearer <token>`. */
    readonly format?: ((accessToken: string) => string) | undefined
  } | undefined
  /**
   * Whether a request is repeated with another token, once, after a 401. Default `true`; `RetryUnauthorized` is the choice
   * for one request.
   */
  readonly retryUnauthorized?: boolean | undefined
}

/**
 * An `HttpClient` of `@effect/platform` that can fail, besides with its own errors, for want of a token and with
 * `UntrustedOriginError`. All combinators of `HttpClient` work on it.
 *
 * @see AuthorizedHttpClient
 *
 * @since 0.1.0
 * @category models
 */
export type Service = HttpClient.HttpClient.With<
  HttpClientError.HttpClientError | AccessTokenError | UntrustedOriginError
>

/**
 * The client as a service: an `HttpClient` with the token on each request to the store's APIs. `HttpApiClient.makeWith`
 * takes it as it is.
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
 * @since 0.1.0
 * @category tags
 */
export class AuthorizedHttpClient
  extends Context.Tag("@store-api/core/AuthorizedHttpClient")<AuthorizedHttpClient, Service>()
{}

/**
 * Whether a request is repeated with another token after a 401, for the effect that it is provided to. Where it is not
 * provided, the client's option counts.
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
 * @since 0.1.0
 * @category references
 */
export class RetryUnauthorized extends Context.Reference<RetryUnauthorized>()(
  "@store-api/core/AuthorizedHttpClient/RetryUnauthorized",
  { defaultValue: () => true }
) {}

/**
 * The given client with the token on every request (the specification, "Authentication"). Fails with `ConfigurationError`
 * when an option cannot be used.
 *
 * The origin is checked on the request as it leaves, after the client's own `mapRequest`; a request to another origin
 * fails with `UntrustedOriginError` and is not sent. A request that already has the header goes as it is.
 *
 * Responses and `HttpClientError`s come back with the request as it was without the header, so that printing them shows no
 * token.
 *
 * A client that itself follows redirects takes the token along: put `followRedirects` over the result, not below it.
 * With `withScope` it is the other way round: below it, since a scope holds the request that it was given, and this sends
 * another, with the header.
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
 * @since 0.1.0
 * @category combinators
 */
export const withAccessToken: {
  (
    options: Options
  ): <E, R>(
    client: HttpClient.HttpClient.With<E, R>
  ) => Effect.Effect<
    HttpClient.HttpClient.With<E | AccessTokenError | UntrustedOriginError, R>,
    ConfigurationError,
    AccessTokenProvider
  >
  <E, R>(
    client: HttpClient.HttpClient.With<E, R>,
    options: Options
  ): Effect.Effect<
    HttpClient.HttpClient.With<E | AccessTokenError | UntrustedOriginError, R>,
    ConfigurationError,
    AccessTokenProvider
  >
} = dual(2, <E, R>(client: HttpClient.HttpClient.With<E, R>, options: Options) =>
  Effect.gen(function*() {
    const provider = yield* AccessTokenProvider
    const { api, isTrusted, origins } = yield* trusted.make(options)
    const headerName = yield* customHeader(options)
    const valueOf = headerValue.make(options.header?.format)
    const hidden = hiddenHeader.make(headerName)
    const guarded = headerName === "authorization" ? undefined : yield* guardCustomHeader(headerName)

    const execute = (
      request: HttpClientRequest.HttpClientRequest
    ): Effect.Effect<
      HttpClientResponse.HttpClientResponse,
      E | AccessTokenError | UntrustedOriginError,
      R
    > => {
      let sent: Option.Option<Sent> = Option.none()

      /** The last thing before it leaves: the client's own `mapRequest` has had its say. */
      const attach = (
        given: HttpClientRequest.HttpClientRequest
      ): Effect.Effect<HttpClientRequest.HttpClientRequest, AccessTokenError | UntrustedOriginError> => {
        const leaving = trusted.join(api, given)
        if (!isTrusted(leaving.url)) {
          return Effect.fail(new UntrustedOriginError({ origin: trusted.originOf(leaving.url), trusted: origins }))
        }
        if (leaving.headers[headerName] !== undefined) {
          sent = Option.none()
          return Effect.succeed(leaving)
        }
        return Effect.flatMap(provider.get, (token) => {
          sent = Option.some({ token, request: leaving })
          return Effect.map(valueOf(token), (value) => HttpClientRequest.setHeader(leaving, headerName, value))
        })
      }

      const send = HttpClient.mapRequestEffect(client, attach).execute(request)

      /** After a 401: the answer to a second request with another token, or the 401 itself. */
      const recover = <E1>(
        response: HttpClientResponse.HttpClientResponse,
        asItIs: Effect.Effect<HttpClientResponse.HttpClientResponse, E1>
      ) =>
        Effect.gen(function*() {
          if (Option.isNone(sent) || challenge.noTokenHelps(response)) return yield* asItIs
          const { request, token } = sent.value
          yield* provider.invalidate(token)
          if (!isReplayable(request) || !(yield* retryUnauthorized(options))) return yield* asItIs
          const other = yield* Effect.exit(provider.get).pipe(
            Effect.onInterrupt(() => boundedBody.release(response))
          )
          if (Exit.isFailure(other) || sameValue(other.value, token)) return yield* asItIs
          yield* boundedBody.release(response)
          return yield* Effect.matchEffect(send, { onFailure: shownError, onSuccess: shown })
        })

      const shownError = (error: E | AccessTokenError | UntrustedOriginError) =>
        Effect.fail(Option.isSome(sent) ? hidden.error(error) : error)
      const shown = (response: HttpClientResponse.HttpClientResponse) =>
        Effect.succeed(Option.isSome(sent) ? hidden.response(response) : response)

      return Effect.matchEffect(send, {
        onFailure: (error) =>
          isUnauthorizedError(error) ? recover(error.response, shownError(error)) : shownError(error),
        onSuccess: (response) => response.status === 401 ? recover(response, shown(response)) : shown(response)
      })
    }

    return HttpClient.makeWith<
      E | AccessTokenError | UntrustedOriginError,
      R,
      E | AccessTokenError | UntrustedOriginError,
      R
    >(
      Effect.flatMap((request) => guarded === undefined ? execute(request) : guarded(execute(request))),
      Effect.succeed
    )
  }))

/** What an attempt sent: the token, and the request as it left, without the header. */
interface Sent {
  readonly token: AccessToken
  readonly request: HttpClientRequest.HttpClientRequest
}

/**
 * `withAccessToken` over the `HttpClient` in the context. Fails with `ConfigurationError` when an option cannot be used.
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
 * @since 0.1.0
 * @category constructors
 */
export const make = (
  options: Options
): Effect.Effect<Service, ConfigurationError, AccessTokenProvider | HttpClient.HttpClient> =>
  Effect.flatMap(HttpClient.HttpClient, withAccessToken(options))

/**
 * The authorized client as a layer, with its own tag and typed errors. Fails with `ConfigurationError`, while it is built,
 * when an option cannot be used.
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
 * @since 0.1.0
 * @category layers
 */
export const layer = (
  options: Options
): Layer.Layer<AuthorizedHttpClient, ConfigurationError, AccessTokenProvider | HttpClient.HttpClient> =>
  Layer.effect(AuthorizedHttpClient, make(options))

/**
 * `layer`, its options read from the configuration, each alone or all of them. Fails besides with Effect's `ConfigError`,
 * when one is missing or cannot be read.
 *
 * @example
 * ```ts
 * import { AuthorizedHttpClient } from "@store-api/core"
 * import { Config } from "effect"
 *
 * const ClientLive = AuthorizedHttpClient.layerConfig({ apiUrl: Config.string("STORE_API_URL") })
 * ```
 *
 * @since 0.1.0
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
 * The same behind the plain `HttpClient` tag, for libraries that know only that. Their errors are `HttpClientError`s: an
 * untrusted origin becomes a `RequestError` with reason `InvalidUrl`, a transient failure to have a token `Transport`, any
 * other `Encode`; the typed error is the `cause`, and the request is held without the header.
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
 * @since 0.1.0
 * @category layers
 */
export const layerHttpClient = (
  options: Options
): Layer.Layer<HttpClient.HttpClient, ConfigurationError, AccessTokenProvider | HttpClient.HttpClient> =>
  Layer.effect(
    HttpClient.HttpClient,
    Effect.map(make(options), (client) =>
      HttpClient.makeWith<never, never, HttpClientError.HttpClientError, never>(
        Effect.flatMap((request) =>
          Effect.mapError(
            client.execute(request),
            (error) => HttpClientError.isHttpClientError(error) ? error : plainError(error, request)
          )
        ),
        Effect.succeed
      ))
  )

const plainError = (
  error: AccessTokenError | UntrustedOriginError,
  request: HttpClientRequest.HttpClientRequest
): HttpClientError.RequestError =>
  new HttpClientError.RequestError({
    request,
    reason: error._tag === "UntrustedOriginError" ? "InvalidUrl" : isTransient(error) ? "Transport" : "Encode",
    cause: error,
    description: error.message
  })

const customHeader = ({ header }: Options): Effect.Effect<string, ConfigurationError> =>
  header === undefined || /^[!#$%&'*+\-.^_`|~0-9A-Za-z]+$/.test(header.name)
    ? Effect.succeed((header?.name ?? "authorization").toLowerCase())
    : Effect.fail(new ConfigurationError({ option: "header.name", reason: "is not the name of an HTTP header" }))

/** A header that the platform does not know as secret: keep it out of logs and spans, and from fetch's redirects. */
const guardCustomHeader = (name: string) =>
  Effect.map(
    manualRedirect.make,
    (withoutRedirects) => <A, E, R>(effect: Effect.Effect<A, E, R>) =>
      withoutRedirects(Effect.locallyWith(effect, Headers.currentRedactedNames, (names) => [...names, name]))
  )

const retryUnauthorized = (options: Options): Effect.Effect<boolean> =>
  Effect.contextWith((context: Context.Context<never>) =>
    context.unsafeMap.has(RetryUnauthorized.key)
      ? Context.get(context, RetryUnauthorized)
      : options.retryUnauthorized ?? true
  )

/** A stream is gone once it was sent, and a raw body may wrap one. */
const isReplayable = ({ body }: HttpClientRequest.HttpClientRequest): boolean =>
  body._tag === "Empty" || body._tag === "Uint8Array" || body._tag === "FormData"

/** A client that turns statuses into errors (`filterStatusOk`) hides the 401 in one. */
const isUnauthorizedError = (error: unknown): error is HttpClientError.ResponseError =>
  HttpClientError.isHttpClientError(error) && error._tag === "ResponseError" && error.reason === "StatusCode" &&
  error.response.status === 401

/**
 * Whether a URL names this machine. A secret may be sent there over http (RFC 6761 §6.3, RFC 1122 §3.2.1.3). An HTTP layer
 * must not send such a request through a proxy, because the secret would leave the machine in clear text.
 *
 * @example
 * ```ts
 * import { AuthorizedHttpClient } from "@store-api/core"
 *
 * AuthorizedHttpClient.isLoopback(new URL("http://127.0.0.1:4010")) // true
 * AuthorizedHttpClient.isLoopback(new URL("http://10.0.0.1")) // false
 * ```
 *
 * @since 0.1.0
 * @category predicates
 */
export const isLoopback: (url: URL) => boolean = baseUrl.isLoopback
