/** Records requests so that printing a record discloses no secret. */
import type { Socket } from "node:net"
import { unescape } from "node:querystring"
import { finished } from "node:stream/promises"
import * as DateTime from "effect/DateTime"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Redacted from "effect/Redacted"
import type { Fault } from "../Fault.js"
import type { IssuedToken } from "../IssuedToken.js"
import type { RecordedRequest } from "../RecordedRequest.js"
import { type Entry, formatJson, formatLine } from "./logLine.js"
import { type Exchange, readBody, type Request, type Response } from "./request.js"
import type { Settings } from "./settings.js"
import { methodsIn } from "./tokenEndpoint.js"
import type { Tokens } from "./tokens.js"

export type RequestLog = ReturnType<typeof make>

export interface ObserverService {
  /** The number of requests to keep in `requests`. If it is not `Infinity`, they lose their bodies when they end. */
  readonly keep: number
  /**
   * Runs when a request arrives, before its response is sent or when its client has gone, when a connection met a
   * fault, and when that connection has ended. Receives a line of the log as text and as JSON, which has no secret, no
   * token and no query. Default: nothing.
   */
  readonly onLine?: ((text: string, json: string) => Effect.Effect<void>) | undefined
  /**
   * Runs when a token was issued or revoked, before the response is sent. Receives an effect that reads the tokens.
   * Default: nothing.
   */
  readonly onTokens?:
    | ((tokens: Effect.Effect<ReadonlyArray<IssuedToken>>) => Effect.Effect<void>)
    | undefined
}

const redactedText = "<redacted>"
const sensitiveParameter =
  /(^|&)(client_|access_|refresh_|id_|api[_-]?)?(secret|token|assertion|password|key)=/i

const decodeTwice = (
  text: string
) => [text, unescape(text), unescape(text.replaceAll("+", " "))]

/** How a log names the fault that a request or a connection met. */
export const nameOfFault = ({ _tag, scenario = _tag }: Fault) => `fault ${scenario}`

export const make = (settings: Settings, observer: ObserverService, tokens: Tokens) => {
  const { clients, header } = settings
  const records: Array<{ current: RecordedRequest }> = []
  let lastId = 0
  const sensitive = [
    "authorization",
    "proxy-authorization",
    "cookie",
    "x-api-key",
    header.name.toLowerCase()
  ]

  const holdsSecret = (text: string) =>
    decodeTwice(text).some((candidate) =>
      tokens.occurIn(candidate) ||
      clients.some(({ clientSecret }) => candidate.includes(Redacted.value(clientSecret)))
    )

  const hideInUrl = ({ path, query = "", url }: Request) => {
    if (holdsSecret(path)) return redactedText
    const isSensitive = holdsSecret(query) ||
      decodeTwice(query).some((candidate) => sensitiveParameter.test(candidate))
    return isSensitive ? `${path}?${redactedText}` : url
  }

  const hideInHeader = ([name, values = []]: [string, Array<string> | undefined]) => {
    const value = values.join(", ")
    return [
      name,
      sensitive.includes(name) || holdsSecret(value) ? Redacted.make(value) : value
    ] as const
  }

  const print = (entry: Entry) =>
    observer.onLine?.(formatLine(entry), formatJson(entry)) ?? Effect.void

  const onArrival = (request: Request, startedAt: DateTime.Utc): RecordedRequest => ({
    id: ++lastId,
    startedAt,
    endedAt: Option.none(),
    token: tokens.get((request.header(header.name)[0] ?? "").slice(header.prefix.length)),
    kind: request.kind,
    method: request.method,
    url: hideInUrl(request),
    rawUrl: Redacted.make(request.url),
    headers: Object.fromEntries(Object.entries(request.headers).map(hideInHeader)),
    authorization: Option.map(
      Option.fromNullable(request.header(header.name)[0]),
      Redacted.make
    ),
    clientAuthentication: [],
    body: Redacted.make(""),
    bodyBytes: 0,
    sentBytes: 0,
    status: Option.none(),
    reason: Option.none()
  })

  /** Records the request, reads its body and responds. Updates the record after each step. */
  const record = (
    request: Request,
    maxBodyBytes: number,
    respond: (exchange: Exchange) => Response
  ) =>
    Effect.gen(function*() {
      const entry = { current: onArrival(request, yield* DateTime.now) }
      const update = (change: Partial<RecordedRequest>) => {
        entry.current = { ...entry.current, ...change }
      }
      const end = Effect.flatMap(DateTime.now, (now) => {
        update({
          endedAt: Option.some(now),
          ...(observer.keep === Infinity ? {} : { body: Redacted.make("") })
        })
        return print(entry.current)
      })
      records.push(entry)
      if (records.length > observer.keep) records.shift()
      const { socket } = request.incoming
      const before = socket.bytesWritten
      request.outgoing.once("close", () => update({ sentBytes: socket.bytesWritten - before }))
      yield* print(entry.current)
      return yield* Effect.gen(function*() {
        const body = yield* readBody(request, maxBodyBytes)
        const methods = request.kind === "token"
          ? methodsIn(request, new URLSearchParams(body.text), settings)
          : []
        update({
          clientAuthentication: methods,
          body: Redacted.make(body.text),
          bodyBytes: body.receivedBytes
        })
        const response = yield* respond({ request, body, settings, tokens, update })
        update({ status: Option.some(response.status) })
        return response
      }).pipe(Effect.ensuring(end))
    })

  /** Reports the fault of a connection, and the end of the connection. */
  const recordConnection = (socket: Socket, fault: Fault) =>
    Effect.gen(function*() {
      const start = {
        startedAt: yield* DateTime.now,
        status: Option.none(),
        token: Option.none()
      }
      const entry = {
        ...start,
        reason: Option.some(nameOfFault(fault)),
        endedAt: Option.none()
      }
      yield* print(entry)
      yield* Effect.ignore(Effect.tryPromise(() => finished(socket)))
      yield* print({ ...entry, endedAt: Option.some(yield* DateTime.now) })
    })

  /** Reports a response of Node itself, which has no record. */
  const refusal = (status: number, reason: string) =>
    Effect.flatMap(DateTime.now, (now) =>
      print({
        startedAt: now,
        endedAt: Option.some(now),
        status: Option.some(status),
        token: Option.none(),
        reason: Option.some(reason)
      }))

  return {
    record,
    refusal,
    connection: recordConnection,
    all: Effect.sync((): ReadonlyArray<RecordedRequest> =>
      records.map(({ current }) => current)
    ),
    clear: Effect.sync(() => void records.splice(0))
  }
}
