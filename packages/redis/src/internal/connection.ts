import { ClientClosedError, ClientOfflineError } from "@redis/client"
import type { ConfigurationError } from "@store-api/core/AccessTokenError"
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as MutableRef from "effect/MutableRef"
import * as Redacted from "effect/Redacted"
import * as Schedule from "effect/Schedule"
import type * as Scope from "effect/Scope"
import { reasonOf } from "./reason.js"
import * as servers from "./servers.js"

/** The reason until an error of the client gives another one. */
const noConnection = "no connection"

/** How long `make` waits for the first connection, in milliseconds. */
const firstConnection = 1000

/**
 * A connection counts as dead when a command gets no response for this long, and no other command does. In nanoseconds.
 */
const silence = 250_000_000n

/** A client that is not connected after this time may hang in a handshake. In nanoseconds. */
const handshake = { single: 10_000_000_000n, several: 1_000_000_000n }

/** The time limit for one attempt of a command, when another server may take over. In milliseconds. */
const attemptTimeout = 1000

/** The reasons for which a further attempt is useless. */
const final = new Set(
  ["ClientClosedError", "ERR", "NOAUTH", "NOPERM", "OOM", "WRONGPASS", "WRONGTYPE", "unknown name"]
)

/** Repeats a command until another server has taken over. No operation of a store takes longer than 30 seconds. */
export const retrying = <A>(attempt: Effect.Effect<A, string>): Effect.Effect<A, string> =>
  Effect.retry(attempt, {
    while: (reason) => !final.has(reason),
    schedule: Schedule.spaced("200 millis").pipe(Schedule.jittered, Schedule.upTo("30 seconds"))
  })

/** Runs a command on the current client. Fails with the reason in one word. */
export type Run = <A>(command: (client: servers.Client) => Promise<A>) => Effect.Effect<A, string>

/** A client, the time of its creation and the time of its last response, by the monotonic clock. */
interface Live {
  readonly since: bigint
  answered: bigint
  /** `undefined` until it connects. */
  client: servers.Client | undefined
  isConnecting: boolean
}

/**
 * Opens a client that closes with the scope. The client of a single server reconnects when its connection breaks. When
 * a connection goes silent, which TCP may not detect for 15 minutes, this module replaces the client. Commands fail
 * while Redis is unreachable.
 *
 * When another server may take over, this module replaces the client after each fault, and tries the command again.
 */
export const make = (url: Redacted.Redacted): Effect.Effect<Run, ConfigurationError, Scope.Scope> =>
  Effect.gen(function*() {
    const { canFailOver, newClient } = yield* servers.fromUrl(Redacted.value(url))
    const longestHandshake = canFailOver ? handshake.several : handshake.single
    const whyOffline = MutableRef.make(noConnection)

    const open = Effect.map(
      Clock.currentTimeNanos,
      (since): Live => ({ since, answered: since, client: undefined, isConnecting: true })
    )
    const live = MutableRef.make(yield* open)
    const isClosed = MutableRef.make(false)

    const connect = (opened: Live) =>
      Effect.gen(function*() {
        const client = yield* newClient
        if (MutableRef.get(isClosed) || MutableRef.get(live) !== opened) return
        // Without a listener, Node would end the process. Each operation reports its own failure.
        opened.client = client.on("error", (error) => MutableRef.set(whyOffline, reasonOf(error)))
        // The client of a single server retries until it is destroyed.
        yield* Effect.ignore(Effect.tryPromise((): Promise<unknown> => client.connect()))
      }).pipe(
        Effect.catchAll((reason) => Effect.sync(() => MutableRef.set(whyOffline, reason))),
        Effect.ensuring(Effect.sync(() => {
          opened.isConnecting = false
        })),
        Effect.forkDaemon
      )

    yield* Effect.addFinalizer(() =>
      Effect.sync(() => {
        MutableRef.set(isClosed, true)
        MutableRef.set(whyOffline, "ClientClosedError")
        servers.destroy(MutableRef.get(live).client)
      })
    )
    yield* Effect.timeoutOption(Effect.flatMap(connect(MutableRef.get(live)), Fiber.join), firstConnection)

    const replace = (old: Live) =>
      Effect.gen(function*() {
        // An operation can be interrupted after the scope has closed.
        if (MutableRef.get(isClosed) || MutableRef.get(live) !== old) return
        MutableRef.set(live, yield* open)
        MutableRef.set(whyOffline, noConnection)
        servers.destroy(old.client)
        yield* connect(MutableRef.get(live))
      })

    const attempt: Run = (command) =>
      Effect.gen(function*() {
        const sent = yield* Clock.currentTimeNanos
        const found = MutableRef.get(live)
        if (found.client?.isReady !== true && sent - found.since > longestHandshake) yield* replace(found)
        const used = MutableRef.get(live)
        const { client } = used
        if (client === undefined) return yield* Effect.fail(MutableRef.get(whyOffline))
        const isDead = Effect.map(Clock.currentTimeNanos, (now) => used.answered <= sent && now - sent >= silence)
        return yield* Effect.tryPromise({
          try: () => command(client),
          catch: (error) =>
            error instanceof ClientOfflineError || error instanceof ClientClosedError
              ? MutableRef.get(whyOffline)
              : reasonOf(error)
        }).pipe(
          Effect.tap(Effect.map(Clock.currentTimeNanos, (now) => {
            used.answered = now
            MutableRef.set(whyOffline, noConnection)
          })),
          Effect.onInterrupt(() => Effect.whenEffect(replace(used), isDead))
        )
      })
    if (!canFailOver) return attempt

    return (command) =>
      retrying(Effect.suspend(() => {
        const used = MutableRef.get(live)
        return attempt(command).pipe(
          Effect.timeoutFail({ duration: attemptTimeout, onTimeout: () => "no response in time" }),
          Effect.tapError((reason) => Effect.when(replace(used), () => !final.has(reason) && !used.isConnecting))
        )
      }))
  })
