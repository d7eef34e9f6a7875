import { ClientOfflineError, createClient } from "@redis/client"
import { ConfigurationError } from "@store-api/core/AccessTokenError"
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as MutableRef from "effect/MutableRef"
import * as Redacted from "effect/Redacted"
import type * as Scope from "effect/Scope"
import { reasonOf } from "./reason.js"

/** How long `make` waits for the first connection, in milliseconds. */
const firstConnection = 1000

/**
 * A connection counts as dead when a command gets no response for this long, and no other command does. In nanoseconds.
 */
const silence = 250_000_000n

/** A client that is not connected after this time may hang in a handshake. In nanoseconds. */
const handshake = 10_000_000_000n

/** How many commands may wait while Redis does not respond. */
const longestQueue = 1000

type Client = ReturnType<typeof clientOf>

/** Runs a command on the current client. Fails with the reason in one word. */
export type Run = <A>(command: (client: Client) => Promise<A>) => Effect.Effect<A, string>

/** A client, the time of its creation and the time of its last response, by the monotonic clock. */
interface Live {
  readonly client: Client
  readonly since: bigint
  answered: bigint
}

/**
 * Opens a client that closes with the scope. The client reconnects when its connection breaks. When a connection goes
 * silent, which TCP may not detect for 15 minutes, this module replaces the client. Commands fail while Redis is
 * unreachable.
 */
export const make = (url: Redacted.Redacted): Effect.Effect<Run, ConfigurationError, Scope.Scope> =>
  Effect.gen(function*() {
    const newClient = yield* usable(Redacted.value(url))
    const whyOffline = MutableRef.make("no connection")

    const open = Effect.map(Clock.currentTimeNanos, (since): Live => {
      // Without a listener, Node would end the process. Each operation reports its own failure.
      const client = newClient().on("error", (error) => MutableRef.set(whyOffline, reasonOf(error)))
      return { client, since, answered: since }
    })
    /** Retries until the client is destroyed. */
    const connect = ({ client }: Live) => Effect.forkDaemon(Effect.ignore(Effect.tryPromise(() => client.connect())))

    const live = MutableRef.make(yield* open)
    const isClosed = MutableRef.make(false)
    yield* Effect.addFinalizer(() =>
      Effect.sync(() => {
        MutableRef.set(isClosed, true)
        destroy(MutableRef.get(live).client)
      })
    )
    yield* Effect.timeoutOption(Effect.flatMap(connect(MutableRef.get(live)), Fiber.join), firstConnection)

    const replace = (old: Live) =>
      Effect.gen(function*() {
        // An operation can be interrupted after the scope has closed.
        if (MutableRef.get(isClosed) || MutableRef.get(live) !== old) return
        MutableRef.set(live, yield* open)
        destroy(old.client)
        yield* connect(MutableRef.get(live))
      })

    return (command) =>
      Effect.gen(function*() {
        const sent = yield* Clock.currentTimeNanos
        const found = MutableRef.get(live)
        if (!found.client.isReady && sent - found.since > handshake) yield* replace(found)
        const used = MutableRef.get(live)
        const isDead = Effect.map(Clock.currentTimeNanos, (now) => used.answered <= sent && now - sent >= silence)
        return yield* Effect.tryPromise({
          try: () => command(used.client),
          catch: (error) => error instanceof ClientOfflineError ? MutableRef.get(whyOffline) : reasonOf(error)
        }).pipe(
          Effect.tap(Effect.map(Clock.currentTimeNanos, (now) => {
            used.answered = now
          })),
          Effect.onInterrupt(() => Effect.whenEffect(replace(used), isDead))
        )
      })
  })

/** Also destroys a client that is still connecting, which would open its connection later. */
const destroy = (client: Client): void => {
  client.on("ready", () => client.destroy())
  client.destroy()
}

/**
 * Checks the URL and returns a function that creates clients. Drops the client's own errors, which quote the password.
 */
const usable = (text: string): Effect.Effect<() => Client, ConfigurationError> =>
  Effect.try(() => new URL(text)).pipe(
    Effect.filterOrFail(({ hostname }) => hostname !== ""),
    Effect.flatMap(({ protocol }) => {
      const newClient = () => clientOf(text, protocol === "rediss:")
      // The client throws when it cannot use the URL.
      return Effect.as(Effect.try(newClient), newClient)
    }),
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
    // Without a connection a command fails at once, so that no command is sent late.
    disableOfflineQueue: true,
    commandsQueueMaxLength: longestQueue,
    maintNotifications: "disabled",
    // Set explicitly, so that NODE_TLS_REJECT_UNAUTHORIZED=0 has no effect.
    ...(overTls && { socket: { tls: true, rejectUnauthorized: true } })
  })
