/**
 * The provider and the authorized client as functions that return promises, for code without Effect.
 *
 * @since 1.0.0
 */
import * as HttpBody from "@effect/platform/HttpBody"
import * as HttpClientRequest from "@effect/platform/HttpClientRequest"
import type * as HttpClientResponse from "@effect/platform/HttpClientResponse"
import { isHttpMethod } from "@effect/platform/HttpMethod"
import type { AccessToken } from "@store-api/core/AccessToken"
import { TokenRequestError } from "@store-api/core/AccessTokenError"
import { AccessTokenProvider } from "@store-api/core/AccessTokenProvider"
import { AuthorizedHttpClient } from "@store-api/core/AuthorizedHttpClient"
import * as Cause from "effect/Cause"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as FiberId from "effect/FiberId"
import * as ManagedRuntime from "effect/ManagedRuntime"
import * as MutableRef from "effect/MutableRef"
import * as Stream from "effect/Stream"
import * as NodeStoreAuth from "./NodeStoreAuth.js"

/**
 * Four functions that share one token. Their promises reject with typed errors: `AccessTokenError`,
 * `ConfigurationError` or Effect's `ConfigError`, and `fetch` also with `UntrustedOriginError` or `HttpClientError`.
 *
 * @see make
 *
 * @since 1.0.0
 * @category models
 */
export interface PromiseStoreAuth {
  /** `AccessTokenProvider.get`: a valid token, from the cache or freshly acquired. */
  readonly getToken: () => Promise<AccessToken>
  /** `AccessTokenProvider.invalidate`: reports a token that an API rejected, so that `getToken` acquires another. */
  readonly reject: (token: AccessToken) => Promise<void>
  /**
   * Sends a request with the token, like `fetch`; relative URLs are joined to `apiUrl`. After a 401 the request is
   * repeated once with another token. The request's body is read into memory first. Redirects are not followed. Read or
   * cancel the body of the response, which holds a connection.
   */
  readonly fetch: (url: string | URL, init?: RequestInit) => Promise<Response>
  /** Ends requests in flight and closes the connections. Later calls reject with `TokenRequestError`, `Closed`. */
  readonly dispose: () => Promise<void>
}

/**
 * Creates the four functions. Sends no request before the first call. The options are those of `NodeStoreAuth.layer`;
 * by default they come from the configuration, as with `NodeStoreAuth.layerConfig`. Call `make` once per store, and
 * `dispose` at the end.
 *
 * @example
 * ```ts
 * import { AccessTokenError } from "@store-api/core"
 * import { PromiseStoreAuth } from "@store-api/platform-node"
 *
 * const store = PromiseStoreAuth.make()
 *
 * const orders = async () => {
 *   try {
 *     const response = await store.fetch("/orders")
 *     return await response.json()
 *   } catch (error) {
 *     if (AccessTokenError.isTransient(error)) return []
 *     throw error
 *   }
 * }
 * ```
 *
 * @since 1.0.0
 * @category constructors
 */
export const make = (options?: NodeStoreAuth.Options): PromiseStoreAuth => {
  const runtime = ManagedRuntime.make(
    options === undefined ? NodeStoreAuth.layerConfig() : NodeStoreAuth.layer(options)
  )

  const isDisposed = MutableRef.make(false)
  const disposal: Deferred.Deferred<never, TokenRequestError> = Deferred.unsafeMake(FiberId.none)

  /** In Effect 3, `runPromise` would wrap the error in a `FiberFailure`, whose `_tag` is gone. */
  const run = <A, E>(effect: Effect.Effect<A, E, AccessTokenProvider | AuthorizedHttpClient>): Promise<A> =>
    // eslint-disable-next-line no-restricted-syntax -- a promise is what callers want
    new Promise((resolve, reject) => {
      runtime.runCallback(effect, {
        onExit: Exit.match({
          // eslint-disable-next-line @typescript-eslint/prefer-promise-reject-errors -- the error, whatever it is
          onFailure: (cause) => reject(MutableRef.get(isDisposed) ? closed : Cause.squash(cause)),
          onSuccess: resolve
        })
      })
    })

  return {
    getToken: () => run(Effect.flatMap(AccessTokenProvider, (provider) => provider.get)),
    reject: (token) => run(Effect.flatMap(AccessTokenProvider, (provider) => provider.invalidate(token))),
    fetch: (url, init = {}) =>
      run(Effect.gen(function*() {
        const client = yield* AuthorizedHttpClient
        // The body may be a stream that stops.
        const request = Effect.raceFirst(fromWeb(url, init), Deferred.await(disposal))
        const sent = Effect.flatMap(request, (request) => client.execute(request))
        const { signal } = init
        if (!signal) return toWeb(yield* sent)
        if (signal.aborted) return yield* Effect.fail(signal.reason as unknown)
        return toWeb(yield* Effect.raceFirst(sent, aborted(signal)), signal)
      })),
    dispose: () => {
      MutableRef.set(isDisposed, true)
      Deferred.unsafeDone(disposal, Effect.fail(closed))
      return runtime.dispose()
    }
  }
}

const closed = new TokenRequestError({ reason: "Closed", attempts: 0 })

/** Fails with the reason of the signal, as `fetch` does. */
const aborted = (signal: AbortSignal): Effect.Effect<never, unknown> =>
  Effect.async((resume) => {
    const abort = () => resume(Effect.fail(signal.reason as unknown))
    signal.addEventListener("abort", abort, { once: true })
    return Effect.sync(() => signal.removeEventListener("abort", abort))
  })

const fromWeb = (url: string | URL, { body, headers, method = "GET" }: RequestInit) =>
  Effect.gen(function*() {
    const name = method.toUpperCase()
    if (!isHttpMethod(name)) {
      return yield* Effect.fail(new TypeError("method must be GET, HEAD, POST, PUT, PATCH, DELETE or OPTIONS"))
    }
    const request = HttpClientRequest.make(name)(url, { headers: [...new Headers(headers)] })
    if (body === undefined || body === null) return request
    // `Response` reads every kind of body, and names its content type.
    const read = new Response(body)
    const bytes = new Uint8Array(yield* Effect.promise(() => read.arrayBuffer()))
    const type = request.headers["content-type"] ?? read.headers.get("content-type") ?? undefined
    return HttpClientRequest.setBody(request, HttpBody.uint8Array(bytes, type))
  })

const toWeb = (
  { headers, status, stream }: HttpClientResponse.HttpClientResponse,
  signal?: AbortSignal
): Response => {
  const body = signal === undefined ? stream : Stream.interruptWhen(stream, aborted(signal))
  return new Response(withoutBody.has(status) ? null : Stream.toReadableStream(body), { status, headers })
}

/** `Response` refuses a body for these. */
const withoutBody: ReadonlySet<number> = new Set([204, 205, 304])
