/**
 * Writes what the platform cannot send to Node's response or socket: repeated headers, endless bodies and raw bytes.
 */
import { Buffer } from "node:buffer"
import type { ServerResponse } from "node:http"
import type { Socket } from "node:net"
import { pipeline, Readable } from "node:stream"
import * as HttpServerResponse from "@effect/platform/HttpServerResponse"
import * as Clock from "effect/Clock"
import type * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import type { Ending, Headers } from "../FaultModel.js"
import { endConnection } from "./server.js"

/** The platform does not write a response that has ended. It only reads the status of the returned value. */
export const write = (outgoing: ServerResponse, status: number, headers: Headers, body: Uint8Array) => {
  outgoing.statusCode = status
  for (const [name, values] of Object.entries(headers)) outgoing.setHeader(name, values)
  if (body.length > 0 && !outgoing.hasHeader("content-type")) outgoing.setHeader("content-type", "application/json")
  outgoing.end(body)
  return HttpServerResponse.empty({ status })
}

const writeHead = (outgoing: ServerResponse, status: number) =>
  Effect.sync(() => outgoing.writeHead(status, { "Content-Type": "application/json" }).flushHeaders())

/** Writes one space at a time, which JSON allows, until the client disconnects. */
export const drip = (outgoing: ServerResponse, status: number, every: Duration.Duration) =>
  Effect.zipRight(
    writeHead(outgoing, status),
    Effect.forever(Effect.delay(Effect.sync(() => outgoing.write(" ")), every))
  )

const chunk = Buffer.alloc(64 * 1024, "x")

const chunks = function*(bytes: number) {
  for (let left = bytes; left > 0; left -= chunk.length) yield chunk.subarray(0, left)
}

/** Writes as fast as the client reads. If the client disconnects, the platform interrupts this. */
export const flood = (outgoing: ServerResponse, status: number, bytes: number) =>
  Effect.zipRight(
    writeHead(outgoing, status),
    Effect.async<HttpServerResponse.HttpServerResponse>((resume) => {
      pipeline(Readable.from(chunks(bytes)), outgoing, (error) => {
        if (!error) resume(Effect.succeed(HttpServerResponse.empty({ status })))
      })
    })
  )

/**
 * A client that receives bytes and a reset at once reads the reset as an orderly end (libuv does). This pause lets it
 * read the bytes first. It uses the real clock because a test clock might not advance.
 */
const timeToRead = Effect.withClock(Effect.sleep("20 millis"), Clock.make())

/** Writes bytes to the socket and ends the connection. The platform interrupts this when the socket closes. */
export const writeRaw = (socket: Socket, bytes: Uint8Array, ending: Ending) =>
  Effect.gen(function*() {
    if (bytes.length > 0) {
      yield* Effect.async<void>((resume) => void socket.write(bytes, () => resume(Effect.void)))
      if (ending === "Reset") yield* timeToRead
    }
    endConnection(socket, ending)
    return yield* Effect.never
  })
