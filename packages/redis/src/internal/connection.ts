import { ClientClosedError, ClientOfflineError } from "@redis/client"
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Option from "effect/Option"
import * as Redacted from "effect/Redacted"
import * as Ref from "effect/Ref"
import * as Schedule from "effect/Schedule"
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

/**
 * The time limit for one attempt of a command, when another server may take over. In milliseconds. Half of the default
 * `storeTimeout`, because a process often learns of a failover only by its next command, long after it.
 */
const attemptTimeout = 500

/** The reasons for which a further attempt is useless. */
const finalReasons = new Set(
  [
    "ClientClosedError",
    "ERR",
    "NOAUTH",
    "NOPERM",
    "OOM",
    "WRONGPASS",
    "WRONGTYPE",
    "unknown name"
  ]
)

/** Runs a command on the current client. Fails with the reason. */
export type Run = <A>(
  command: (client: servers.Client) => Promise<A>
) => Effect.Effect<A, string>

/**
 * Opens a client that closes with the scope. The client of a single server reconnects when its connection breaks. When
 * a connection goes silent, which TCP may not detect for 15 minutes, this module replaces the client. Commands fail
 * while Redis is unreachable.
 *
 * When another server may take over, this module replaces the client after each fault, and tries the command again.
 */
export const make = (url: Redacted.Redacted) =>
  Effect.gen(function*() {
    const { canFailOver, newClient } = yield* servers.fromUrl(Redacted.value(url))
    const connection: Connection = {
      newClient,
      longestHandshake: canFailOver ? handshake.several : handshake.single,
      whyOffline: noConnection,
      live: yield* open,
      isClosed: false
    }
    yield* Effect.addFinalizer(() =>
      Effect.sync(() => {
        connection.isClosed = true
        connection.whyOffline = "ClientClosedError"
        servers.destroy(connection.live.client)
      })
    )
    yield* Effect.flatMap(connect(connection), awaitFirst)
    const { lastFailure, noteFailure, retry } = makeRetries()
    // The first attempt may replace the client, and the time limit may end before the new one has an error.
    const noteKnown = Effect.suspend(() => noteFailure(connection.whyOffline))
    const run: Run = (command) =>
      canFailOver
        ? Effect.zipRight(noteKnown, retry(attemptWithFailover(connection, command)))
        : attempt(connection, command)
    return { run, lastFailure }
  })

/** Repeats commands until another server has taken over, and remembers why the last attempt failed. */
export const makeRetries = () => {
  const last = Ref.unsafeMake(Option.none<string>())
  // Until the client has an error, an earlier attempt knows more.
  const noteFailure = (reason: string) =>
    reason === noConnection ? Effect.void : Ref.set(last, Option.some(reason))
  /** No operation of a store takes longer than 30 seconds. */
  const retry = <A>(attempt: Effect.Effect<A, string>): Effect.Effect<A, string> =>
    attempt.pipe(
      Effect.tapError(noteFailure),
      Effect.retry({
        while: (reason) => !finalReasons.has(reason),
        schedule: Schedule.spaced("200 millis").pipe(
          Schedule.jittered,
          Schedule.upTo("30 seconds")
        )
      }),
      Effect.zipLeft(Ref.set(last, Option.none()))
    )
  return { lastFailure: Ref.get(last), noteFailure, retry }
}

interface Connection {
  readonly newClient: servers.Servers["newClient"]
  readonly longestHandshake: bigint
  whyOffline: string
  live: Live
  isClosed: boolean
}

/** A client, the time of its creation and the time of its last response, by the monotonic clock. */
interface Live {
  readonly since: bigint
  answered: bigint
  /** `undefined` until it connects. */
  client: servers.Client | undefined
  isConnecting: boolean
}

const open = Effect.map(
  Clock.currentTimeNanos,
  (since): Live => ({ since, answered: since, client: undefined, isConnecting: true })
)

/** Connects the current client, in its own fiber. */
const connect = (connection: Connection) => {
  const { live: opened, newClient } = connection
  const noteOffline = (reason: string) => {
    connection.whyOffline = reason
  }
  return Effect.gen(function*() {
    const client = yield* newClient
    if (connection.isClosed || connection.live !== opened) return
    // Without a listener, Node would end the process. Each operation reports its own failure.
    opened.client = client.on("error", (error) => noteOffline(reasonOf(error)))
    // The client of a single server retries until it is destroyed.
    yield* Effect.ignore(Effect.tryPromise((): Promise<unknown> => client.connect()))
  }).pipe(
    Effect.catchAll((reason) => Effect.sync(() => noteOffline(reason))),
    Effect.ensuring(Effect.sync(() => {
      opened.isConnecting = false
    })),
    Effect.forkDaemon
  )
}

/** Waits in real time, which the network takes even if a test controls the clock. */
const awaitFirst = (connecting: Fiber.Fiber<unknown>) =>
  inOwnFiber(
    Effect.withClock(
      Effect.timeoutOption(Fiber.join(connecting), firstConnection),
      Clock.make()
    )
  )

/** Effect interrupts a timeout even in an uninterruptible region of the caller, but not the fiber that it waits for. */
const inOwnFiber = <A, E>(effect: Effect.Effect<A, E>): Effect.Effect<A, E> =>
  Effect.uninterruptibleMask((restore) =>
    Effect.flatMap(
      Effect.forkDaemon(Effect.interruptible(effect)),
      (fiber) =>
        Effect.onInterrupt(restore(Fiber.join(fiber)), () => Fiber.interruptFork(fiber))
    )
  )

/** Replaces a client, unless another command has done it. */
const replace = (connection: Connection, old: Live) =>
  Effect.gen(function*() {
    // An operation can be interrupted after the scope has closed.
    if (connection.isClosed || connection.live !== old) return
    connection.live = yield* open
    connection.whyOffline = noConnection
    servers.destroy(old.client)
    yield* connect(connection)
  })

type Command<A> = (client: servers.Client) => Promise<A>

const attempt = <A>(connection: Connection, command: Command<A>): Effect.Effect<A, string> =>
  Effect.gen(function*() {
    const sent = yield* Clock.currentTimeNanos
    const previous = connection.live
    const age = sent - previous.since
    if (previous.client?.isReady !== true && age > connection.longestHandshake) {
      yield* replace(connection, previous)
    }
    const used = connection.live
    const { client } = used
    if (client === undefined) return yield* Effect.fail(connection.whyOffline)
    const isDead = Effect.map(
      Clock.currentTimeNanos,
      (now) => used.answered <= sent && now - sent >= silence
    )
    return yield* Effect.tryPromise({
      try: () => command(client),
      catch: (error) =>
        error instanceof ClientOfflineError || error instanceof ClientClosedError
          ? connection.whyOffline
          : reasonOf(error)
    }).pipe(
      Effect.tap(Effect.map(Clock.currentTimeNanos, (now) => {
        used.answered = now
        connection.whyOffline = noConnection
      })),
      Effect.onInterrupt(() => Effect.whenEffect(replace(connection, used), isDead))
    )
  })

/** An attempt on one of several servers. After a fault, the next attempt looks for the one that takes over. */
const attemptWithFailover = <A>(
  connection: Connection,
  command: Command<A>
): Effect.Effect<A, string> =>
  Effect.suspend(() => {
    const used = connection.live
    return attempt(connection, command).pipe(
      Effect.timeoutFail({ duration: attemptTimeout, onTimeout: () => "no response in time" }),
      inOwnFiber,
      Effect.tapError((reason) =>
        finalReasons.has(reason) || used.isConnecting ? Effect.void : replace(connection, used)
      )
    )
  })
