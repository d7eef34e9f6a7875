/** Sends requests with the global `fetch` or another one, through the authorized client. */
import { AsyncLocalStorage } from "node:async_hooks"
import * as FetchHttpClient from "@effect/platform/FetchHttpClient"
import * as Headers from "@effect/platform/Headers"
import * as HttpBody from "@effect/platform/HttpBody"
import * as HttpClient from "@effect/platform/HttpClient"
import * as HttpClientError from "@effect/platform/HttpClientError"
import * as HttpClientRequest from "@effect/platform/HttpClientRequest"
import * as HttpClientResponse from "@effect/platform/HttpClientResponse"
import type { HttpMethod } from "@effect/platform/HttpMethod"
import * as NodeHttpClient from "@effect/platform-node/NodeHttpClient"
import type { ConfigurationError } from "@store-api/core/AccessTokenError"
import { AuthorizedHttpClient } from "@store-api/core/AuthorizedHttpClient"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import { constVoid, identity } from "effect/Function"
import * as Layer from "effect/Layer"
import * as Option from "effect/Option"
import * as Predicate from "effect/Predicate"
import type * as Scope from "effect/Scope"
import * as Stream from "effect/Stream"
import * as NodeHttp from "../NodeHttp.js"
import * as bun from "./bun.js"
import * as dispatchers from "./dispatcher.js"
import { fetchThrough, type Send } from "./fetchThrough.js"
import * as proxy from "./proxy.js"

export type Fetch = typeof globalThis.fetch

/** One call of `fetch`. */
export interface Call {
  readonly input: Parameters<Fetch>[0]
  readonly init: RequestInit | undefined
  /** As a string, because the client of Effect would encode the query of a `URL` again. */
  readonly url: string
  /** What `fetch` makes of its arguments. Its signal follows the caller's as long as `request` and `input` exist. */
  readonly request: Request
  /** Runs a function in the caller's async context. Fibers that wait may continue in that of another one. */
  readonly inContext: <A>(run: () => A) => A
  /** The response that arrived last. */
  response?: Response
}

/** Throws the `TypeError` of `fetch` if the arguments are unusable. */
export const makeCall = (input: Call["input"], init: Call["init"]): Call => {
  const isUrl = Predicate.isString(input) || input instanceof URL
  // The client resolves relative URLs, which `Request` does not take.
  const request = new Request(isUrl ? "http://localhost" : input, init)
  const url = isUrl ? String(input) : request.url
  return { input, init, url, request, inContext: AsyncLocalStorage.snapshot() }
}

/** The call to which a request belongs. */
class CurrentCall extends Context.Reference<CurrentCall>()(
  "@store-api/platform-node/internal/CurrentCall",
  { defaultValue: (): Call | undefined => undefined }
) {}

/**
 * Provides the client of `NodeHttp.layer`, except that the global `fetch` sends the requests of a call, over its own
 * connections: calls, which may occupy all of theirs for long, cannot keep a token request waiting.
 */
export const layer = (
  options: NodeHttp.Options | undefined
): Layer.Layer<HttpClient.HttpClient, ConfigurationError> =>
  Layer.scoped(
    HttpClient.HttpClient,
    Effect.gen(function*() {
      const client = yield* HttpClient.HttpClient
      return withCalls(client, withKnownSignals(yield* makeFetch(options ?? {})))
    })
  ).pipe(Layer.provide(NodeHttp.layer(options)))

const makeFetch = (
  options: NodeHttp.Options
): Effect.Effect<Send, ConfigurationError, Scope.Scope> =>
  Effect.gen(function*() {
    if (bun.isRunning()) return (url, init) => globalThis.fetch(url, init)
    // Deno's own `fetch` takes no dispatcher, so it would ignore all options.
    if (options.dispatcher !== undefined || "Deno" in globalThis) {
      const services = yield* Layer.build(NodeHttp.layerDispatcher(options))
      return fetchThrough(Context.get(services, NodeHttpClient.Dispatcher))
    }
    const dispatcher = dispatchers.forFetch(yield* dispatchers.make(options))
    // The DOM types lack `dispatcher`.
    return (url, init) => globalThis.fetch(url, { ...init, dispatcher } as RequestInit)
  })

/** The global `fetch` when this module was loaded, to recognise it. */
const initial = globalThis.fetch

/** Provides a client that sends all requests with `fetch`. */
export const layerFetch = (fetch: Fetch): Layer.Layer<HttpClient.HttpClient> =>
  Layer.unwrapEffect(Effect.sync(() => {
    // A mock may replace the global `fetch` later, or has already replaced it.
    const isGlobal = [initial, globalThis.fetch].includes(fetch)
    const current = withKnownSignals(
      isGlobal ? (url, init) => globalThis.fetch(url, init) : fetch
    )
    return Layer.effect(
      HttpClient.HttpClient,
      Effect.map(HttpClient.HttpClient, (client) => withCalls(client, current))
    ).pipe(
      Layer.provide(FetchHttpClient.layer),
      Layer.provide(
        Layer.succeed(
          FetchHttpClient.Fetch,
          // The client passes a `URL`. A mock gets a string, as for the requests of a call.
          (url, init = {}) => current((url as URL).href, init)
        )
      )
    )
  }))

const makeRequest = Option.liftThrowable((init: RequestInit) =>
  new Request("http://localhost", init)
)

/** Node 24 refuses the signals of jsdom and happy-dom. There, a request goes on after its call has ended. */
const withKnownSignals = (fetch: Send): Send =>
  Option.isSome(makeRequest({ signal: new AbortController().signal }))
    ? fetch
    : (url, init) => fetch(url, { ...init, signal: null })

/** Sends the requests of a call with `fetch`, and all others with the client. */
const withCalls = (client: HttpClient.HttpClient, fetch: Send) =>
  HttpClient.transform(
    client,
    (response, request) =>
      Effect.flatMap(
        CurrentCall,
        (call) => call === undefined ? response : send(call, request, fetch)
      )
  )

/** Sends the request with a token. Fails with the error of `fetch` itself, or with an error of the library. */
export const execute = (call: Call): Effect.Effect<Response, unknown, AuthorizedHttpClient> =>
  Effect.gen(function*() {
    const client = yield* AuthorizedHttpClient
    // The client sends any method.
    const request = HttpClientRequest.make(call.request.method as HttpMethod)(call.url).pipe(
      HttpClientRequest.setBody(yield* bodyOf(call)),
      HttpClientRequest.setHeaders(call.request.headers)
    )
    yield* Effect.provideService(client.execute(request), CurrentCall, call)
    return call.response ??
      (yield* Effect.fail(new TypeError("transformClient replaced the response")))
  }).pipe(
    Effect.mapError((error) =>
      HttpClientError.isHttpClientError(error) ? error.cause ?? error : error
    )
  )

/** Reads the body into memory, so that the request can be repeated. A stream is sent as it comes, and only once. */
const bodyOf = (call: Call): Effect.Effect<HttpBody.HttpBody, unknown> => {
  const { body } = call.request
  if (body === null) return Effect.succeed(HttpBody.empty)
  if (Predicate.hasProperty(call.init?.body, Symbol.asyncIterator)) {
    return Effect.succeed(HttpBody.raw(body))
  }
  return Effect.tryPromise({
    try: (interrupted) => {
      // The body of a `Request` may come from a stream, which the signal cancels.
      const bytes = body.pipeThrough(new TransformStream(), {
        signal: endOf(call, interrupted)
      })
      return new Response(bytes).arrayBuffer()
    },
    catch: identity
  }).pipe(Effect.map((bytes) => HttpBody.uint8Array(new Uint8Array(bytes))))
}

/** Cancels a body that was not sent. */
export const discard = ({ request: { body } }: Call, reason: unknown): void => {
  // The caller does not need to know whether the stream could be cancelled.
  if (body?.locked === false) body.cancel(reason).catch(constVoid)
}

const send = (
  call: Call,
  request: HttpClientRequest.HttpClientRequest,
  fetch: Send
) =>
  Effect.tryPromise({
    try: (interrupted) => {
      const {
        cache,
        credentials,
        integrity,
        keepalive,
        mode,
        redirect,
        referrer,
        referrerPolicy
      } = call.request
      const url = Option.match(HttpClientRequest.toUrl(request), {
        onNone: () => request.url,
        onSome: String
      })
      const init = {
        ...call.init,
        cache,
        credentials,
        integrity,
        keepalive,
        mode,
        referrer,
        referrerPolicy,
        method: request.method,
        headers: headersOf(request),
        body: bodyInit(request.body),
        duplex: "half",
        // `fetch` would send the token to the target.
        redirect: redirect === "error" ? "error" : "manual",
        signal: endOf(call, interrupted)
      } as RequestInit // the DOM types lack `duplex`
      return call.inContext(() => fetch(url, init))
    },
    catch: (error) => {
      // `fetch` has the status of the proxy in its cause only.
      const sentence = proxy.describeRefusal(error) ??
        // It has no message if a connection failed at each of several addresses.
        (error instanceof AggregateError ? "fetch failed" : undefined)
      const cause = sentence === undefined ? error : new TypeError(sentence, { cause: error })
      return new HttpClientError.RequestError({ request, reason: "Transport", cause })
    }
  }).pipe(Effect.flatMap((response) => {
    const { body, status } = response
    // A dispatcher does not know this option of `fetch`.
    if (call.request.redirect === "error" && redirects.includes(status)) {
      body?.cancel().catch(constVoid)
      const cause = new TypeError("fetch failed", { cause: new Error("unexpected redirect") })
      return new HttpClientError.RequestError({ request, reason: "Transport", cause })
    }
    call.response = response
    if (body !== null) calls.set(body, call)
    return Effect.succeed(HttpClientResponse.fromWeb(request, response))
  }))

const redirects: ReadonlyArray<number> = [301, 302, 303, 307, 308]

/** `fetch` counts the bytes itself, and undici refuses a second count. */
const headersOf = ({ body, headers }: HttpClientRequest.HttpClientRequest) =>
  body._tag === "Uint8Array" ? Headers.remove(headers, "content-length") : headers

/** Aborts when the caller does, or when the effect is interrupted. */
const endOf = ({ request }: Call, interrupted: AbortSignal) =>
  AbortSignal.any([request.signal, interrupted])

/** Keeps a call in memory while its body is, so that the caller's signal also ends the body. */
const calls = new WeakMap<ReadableStream, Call>()

const bodyInit = (body: HttpBody.HttpBody): BodyInit | null => {
  switch (body._tag) {
    case "Empty":
      return null
    case "FormData":
      return body.formData
    case "Stream":
      return Stream.toReadableStream(body.stream)
    default:
      return body.body as BodyInit // ours, or that of a `transformClient` for `fetch`
  }
}
