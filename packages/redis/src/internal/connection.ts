import { ClientOfflineError, createClient } from "@redis/client"
import { ConfigurationError } from "@store-api/core/AccessTokenError"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as MutableRef from "effect/MutableRef"
import * as Redacted from "effect/Redacted"
import type * as Scope from "effect/Scope"
import { reasonOf } from "./reason.js"

/** How long the first connection is waited for, in milliseconds. */
const firstConnection = 1000

/** More commands than this are not kept while Redis does not answer; each acquisition leaves some. */
const longestQueue = 1000

/** A client, and why what it was told failed: while it is offline, why that is. */
export interface Connection {
  readonly client: ReturnType<typeof clientOf>
  readonly reasonOf: (error: unknown) => string
}

/**
 * A client with a connection of its own, made anew whenever it breaks, closed with the scope. A Redis that cannot be reached
 * is no failure: commands fail until it can.
 */
export const make = (url: Redacted.Redacted): Effect.Effect<Connection, ConfigurationError, Scope.Scope> =>
  Effect.gen(function*() {
    const client = yield* Effect.acquireRelease(
      usable(Redacted.value(url)),
      (client) => Effect.sync(() => client.destroy())
    )
    const whyOffline = MutableRef.make("no connection")
    // Without a listener Node would end the process; each operation says of itself that it failed.
    client.on("error", (error) => MutableRef.set(whyOffline, reasonOf(error)))
    // It goes on trying until it is destroyed.
    const connecting = yield* Effect.forkScoped(Effect.ignore(Effect.tryPromise(() => client.connect())))
    yield* Effect.timeoutOption(Fiber.join(connecting), firstConnection)
    return {
      client,
      reasonOf: (error) => error instanceof ClientOfflineError ? MutableRef.get(whyOffline) : reasonOf(error)
    }
  })

/** The client's own errors quote the URL, with its password. */
const usable = (text: string) =>
  Effect.try(() => new URL(text)).pipe(
    Effect.filterOrFail(({ hostname }) => hostname !== ""),
    Effect.flatMap(({ protocol }) => Effect.try(() => clientOf(text, protocol === "rediss:"))),
    Effect.mapError(() =>
      new ConfigurationError({
        option: "RedisTokenStore.url",
        reason: "must be redis://host, or rediss://host over TLS, with user:password@ before the host, a port and a " +
          "/database after it where needed, all percent-encoded"
      })
    )
  )

const clientOf = (url: string, overTls: boolean) =>
  createClient({
    url,
    // Without a connection a command fails at once: a store that is down is a miss, and nothing is sent late.
    disableOfflineQueue: true,
    commandsQueueMaxLength: longestQueue,
    maintNotifications: "disabled",
    // Stated, so that NODE_TLS_REJECT_UNAUTHORIZED cannot lift it.
    ...(overTls && { socket: { tls: true, rejectUnauthorized: true } })
  })
