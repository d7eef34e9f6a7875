/** HTTP clients without a network. They respond by script, and record the requests. */
import {
  Headers,
  HttpClient,
  HttpClientError,
  type HttpClientRequest,
  HttpClientResponse
} from "@effect/platform"
import {
  AccessToken,
  type AccessTokenError,
  TokenEndpoint,
  TokenSource
} from "@store-api/core"
import { Clock, DateTime, Duration, Effect, Layer, Option, Redacted, Ref } from "effect"
import { clientId, clientSecret, credentialsOf, tokenBody } from "./wire.js"

export type Reply = (request: HttpClientRequest.HttpClientRequest) => Effect.Effect<
  HttpClientResponse.HttpClientResponse,
  HttpClientError.HttpClientError
>

export interface FakeClient {
  readonly layer: Layer.Layer<HttpClient.HttpClient>
  /** The time of each request, in milliseconds. */
  readonly times: ReadonlyArray<number>
  readonly bodies: ReadonlyArray<string>
  readonly requests: ReadonlyArray<HttpClientRequest.HttpClientRequest>
}

/** Sends the replies in order, and the last one to all further requests. */
export const make = (...replies: readonly [Reply, ...ReadonlyArray<Reply>]): FakeClient => {
  const times: Array<number> = []
  const bodies: Array<string> = []
  const requests: Array<HttpClientRequest.HttpClientRequest> = []
  const client = HttpClient.make((request) =>
    Effect.flatMap(Clock.currentTimeMillis, (now) => {
      const reply = replies[Math.min(times.length, replies.length - 1)] ?? replies[0]
      times.push(now)
      requests.push(request)
      bodies.push(
        request.body._tag === "Uint8Array"
          ? new TextDecoder().decode(request.body.body)
          : request.body._tag
      )
      return reply(request)
    })
  )
  return { layer: Layer.succeed(HttpClient.HttpClient, client), times, bodies, requests }
}

export const reply =
  (status: number, body: BodyInit | null = "", headers: HeadersInit = {}): Reply =>
  (request) =>
    Effect.sync(() =>
      HttpClientResponse.fromWeb(request, new Response(body, { status, headers }))
    )

/** A response with exactly this header. The `Headers` of `fetch` would normalise or refuse it. */
export const replyWithRawHeader =
  (status: number, name: string, value: string): Reply => (request) =>
    Effect.sync(() =>
      Object.defineProperty(
        HttpClientResponse.fromWeb(request, new Response("", { status })),
        "headers",
        {
          value: Headers.fromInput({ [name]: value })
        }
      )
    )

export const token: Reply = reply(200, tokenBody())

export const transport = (cause?: unknown): Reply => (request) =>
  Effect.fail(new HttpClientError.RequestError({ request, reason: "Transport", cause }))

export const never: Reply = () => Effect.never

/** The state of one response body of `drip`. */
export interface Drip {
  sent: number
  cancelled: boolean
}

/** Sends the headers immediately, and then one space per second without end. */
export const drip = (
  status = 200
): { readonly reply: Reply; readonly drips: ReadonlyArray<Drip> } => {
  const drips: Array<Drip> = []
  const reply: Reply = (request) =>
    Effect.gen(function*() {
      const drip: Drip = { sent: 0, cancelled: false }
      drips.push(drip)
      const clock = yield* Clock.clockWith(Effect.succeed)
      const body = new ReadableStream<Uint8Array>({
        pull: async (controller) => {
          await Effect.runPromise(clock.sleep(Duration.seconds(1)))
          if (drip.cancelled) return
          drip.sent++
          controller.enqueue(new Uint8Array([0x20]))
        },
        cancel: () => {
          drip.cancelled = true
        }
      }, { highWaterMark: 0 })
      return HttpClientResponse.fromWeb(request, new Response(body, { status }))
    })
  return { reply, drips }
}

/** Acquires one token with a fake client. */
export const acquire = (
  client: FakeClient,
  options: Partial<TokenEndpoint.Options> = {},
  replacing: Option.Option<AccessToken.AccessToken> = Option.none()
): Effect.Effect<
  AccessToken.AccessToken,
  AccessTokenError.AccessTokenError | AccessTokenError.ConfigurationError
> =>
  Effect.flatMap(
    source(client, options),
    ({ acquire }) => acquire({ ...TokenSource.missing, replacing })
  )

export const source = (
  client: FakeClient,
  options: Partial<TokenEndpoint.Options> = {}
): Effect.Effect<TokenSource.Service, AccessTokenError.ConfigurationError> =>
  TokenEndpoint.make({
    authUrl: "https://auth.shop.example",
    credentials: Effect.succeed(credentialsOf(clientId, clientSecret)),
    ...options
  }).pipe(Effect.provide(client.layer))

/** A token for `replacing`, as if an API had rejected it. */
export const heldToken = (value: string): AccessToken.AccessToken =>
  new AccessToken.AccessToken({
    value: Redacted.make(value),
    acquiredAt: DateTime.unsafeMake(0),
    expiresAt: DateTime.unsafeMake(3_600_000)
  })

export interface StubResponse {
  readonly status: number
  readonly headers?: Record<string, string>
}

/** An `HttpClient` without a network. Records the requests, and responds with the result of `respond`. */
export const stubApi = (
  respond: (request: HttpClientRequest.HttpClientRequest, number: number) => StubResponse =
    () => ({ status: 200 })
) =>
  Effect.map(Ref.make<ReadonlyArray<HttpClientRequest.HttpClientRequest>>([]), (sent) => ({
    sent: Ref.get(sent),
    client: HttpClient.make((request) =>
      Effect.map(Ref.updateAndGet(sent, (all) => [...all, request]), (all) => {
        const { headers, status } = respond(request, all.length)
        return HttpClientResponse.fromWeb(
          request,
          new Response("{}", { status, ...(headers ? { headers } : {}) })
        )
      })
    )
  }))

/** Responds with 401 to the tokens in the list, and with 200 to all others. */
export const rejecting =
  (...values: ReadonlyArray<string>) => (request: HttpClientRequest.HttpClientRequest) => ({
    status: values.some((value) => request.headers["authorization"] === `Bearer ${value}`)
      ? 401
      : 200
  })
