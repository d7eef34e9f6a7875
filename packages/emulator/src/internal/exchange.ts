/** One request as it came over the wire, before anything has been made of it. */
import type { IncomingMessage, ServerResponse } from "node:http"
import type * as HttpServerRequest from "@effect/platform/HttpServerRequest"
import * as NodeHttpServerRequest from "@effect/platform-node/NodeHttpServerRequest"
import type { Kind } from "../RecordedRequest.js"
import type { Settings } from "./settings.js"

export interface Exchange {
  readonly kind: Kind
  readonly method: string
  /** The request target, exactly. */
  readonly url: string
  readonly path: string
  /** What stands behind the first `?`; `undefined` without one, which is not the same as an empty query. */
  readonly query: string | undefined
  /** All values of a header, each as it was sent; Node itself drops or joins repeated ones. */
  readonly header: (name: string) => ReadonlyArray<string>
  readonly headers: ReadonlyArray<readonly [name: string, value: string]>
  readonly incoming: IncomingMessage
  readonly outgoing: ServerResponse
}

export const tokenPath = (settings: Settings) => `${settings.basePath}/v1/oauth/accesstoken`

const kindOf = (path: string, settings: Settings): Kind => {
  if (path === tokenPath(settings)) return "token"
  return path.startsWith(`${settings.basePath}/`) ? "api" : "other"
}

export const make = (request: HttpServerRequest.HttpServerRequest, settings: Settings): Exchange => {
  const incoming = NodeHttpServerRequest.toIncomingMessage(request)
  const { rawHeaders, url = "" } = incoming
  const mark = url.indexOf("?")
  const path = mark < 0 ? url : url.slice(0, mark)
  const headers: Array<readonly [string, string]> = []
  // Names and values alternate.
  for (let index = 0; index + 1 < rawHeaders.length; index += 2) {
    headers.push([(rawHeaders[index] ?? "").toLowerCase(), rawHeaders[index + 1] ?? ""])
  }
  return {
    kind: kindOf(path, settings),
    method: incoming.method ?? "",
    url,
    path,
    query: mark < 0 ? undefined : url.slice(mark + 1),
    header: (name) => headers.filter(([key]) => key === name.toLowerCase()).map(([, value]) => value),
    headers,
    incoming,
    outgoing: NodeHttpServerRequest.toServerResponse(request)
  }
}
