/** A network and servers that a test controls, and waiting for them. */
import type { ChildProcess } from "node:child_process"
import { connect, createServer, type Server, type Socket } from "node:net"
import { Clock, type Duration, Effect, Fiber, Option, type Scope } from "effect"
import { listen } from "./loopback.js"
import * as VirtualClock from "./virtualClock.js"

/** Less than the time limit of a test, and long enough for a machine that is twenty times slower. */
const patience = "5 minutes"

/** Waits in real time until the condition holds. Returns false if it takes too long. */
const holdsInTime = <E, R>(condition: Effect.Effect<boolean, E, R>) =>
  Effect.clockWith((clock) =>
    Effect.withClock(condition, clock).pipe(
      Effect.zipLeft(Effect.sleep("10 millis")),
      Effect.repeat({ until: (is) => is }),
      Effect.timeoutOption(patience),
      Effect.map(Option.isSome),
      Effect.withClock(Clock.make())
    )
  )

/** Waits in real time until the condition holds. */
export const until = <E, R>(
  description: string,
  condition: Effect.Effect<boolean, E, R>
): Effect.Effect<void, E, R> =>
  Effect.flatMap(holdsInTime(condition), (holds) =>
    holds
      ? Effect.void
      : Effect.dieMessage(`This did not hold within ${patience}: ${description}`))

/**
 * Waits until a program has printed this to one of its outputs. If it ends without, or takes too long, the failure
 * shows all that it has printed.
 */
export const untilPrinted = (
  expected: RegExp,
  outputs: () => ReadonlyArray<string>,
  hasEnded: () => boolean
): Effect.Effect<void> => {
  const isPrinted = () => outputs().some((text) => expected.test(text))
  return Effect.flatMap(
    holdsInTime(Effect.sync(() => isPrinted() || hasEnded())),
    () =>
      isPrinted()
        ? Effect.void
        : Effect.dieMessage(`It did not print ${expected}:\n${outputs().join("\n")}`)
  )
}

/** Ends a server with a signal, unless it has ended, and waits for it. */
export const end = (server: ChildProcess | undefined, signal: NodeJS.Signals) =>
  Effect.async<void>((resume) => {
    if (server === undefined || (server.exitCode ?? server.signalCode) !== null) {
      resume(Effect.void)
      return
    }
    server.once("exit", () => resume(Effect.void))
    server.kill(signal)
  })

/** Runs the body on a clock that only the body advances. The network takes real time. */
export const onVirtualTime = <A, E, R>(
  body: (virtual: VirtualClock.VirtualClock) => Effect.Effect<A, E, R>
) =>
  Effect.suspend(() => {
    const virtual = VirtualClock.make()
    return Effect.withClock(body(virtual), virtual.clock)
  })

/** Runs an effect to its end. The clock advances with the turns of the event loop, which the machine may delay. */
export const inTime = <A, E, R>(
  virtual: VirtualClock.VirtualClock,
  effect: Effect.Effect<A, E, R>,
  step: Duration.DurationInput = 20
) =>
  Effect.gen(function*() {
    const running = yield* Effect.fork(effect)
    yield* until(
      "it ends",
      Effect.zipRight(virtual.advance(step), Effect.map(Fiber.poll(running), Option.isSome))
    )
    return yield* Fiber.join(running)
  })

export interface Listening {
  readonly port: number
  /** The number of connections so far, and of open ones. */
  readonly opened: () => number
  readonly open: () => number
  /** The number of connections so far, once the server has accepted all that clients have opened. */
  readonly accepted: Effect.Effect<number>
  /** Waits until no connection is open. */
  readonly closed: Effect.Effect<void>
}

const listenOn = (server: Server): Effect.Effect<Listening, never, Scope.Scope> =>
  Effect.map(listen(server), ({ open, port }) => {
    const ports: Array<number | undefined> = []
    server.on("connection", ({ remotePort }: Socket) => ports.push(remotePort))
    let own = 0
    // The server accepts connections in their order.
    const accepted = Effect.acquireUseRelease(
      Effect.sync(() => connect(port, "127.0.0.1").on("error", () => undefined)),
      (socket) =>
        Effect.map(
          until(
            "the connection is accepted",
            Effect.sync(() => ports.includes(socket.localPort))
          ),
          () => {
            own++
            return ports.length - own
          }
        ),
      (socket) => Effect.sync(() => socket.destroy())
    )
    const closed = until("no connection is open", Effect.sync(() => open() === 0))
    return { port, open, opened: () => ports.length - own, accepted, closed }
  })

/** A server that accepts connections, and sends nothing. */
export const silentServer = Effect.suspend(() =>
  listenOn(createServer((socket) => socket.resume()))
)

export interface Proxy extends Listening {
  /** Delays the responses on all connections until `release`. */
  readonly hold: Effect.Effect<void>
  readonly release: Effect.Effect<void>
  /** Discards all data on the connections that are open now, and keeps them open. */
  readonly lose: Effect.Effect<void>
}

/** Starts a proxy to a port on loopback. All connections close with the scope. */
export const proxyTo = (target: number): Effect.Effect<Proxy, never, Scope.Scope> =>
  Effect.suspend(() => {
    const passages = new Set<{ readonly far: Socket; isLost: boolean }>()
    let isHeld = false
    const flow = () => {
      for (const { far, isLost } of passages) {
        if (isHeld || isLost) far.pause()
        else far.resume()
      }
    }
    const server = createServer((near) => {
      const passage = { far: connect(target, "127.0.0.1"), isLost: false }
      passages.add(passage)
      near.on("data", (chunk) => passage.isLost || passage.far.write(chunk)).on(
        "close",
        () => {
          passages.delete(passage)
          passage.far.destroy()
        }
      )
      passage.far.on("data", (chunk) => near.write(chunk)).on("error", () => undefined)
        .on("close", () => near.destroy())
      flow()
    })
    const change = (change: () => void) =>
      Effect.sync(() => {
        change()
        flow()
      })
    return Effect.map(listenOn(server), (address) => ({
      ...address,
      hold: change(() => isHeld = true),
      release: change(() => isHeld = false),
      lose: change(() => passages.forEach((passage) => passage.isLost = true))
    }))
  })

/** An error becomes an error reply. */
export type Reply = string | number | null | Error | ReadonlyArray<Reply>

/** A server of Redis whose replies a test decides: a sentinel, a node of a cluster, or one that falls silent. */
export interface Played extends Listening {
  /** The commands so far, each with the number of its connection. */
  readonly commands: ReadonlyArray<
    { readonly words: ReadonlyArray<string>; readonly connection: number }
  >
  /** Waits until the server has this number of these commands. */
  readonly has: (word: string, count?: number) => Effect.Effect<void>
}

const encoded = (reply: Reply): string => {
  if (reply === null) return "_\r\n"
  if (typeof reply === "string") return `$${reply.length}\r\n${reply}\r\n`
  if (typeof reply === "number") return `:${reply}\r\n`
  if (reply instanceof Error) return `-${reply.message}\r\n`
  return `*${reply.length}\r\n${reply.map(encoded).join("")}`
}

/** Starts a server. It does not respond to a command without a reply, except to those with which a client starts. */
export const playedServer = (
  replyTo: (
    words: ReadonlyArray<string>,
    connection: number,
    close: () => void
  ) => Reply | undefined | Promise<Reply | undefined> = () => undefined
): Effect.Effect<Played, never, Scope.Scope> =>
  Effect.suspend(() => {
    const commands: Array<Played["commands"][number]> = []
    let count = 0
    const server = createServer((socket) => {
      const connection = ++count
      let words: Array<string> = []
      let missing = 0
      let rest = ""
      socket.setEncoding("latin1").on("data", (chunk) => {
        const lines = (rest + String(chunk)).split("\r\n")
        rest = lines.pop() ?? ""
        for (const line of lines) {
          // A command is `*2`, `$3`, `GET`, `$3`, `key`. No word of the tests starts with `*` or `$`.
          if (line.startsWith("*")) missing = Number(line.slice(1))
          else if (!line.startsWith("$")) words.push(line)
          if (words.length < missing) continue
          commands.push({ words, connection })
          const greeting = words[0] === "HELLO" || words[0] === "CLIENT" ? "OK" : undefined
          void Promise.resolve(replyTo(words, connection, () => socket.destroy())).then(
            (reply = greeting) => {
              if (reply !== undefined) socket.write(encoded(reply))
            }
          )
          words = []
        }
      })
    })
    const countOf = (word: string) => commands.filter(({ words }) => words[0] === word).length
    return Effect.map(listenOn(server), (address) => ({
      ...address,
      commands,
      has: (word, count = 1) =>
        until(`it has ${count} ${word}`, Effect.sync(() => countOf(word) === count))
    }))
  })
