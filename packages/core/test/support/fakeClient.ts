/** An HTTP client that talks to nobody: it answers by script and notes when it was asked. */
import { Headers, HttpClient, HttpClientError, type HttpClientRequest, HttpClientResponse } from "@effect/platform"
import { AccessToken, type AccessTokenError, TokenEndpoint, type TokenSource } from "@store-api/core"
import { Clock, DateTime, Duration, Effect, Layer, Option, Redacted } from "effect"
import { clientId, clientSecret, credentialsOf, tokenBody } from "./wire.js"

export type Reply = (request: HttpClientRequest.HttpClientRequest) => Effect.Effect<
  HttpClientResponse.HttpClientResponse,
  HttpClientError.HttpClientError
>

export interface FakeClient {
  readonly layer: Layer.Layer<HttpClient.HttpClient>
  /** The clock's milliseconds at each request. */
  readonly times: ReadonlyArray<number>
  readonly bodies: ReadonlyArray<string>
  readonly requests: ReadonlyArray<HttpClientRequest.HttpClientRequest>
}

/** The replies in turn, the last one for all further requests. */
export const make = (...replies: readonly [Reply, ...ReadonlyArray<Reply>]): FakeClient => {
  const times: Array<number> = []
  const bodies: Array<string> = []
  const requests: Array<HttpClientRequest.HttpClientRequest> = []
  const client = HttpClient.make((request) =>
    Effect.flatMap(Clock.currentTimeMillis, (now) => {
      const reply = replies[Math.min(times.length, replies.length - 1)] ?? replies[0]
      times.push(now)
      requests.push(request)
      bodies.push(request.body._tag === "Uint8Array" ? new TextDecoder().decode(request.body.body) : request.body._tag)
      return reply(request)
    })
  )
  return { layer: Layer.succeed(HttpClient.HttpClient, client), times, bodies, requests }
}

export const reply = (status: number, body: BodyInit | null = "", headers: HeadersInit = {}): Reply => (request) =>
  Effect.sync(() => HttpClientResponse.fromWeb(request, new Response(body, { status, headers })))

/** A status with these headers as an HTTP client may hand them over, whatever `fetch` would make of them. */
export const replyWithRawHeader = (status: number, name: string, value: string): Reply => (request) =>
  Effect.sync(() =>
    Object.defineProperty(HttpClientResponse.fromWeb(request, new Response("", { status })), "headers", {
      value: Headers.fromInput({ [name]: value })
    })
  )

export const token: Reply = reply(200, tokenBody())

export const transport = (cause?: unknown): Reply => (request) =>
  Effect.fail(new HttpClientError.RequestError({ request, reason: "Transport", cause }))

export const never: Reply = () => Effect.never

/** What became of a body that drips. */
export interface Drip {
  sent: number
  cancelled: boolean
}

/** Answers the header at once, and then a blank each second for ever. */
export const drip = (status = 200): { readonly reply: Reply; readonly drips: ReadonlyArray<Drip> } => {
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

/** One acquisition over a fake client. */
export const acquire = (
  client: FakeClient,
  options: Partial<TokenEndpoint.Options> = {},
  replacing: Option.Option<AccessToken.AccessToken> = Option.none()
): Effect.Effect<AccessToken.AccessToken, AccessTokenError.AccessTokenError | AccessTokenError.ConfigurationError> =>
  Effect.flatMap(source(client, options), ({ acquire }) => acquire(replacing))

export const source = (
  client: FakeClient,
  options: Partial<TokenEndpoint.Options> = {}
): Effect.Effect<TokenSource.Service, AccessTokenError.ConfigurationError> =>
  TokenEndpoint.make({
    authUrl: "https://auth.shop.example",
    credentials: Effect.succeed(credentialsOf(clientId, clientSecret)),
    ...options
  }).pipe(Effect.provide(client.layer))

/** A token that an API has rejected. */
export const heldToken = (value: string): AccessToken.AccessToken =>
  new AccessToken.AccessToken({
    value: Redacted.make(value),
    acquiredAt: DateTime.unsafeMake(0),
    expiresAt: DateTime.unsafeMake(3_600_000)
  })
