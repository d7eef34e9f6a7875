/** What arrived, written down so that printing it gives nothing away. */
import type { Buffer } from "node:buffer"
import { unescape } from "node:querystring"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Redacted from "effect/Redacted"
import type { RecordedRequest } from "../RecordedRequest.js"
import type { Exchange } from "./exchange.js"
import type { Observing } from "./observer.js"
import type { Settings } from "./settings.js"
import type { Tokens } from "./tokens.js"

/** A request being written down. */
export interface Entry {
  readonly arrived: (bytes: Buffer, received: number) => Effect.Effect<void>
  readonly answered: (status: number) => Effect.Effect<void>
  readonly ended: Effect.Effect<void>
}

export interface RequestLog {
  readonly open: (exchange: Exchange) => Effect.Effect<Entry>
  readonly all: Effect.Effect<ReadonlyArray<RecordedRequest>>
  readonly clear: Effect.Effect<void>
}

const hidden = "<redacted>"
const sensitiveHeaders = ["authorization", "proxy-authorization", "cookie", "x-api-key"]
const sensitiveParameter = /(^|&)(client_|access_|refresh_|id_|api[_-]?)?(secret|token|assertion|password|key)=/i

const decodings = (text: string) => [text, unescape(text), unescape(text.replaceAll("+", " "))]

export const make = (settings: Settings, observing: Observing, tokens: Tokens): RequestLog => {
  let requests: Array<{ current: RecordedRequest }> = []

  const givesAway = (text: string) =>
    decodings(text).some((decoded) =>
      tokens.heldBy(decoded) || settings.clients.some((client) => decoded.includes(Redacted.value(client.clientSecret)))
    )

  const shownUrl = ({ path, query, url }: Exchange) => {
    if (givesAway(path)) return hidden
    if (query === undefined) return url
    return givesAway(query) || decodings(query).some((decoded) => sensitiveParameter.test(decoded))
      ? `${path}?${hidden}`
      : url
  }

  const shownHeaders = (exchange: Exchange) => {
    const sensitive = [...sensitiveHeaders, settings.header.name.toLowerCase()]
    const names = new Set(exchange.headers.map(([name]) => name))
    return Object.fromEntries(Array.from(names, (name) => {
      const value = exchange.header(name).join(", ")
      return [name, sensitive.includes(name) || givesAway(value) ? Redacted.make(value) : value]
    }))
  }

  const first = (exchange: Exchange): RecordedRequest => ({
    kind: exchange.kind,
    method: exchange.method,
    url: shownUrl(exchange),
    rawUrl: Redacted.make(exchange.url),
    headers: shownHeaders(exchange),
    authorization: Option.map(Option.fromNullable(exchange.header(settings.header.name)[0]), Redacted.make),
    body: Redacted.make(""),
    bodyBytes: 0,
    sentBytes: 0,
    status: Option.none()
  })

  return {
    open: (exchange) =>
      Effect.sync(() => {
        const record = { current: first(exchange) }
        requests.push(record)
        if (requests.length > observing.keep) requests.shift()
        const { socket } = exchange.incoming
        const before = socket.bytesWritten
        exchange.outgoing.once("close", () => {
          record.current = { ...record.current, sentBytes: socket.bytesWritten - before }
        })
        const update = (change: Partial<RecordedRequest>) =>
          Effect.sync(() => {
            record.current = { ...record.current, ...change }
          })
        return {
          arrived: (bytes, received) => update({ body: Redacted.make(bytes.toString("utf8")), bodyBytes: received }),
          answered: (status) => update({ status: Option.some(status) }),
          ended: Effect.suspend(() => observing.onEnd(record.current))
        }
      }),
    all: Effect.sync(() => requests.map(({ current }) => current)),
    clear: Effect.sync(() => {
      requests = []
    })
  }
}
