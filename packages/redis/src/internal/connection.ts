import { ClientOfflineError, createClient } from "@redis/client"
import { ConfigurationError } from "@store-api/core/AccessTokenError"
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as MutableRef from "effect/MutableRef"
import * as Redacted from "effect/Redacted"
import type * as Scope from "effect/Scope"
import { reasonOf } from "./reason.js"

/** How long the first connection is waited for, in milliseconds. */
const firstConnection = 1000

/** A command that is given up after that long, with no answer to any since, was sent into a dead connection. In nanoseconds. */
const silence = 250_000_000n

/** A client that is not connected after that long may hang in a handshake. In nanoseconds. */
const handshake = 10_000_000_000n

/** More commands than this are not kept while Redis does not answer. */
const longestQueue = 1000

type Client = ReturnType<typeof clientOf>

/** Does something with a client; fails with the reason, in a word. */
export type Run = <A>(command: (client: Client) => Promise<A>) => Effect.Effect<A, string>

/** A client, and when it was made and had its last answer, by the monotonic clock. */
interface Live {
  readonly client: Client
  readonly since: bigint
  answered: bigint
}

/**
 * A client with a connection of its own, closed with the scope. One that breaks is made anew by the client; one that says
 * nothing any more, which TCP may not notice for a quarter of an hour, is replaced with its client. A Redis that cannot be
 * reached is no failure: commands fail until it can.
 */
export const make = (url: Redacted.Redacted): Effect.Effect<Run, ConfigurationError, Scope.Scope> =>
  Effect.gen(function*() {
    const newClient = yield* usable(Redacted.value(url))
    const whyOffline = MutableRef.make("no connection")

    const open = Effect.map(Clock.currentTimeNanos, (since): Live => {
      // Without a listener Node would end the process; each operation says of itself that it failed.
      const client = newClient().on("error", (error) => MutableRef.set(whyOffline, reasonOf(error)))
      return { client, since, answered: since }
    })
    /** Goes on trying until the client is destroyed. */
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
        // An operation may be given up after the scope has ended.
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

/** One that is still connecting would be ready later, and stay. */
const destroy = (client: Client): void => {
  client.on("ready", () => client.destroy())
  client.destroy()
}

/** Clients for that URL. The client's own errors quote it, with its password. */
const usable = (text: string): Effect.Effect<() => Client, ConfigurationError> =>
  Effect.try(() => new URL(text)).pipe(
    Effect.filterOrFail(({ hostname }) => hostname !== ""),
    Effect.flatMap(({ protocol }) => {
      const newClient = () => clientOf(text, protocol === "rediss:")
      // What the client cannot use it throws at.
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
    // Without a connection a command fails at once: a store that is down is a miss, and nothing is sent late.
    disableOfflineQueue: true,
    commandsQueueMaxLength: longestQueue,
    maintNotifications: "disabled",
    // Stated, so that NODE_TLS_REJECT_UNAUTHORIZED cannot lift it.
    ...(overTls && { socket: { tls: true, rejectUnauthorized: true } })
  })
