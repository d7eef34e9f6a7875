/** Clients that do not use the platform of the server: `node:http` with exact headers, and plain sockets. */
import * as Http from "node:http"
import * as Net from "node:net"
import { Emulator, type Fault, type IssuedToken } from "@store-api/emulator"
import * as Network from "@store-api/testing/network"
import { DateTime, Effect, Option, Redacted } from "effect"

export interface HttpResponse {
  readonly status: number
  readonly headers: Http.IncomingHttpHeaders
  readonly text: string
}

export interface HttpRequest {
  readonly method?: string
  readonly path?: string
  readonly headers?: Http.OutgoingHttpHeaders | ReadonlyArray<string>
  readonly body?: string | Uint8Array
  readonly agent?: Http.Agent
}

/** Node sends the body of a GET without a length, which makes the request malformed. This adds the length. */
const withLength = ({ body, headers = {} }: HttpRequest) =>
  body === undefined || "length" in headers || "Transfer-Encoding" in headers
    ? headers
    : { ...headers, "Content-Length": Buffer.byteLength(body) }

/** Sends exactly these headers, and Host, Connection and the length of the body. */
export const send = (
  url: string,
  options: HttpRequest = {}
): Effect.Effect<HttpResponse, Error> =>
  Effect.async((resume, signal) => {
    const base = new URL(url)
    const request = Http.request({
      host: base.hostname.replace(/[[\]]/g, ""),
      port: base.port,
      path: base.pathname.replace(/\/$/, "") + (options.path ?? ""),
      method: options.method ?? "GET",
      headers: withLength(options) as Http.OutgoingHttpHeaders, // the types lack the flat list, which Node accepts
      agent: options.agent ?? false,
      signal
    }, (response) => {
      const chunks: Array<Buffer> = []
      response.on("data", (chunk: Buffer) => chunks.push(chunk))
      response.on("error", (error) => resume(Effect.fail(error)))
      response.on("end", () =>
        resume(Effect.succeed({
          status: response.statusCode ?? 0,
          headers: response.headers,
          text: Buffer.concat(chunks).toString("utf8")
        })))
    })
    request.on("error", (error) => resume(Effect.fail(error)))
    request.end(options.body)
  })

export const json = (response: HttpResponse) =>
  JSON.parse(response.text) as Record<string, unknown>

export const tokenPath = "/v1/oauth/accesstoken"
export const formType = "application/x-www-form-urlencoded"
export const demoSecret = Redacted.value(Emulator.demoClient.clientSecret)
export const bodyOf = (id: string, secret: string) =>
  `grant_type=client_credentials&client_id=${id}&client_secret=${secret}`
export const demoBody = bodyOf("demo-client", demoSecret)

/** Sends a token request as specified, with changes if there are any. */
export const askToken = (url: string, changes: HttpRequest = {}) =>
  send(url, {
    method: "POST",
    path: tokenPath,
    headers: { "Content-Type": formType },
    body: demoBody,
    ...changes
  })

export const getToken = (url: string, changes: HttpRequest = {}) =>
  Effect.map(askToken(url, changes), (response) => String(json(response)["access_token"]))

export const callApi = (url: string, token: string, changes: HttpRequest = {}) =>
  send(url, { path: "/orders", headers: { Authorization: `Bearer ${token}` }, ...changes })

/** An emulator that plays these faults. */
export const failing = (...script: ReadonlyArray<Fault.Fault>) =>
  Effect.tap(Emulator.make(), ({ fail }) => fail(script))

/** An emulator and one of its tokens. */
export const withToken = (options?: Emulator.Options) =>
  Effect.flatMap(
    Emulator.make(options),
    (emulator) => Effect.map(getToken(emulator.url), (token) => ({ ...emulator, token }))
  )

/** Makes the tokens of an earlier emulator, for the option `tokens`. */
export const makeEarlierTokens = (count: number): ReadonlyArray<IssuedToken.IssuedToken> => {
  const now = DateTime.unsafeNow()
  return Array.from({ length: count }, (_, index) => ({
    id: index + 1,
    value: Redacted.make(`invented-token-${index}`),
    clientId: "demo-client",
    scope: "",
    issuedAt: now,
    expiresAt: DateTime.add(now, { hours: 1 }),
    revokedAt: Option.none()
  }))
}

/** Steers an emulator, as the page and the commands do. */
export const steer = (
  url: string,
  path: string,
  body: object,
  headers: Http.OutgoingHttpHeaders = {}
) =>
  send(url, {
    method: "POST",
    path: `/_emulator/${path}`,
    headers: { "Content-Type": "application/json", ...headers },
    body: JSON.stringify(body)
  })

/** A plain connection that stays open until the scope closes. */
export const connect = (url: string) =>
  Effect.acquireRelease(
    Effect.async<Net.Socket>((resume) => {
      const socket = Net.connect(Number(new URL(url).port), "127.0.0.1", () =>
        resume(Effect.succeed(socket)))
      socket.on("error", (error) =>
        resume(Effect.die(error)))
    }),
    (socket) =>
      Effect.sync(() => socket.destroy())
  )

/**
 * Sends a request on a plain socket, by default a token request without a body. Returns the received text once it has
 * this length or the connection closes.
 */
export const receive = (
  url: string,
  length: number,
  request = `POST ${tokenPath} HTTP/1.1\r\nHost: localhost\r\nContent-Length: 0\r\n\r\n`
) =>
  Effect.flatMap(connect(url), (socket) =>
    Effect.async<string>((resume) => {
      let text = ""
      const finish = () => resume(Effect.succeed(text))
      socket.on("close", finish).on("data", (chunk: Buffer) => {
        text += chunk.toString("latin1")
        if (text.length >= length) finish()
      })
      socket.write(request)
    }))

/** Waits in real time until the condition holds. */
export const until = (condition: Effect.Effect<boolean>) =>
  Network.until("as the test says", condition)
