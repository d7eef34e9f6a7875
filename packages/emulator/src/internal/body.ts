/** The body of a request, byte for byte and of bounded size. */
import { Buffer } from "node:buffer"
import type { IncomingMessage } from "node:http"
import * as Effect from "effect/Effect"

export interface Body {
  /** As far as it is within the limit. */
  readonly bytes: Buffer
  readonly received: number
  readonly tooLarge: boolean
}

/**
 * Collects at most `limit` bytes. What comes beyond is thrown away as it arrives, up to 16 times the limit, because a
 * client that is still sending would see a reset and not the answer.
 */
export const read = (incoming: IncomingMessage, limit: number): Effect.Effect<Body> =>
  Effect.async((resume) => {
    const chunks: Array<Buffer> = []
    let received = 0
    const finish = () => {
      stop()
      resume(Effect.succeed({ bytes: Buffer.concat(chunks).subarray(0, limit), received, tooLarge: received > limit }))
    }
    const onData = (chunk: Buffer) => {
      if (received <= limit) chunks.push(chunk)
      received += chunk.length
      if (received > limit * 16) finish()
    }
    const onClose = () => {
      stop()
      resume(Effect.interrupt)
    }
    const stop = () => {
      incoming.off("data", onData)
      incoming.off("end", finish)
      incoming.off("close", onClose)
    }
    incoming.on("data", onData)
    incoming.on("end", finish)
    incoming.on("close", onClose)
    return Effect.sync(stop)
  })
