/** A scripted server on loopback that does not use `@effect/platform`. Records the requests that it receives. */
import { once } from "node:events"
import * as Net from "node:net"
import { until } from "@store-api/testing/network"
import { Effect, type Scope } from "effect"

export interface CapturedRequest {
  /** For example `POST /v1/oauth/accesstoken HTTP/1.1`. */
  readonly requestLine: string
  /** In the order received, with names in lower case. */
  readonly headers: ReadonlyArray<readonly [name: string, value: string]>
  readonly body: Buffer
}

/** Responds on the socket after a request has been read. */
export type Answer = (socket: Net.Socket) => void

export interface CaptureServer {
  /** Without a trailing slash. */
  readonly url: string
  readonly requests: Effect.Effect<ReadonlyArray<CapturedRequest>>
  readonly count: Effect.Effect<number>
  readonly openSockets: Effect.Effect<number>
  /** The number of connections so far. */
  readonly connections: Effect.Effect<number>
  /** Waits until no socket is open. */
  readonly allClosed: Effect.Effect<void>
}

/** All values of a request header. */
export const valuesOf = (
  request: CapturedRequest | undefined,
  name: string
): ReadonlyArray<string> =>
  (request?.headers ?? []).filter(([header]) => header === name).map(([, value]) => value)

/** Sends the responses in order, and the last one to all further requests. */
export const make = (
  ...answers: readonly [Answer, ...ReadonlyArray<Answer>]
): Effect.Effect<CaptureServer, never, Scope.Scope> =>
  Effect.acquireRelease(
    Effect.promise(async () => {
      const requests: Array<CapturedRequest> = []
      const sockets = new Set<Net.Socket>()
      let connections = 0
      const server = Net.createServer((socket) => {
        connections++
        sockets.add(socket)
        socket.on("close", () => sockets.delete(socket))
        socket.on("error", () => socket.destroy())
        readRequests(socket, (request) => {
          const answer = answers[Math.min(requests.length, answers.length - 1)] ?? answers[0]
          requests.push(request)
          answer(socket)
        })
      })
      await once(server.listen(0, "127.0.0.1"), "listening")
      return { server, sockets, requests, connections: Effect.sync(() => connections) }
    }),
    ({ server, sockets }) =>
      Effect.async<void>((resume) => {
        server.close(() => resume(Effect.void))
        for (const socket of sockets) socket.destroy()
      })
  ).pipe(Effect.map(({ connections, requests, server, sockets }) => {
    const openSockets = Effect.sync(() => sockets.size)
    return {
      url: `http://127.0.0.1:${(server.address() as Net.AddressInfo).port}`,
      requests: Effect.sync(() => requests.slice()),
      count: Effect.sync(() => requests.length),
      openSockets,
      connections,
      allClosed: until("no socket is open", Effect.map(openSockets, (open) => open === 0))
    }
  }))

/** Reads requests with a `Content-Length` (or without a body) from a socket, one after another. */
const readRequests = (
  socket: Net.Socket,
  onRequest: (request: CapturedRequest) => void
): void => {
  let received: Buffer = Buffer.alloc(0)
  socket.on("data", (chunk: Buffer) => {
    received = Buffer.concat([received, chunk])
    for (;;) {
      const end = received.indexOf("\r\n\r\n")
      if (end === -1) return
      const [requestLine = "", ...lines] = received.subarray(0, end).toString("latin1").split(
        "\r\n"
      )
      const headers = lines.map((line) => {
        const colon = line.indexOf(":")
        return [line.slice(0, colon).toLowerCase(), line.slice(colon + 1).trim()] as const
      })
      const length = Number(headers.find(([name]) => name === "content-length")?.[1] ?? 0)
      const start = end + 4
      if (received.length < start + length) return
      const body = received.subarray(start, start + length)
      received = received.subarray(start + length)
      onRequest({ requestLine, headers, body })
    }
  })
}

/** A complete response. The server then closes the connection. */
export const answer = (
  status: number,
  body: string | Uint8Array,
  headers: Readonly<Record<string, string>> = { "content-type": "application/json" }
): Answer =>
(socket) => {
  const bytes = Buffer.from(body)
  socket.write(
    head(status, { ...headers, "content-length": String(bytes.length), connection: "close" })
  )
  socket.end(bytes)
}

/** A complete response, after which the connection can be used again. */
export const keepAlive = (status: number, body: string): Answer => (socket) => {
  const headers = {
    "content-type": "application/json",
    "content-length": String(Buffer.byteLength(body))
  }
  socket.write(head(status, headers) + body)
}

/** The status line and headers of a response. */
export const head = (status: number, headers: Readonly<Record<string, string>>): string =>
  [
    `HTTP/1.1 ${status} Scripted`,
    ...Object.entries(headers).map(([name, value]) => `${name}: ${value}`),
    "",
    ""
  ].join(
    "\r\n"
  )

/** Sends these bytes and closes the connection. */
export const raw = (bytes: string): Answer => (socket) => {
  socket.end(bytes)
}

/** Sends these bytes and leaves the connection open. */
export const rawThenSilence = (bytes: string): Answer => (socket) => {
  socket.write(bytes)
}

/** Sends these bytes, if any, and resets the connection. */
export const rawThenReset = (bytes = ""): Answer => (socket) => {
  if (bytes === "") socket.resetAndDestroy()
  else socket.write(bytes, () => socket.resetAndDestroy())
}

export const silence: Answer = () => {}

/** A response without an end, sent as fast as the client reads it. */
export const endless = (status: number): Answer => (socket) => {
  const chunk = Buffer.alloc(16 * 1024, "x")
  const framed = Buffer.concat([
    Buffer.from(`${chunk.length.toString(16)}\r\n`),
    chunk,
    Buffer.from("\r\n")
  ])
  socket.write(
    head(status, { "content-type": "application/json", "transfer-encoding": "chunked" })
  )
  const pump = () => {
    while (!socket.destroyed && socket.writable) {
      if (!socket.write(framed)) return
    }
  }
  socket.on("drain", pump)
  pump()
}

/** Nothing listens on this port. Unlike a port that was just closed, the system never assigns it to a server. */
export const nothing = "http://127.0.0.1:2"
