/** Clients that owe nothing to the platform under the server: node:http with exact headers, and bare sockets. */
import * as Http from "node:http"
import * as Net from "node:net"
import { Emulator } from "@store-api/emulator"
import { Effect, Redacted, Schedule } from "effect"

export interface Answer {
  readonly status: number
  readonly headers: Http.IncomingHttpHeaders
  readonly text: string
}

export interface Sending {
  readonly method?: string
  readonly path?: string
  readonly headers?: Http.OutgoingHttpHeaders | ReadonlyArray<string>
  readonly body?: string | Uint8Array
  readonly agent?: Http.Agent
}

/** Node sends the body of a GET without saying so; with its length the request is well formed. */
const withLength = ({ body, headers = {} }: Sending) =>
  body === undefined || "length" in headers || "Transfer-Encoding" in headers
    ? headers
    : { ...headers, "Content-Length": Buffer.byteLength(body) }

/** Sends exactly these headers, besides Host, Connection and the length of the body. */
export const send = (url: string, options: Sending = {}): Effect.Effect<Answer, Error> =>
  Effect.async((resume, signal) => {
    const base = new URL(url)
    const request = Http.request({
      host: base.hostname.replace(/[[\]]/g, ""),
      port: base.port,
      path: base.pathname.replace(/\/$/, "") + (options.path ?? ""),
      method: options.method ?? "GET",
      headers: withLength(options) as Http.OutgoingHttpHeaders, // the typings do not know that a flat list is accepted
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

export const json = (answer: Answer) => JSON.parse(answer.text) as Record<string, unknown>

export const tokenPath = "/v1/oauth/accesstoken"
export const formType = "application/x-www-form-urlencoded"
export const demoSecret = Redacted.value(Emulator.demoClient.clientSecret)
export const demoBody = `grant_type=client_credentials&client_id=demo-client&client_secret=${demoSecret}`

/** A token request as the specification has it, unless told otherwise. */
export const askToken = (url: string, changes: Sending = {}) =>
  send(url, {
    method: "POST",
    path: tokenPath,
    headers: { "Content-Type": formType },
    body: demoBody,
    ...changes
  })

export const getToken = (url: string, changes: Sending = {}) =>
  Effect.map(askToken(url, changes), (answer) => String(json(answer)["access_token"]))

export const callApi = (url: string, token: string, changes: Sending = {}) =>
  send(url, { path: "/orders", headers: { Authorization: `Bearer ${token}` }, ...changes })

/** A bare connection that stays open until the scope closes. */
export const connect = (url: string) =>
  Effect.acquireRelease(
    Effect.async<Net.Socket>((resume) => {
      const socket = Net.connect(Number(new URL(url).port), "127.0.0.1", () => resume(Effect.succeed(socket)))
      socket.on("error", () => undefined)
    }),
    (socket) => Effect.sync(() => socket.destroy())
  )

/** Waits, for two seconds at most, until something holds. */
export const until = (condition: Effect.Effect<boolean>) =>
  condition.pipe(
    Effect.filterOrFail((holds) => holds, () => new Error("it did not come true")),
    Effect.retry(Schedule.intersect(Schedule.spaced("10 millis"), Schedule.recurs(200))),
    Effect.asVoid
  )
