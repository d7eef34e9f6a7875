/**
 * An `HttpClient` that carries the access token on every request, and only to where it belongs; a 401 is answered with
 * another token, once.
 *
 * @since 0.1.0
 */
import * as Headers from "@effect/platform/Headers"
import type * as HttpBody from "@effect/platform/HttpBody"
import * as HttpClient from "@effect/platform/HttpClient"
import * as HttpClientError from "@effect/platform/HttpClientError"
import * as HttpClientRequest from "@effect/platform/HttpClientRequest"
import type * as HttpClientResponse from "@effect/platform/HttpClientResponse"
import * as Config from "effect/Config"
import type * as ConfigError from "effect/ConfigError"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Either from "effect/Either"
import * as Exit from "effect/Exit"
import { dual, identity } from "effect/Function"
import * as Layer from "effect/Layer"
import * as MutableRef from "effect/MutableRef"
import * as Option from "effect/Option"
import type { AccessToken } from "./AccessToken.js"
import { type AccessTokenError, ConfigurationError, isTransient, UntrustedOriginError } from "./AccessTokenError.js"
import { AccessTokenProvider } from "./AccessTokenProvider.js"
import * as baseUrl from "./internal/baseUrl.js"
import * as boundedBody from "./internal/boundedBody.js"
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
 * Whether a request is repeated with another token after a 401, for the effect that it is provided to. When it is
 * `undefined`, the default, the client's option counts.
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
  { defaultValue: (): boolean | undefined => undefined }
) {}

/**
 * The given client with the token on every request (the specification, "Authentication"). Fails with `ConfigurationError`
 * when an option cannot be used.
 *
 * The origin is checked on the request as it leaves, after the client's own `mapRequest`; a request to another origin
 * fails with `UntrustedOriginError` and is not sent. A request that already has the header goes as it is.
 *
 * After a 401 the client rejects the token at the provider, waits for another and repeats the request once. Before it
 * waits, it reads the body of the 401 into memory and frees the connection. If no other token is available, you receive
 * the 401; its body is then at most the first 64 KiB that arrived within a second, and can be read more than once. A second
 * 401 rejects the other token too, and you receive it.
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
    const headerName = yield* customHeader(options)
    const trustedOrigins = yield* trusted.make(options)
    const provider = yield* AccessTokenProvider
    const setup: Setup = {
      provider,
      attach: attaching(provider, trustedOrigins, headerName, options),
      hidden: hiddenHeader.make(headerName),
      retryUnauthorized: options.retryUnauthorized ?? true
    }
    const guarded = headerName === "authorization" ? identity : yield* guardCustomHeader(headerName)

    const execute = (request: HttpClientRequest.HttpClientRequest) =>
      send(client, setup, request, (attempt) => {
        const rejected = rejectedOf(attempt)
        return rejected === undefined
          ? shown(setup, attempt)
          : recover(setup, attempt, rejected, send(client, setup, request, Effect.succeed))
      })

    return HttpClient.makeWith<Failure<E>, R, Failure<E>, R>(
      Effect.flatMap((request) => guarded(execute(request))),
      Effect.succeed
    )
  }))

type Failure<E> = E | AccessTokenError | UntrustedOriginError

/** Made once for each client. */
interface Setup {
  readonly provider: Context.Tag.Service<typeof AccessTokenProvider>
  readonly attach: (
    request: HttpClientRequest.HttpClientRequest
  ) => Effect.Effect<Leaving, AccessTokenError | UntrustedOriginError>
  readonly hidden: hiddenHeader.HiddenHeader
  readonly retryUnauthorized: boolean
}

/** A request as it leaves. `sent` is undefined when the request brought the header. */
interface Leaving {
  readonly request: HttpClientRequest.HttpClientRequest
  readonly sent: Sent | undefined
}

/** The token in a request that left, and the request's body. */
interface Sent {
  readonly token: AccessToken
  readonly body: HttpBody.HttpBody
}

/** A response. `error` holds it when the given client fails on a status, as `filterStatusOk` does. */
interface Attempt<E> {
  readonly response: HttpClientResponse.HttpClientResponse
  readonly error: (E & HttpClientError.ResponseError) | undefined
  readonly sent: Sent | undefined
}

const attaching = (
  provider: Setup["provider"],
  { origins, resolve }: trusted.TrustedOrigins,
  headerName: string,
  options: Options
): Setup["attach"] => {
  const valueOf = headerValue.make(options.header?.format)
  return (given) => {
    const request = resolve(given)
    if (request === undefined) {
      return Effect.fail(new UntrustedOriginError({ origin: trusted.originOf(given.url), trusted: origins }))
    }
    if (request.headers[headerName] !== undefined) return Effect.succeed({ request, sent: undefined })
    return Effect.flatMap(provider.get, (token) => {
      const value = valueOf(token)
      return Either.isLeft(value) ? Effect.fail(value.left) : Effect.succeed({
        request: HttpClientRequest.setHeader(request, headerName, value.right),
        sent: { token, body: request.body }
      })
    })
  }
}

/**
 * Sends a request once, then continues with the attempt. The token is attached as the last step before the request leaves,
 * after the given client's own `mapRequest`. A client that retries repeats that step: the last one belongs to the response.
 */
const send = <E, R, A, E2, R2>(
  client: HttpClient.HttpClient.With<E, R>,
  { attach, hidden }: Setup,
  request: HttpClientRequest.HttpClientRequest,
  next: (attempt: Attempt<Failure<E>>) => Effect.Effect<A, E2, R2>
): Effect.Effect<A, Failure<E> | E2, R | R2> => {
  const last = MutableRef.make<Sent | undefined>(undefined)
  const attached = HttpClient.mapRequestEffect(client, (given) =>
    Effect.map(attach(given), ({ request, sent }) => {
      MutableRef.set(last, sent)
      return request
    }))
  return Effect.matchEffect(attached.execute(request), {
    onFailure: (error): Effect.Effect<A, Failure<E> | E2, R2> => {
      const sent = MutableRef.get(last)
      if (isStatusError(error)) return next({ response: error.response, error, sent })
      // A client that follows redirects was stopped before it sent the token to another origin.
      if (HttpClientError.isHttpClientError(error) && error.cause instanceof UntrustedOriginError) {
        return Effect.fail(error.cause)
      }
      return Effect.fail(sent === undefined ? error : hidden.error(error, Option.none()))
    },
    onSuccess: (response) => next({ response, error: undefined, sent: MutableRef.get(last) })
  })
}

/** What was sent, if the API rejected its token and may accept another one. */
const rejectedOf = <E>({ response, sent }: Attempt<E>): Sent | undefined =>
  response.status === 401 && !noTokenHelps(response) ? sent : undefined

/** Returns the response to a second request, sent with another token, or else the 401. */
const recover = <E, R>(
  setup: Setup,
  attempt: Attempt<E>,
  { body, token }: Sent,
  repeat: Effect.Effect<Attempt<E>, E, R>
): Effect.Effect<HttpClientResponse.HttpClientResponse, E, R> =>
  Effect.gen(function*() {
    const { provider, retryUnauthorized } = setup
    yield* provider.invalidate(token)
    const mayRepeat = (yield* RetryUnauthorized) ?? retryUnauthorized
    if (!mayRepeat || !isReplayable(body)) return yield* shown(setup, attempt)
    // A provider that has just replaced a rejected token keeps this one for a while.
    const cached = Option.flatten(yield* Effect.option(provider.current))
    if (Option.exists(cached, (cached) => sameValue(cached, token))) return yield* shown(setup, attempt)
    // The request for another token may need the connection that the 401 holds.
    const held = yield* boundedBody.hold(attempt.response)
    const other = yield* Effect.exit(provider.get)
    if (Exit.isFailure(other) || sameValue(other.value, token)) return yield* shown(setup, attempt, held)
    const repeated = yield* repeat
    const rejected = rejectedOf(repeated)
    if (rejected !== undefined) yield* provider.invalidate(rejected.token)
    return yield* shown(setup, repeated)
  })

/** What the caller sees: without the header, if it was added here. */
const shown = <E>(
  { hidden }: Setup,
  { error, response, sent }: Attempt<E>,
  held: Option.Option<Blob> = Option.none()
): Effect.Effect<HttpClientResponse.HttpClientResponse, E> => {
  if (error === undefined) return Effect.succeed(sent === undefined ? response : hidden.response(response, held))
  return Effect.fail(sent === undefined ? error : hidden.error(error, held))
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

/**
 * Whether a 401 says that another token would not be let in either: the client lacks a scope (RFC 6750 §3.1), or, in the
 * words of a gateway, no product that the client may use matches the request.
 */
const noTokenHelps = ({ headers }: HttpClientResponse.HttpClientResponse): boolean =>
  /insufficient_scope|NoApiProductMatch|no api ?product match/i.test(headers["www-authenticate"] ?? "")

/** A stream is gone once it was sent, and a raw body may wrap one. */
const isReplayable = ({ _tag }: HttpBody.HttpBody): boolean =>
  _tag === "Empty" || _tag === "Uint8Array" || _tag === "FormData"

/** A client that turns statuses into errors, such as `filterStatusOk`, puts the response into the error. */
const isStatusError = (error: unknown): error is HttpClientError.ResponseError =>
  HttpClientError.isHttpClientError(error) && error.reason === "StatusCode"

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
