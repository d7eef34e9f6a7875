/** A connection when another server may take over, with servers that the tests play. */
import { connect } from "node:net"
import { assert, describe, it } from "@effect/vitest"
import { deepStrictEqual } from "@effect/vitest/utils"
import { Deferred, Effect, Exit, Fiber, Option, Redacted, Scope, TestClock } from "effect"
import type { LiveSteps } from "../../core/test/support/effectLine.js"
import { test } from "../../core/test/support/test.js"
import type { VirtualClock } from "../../core/test/support/virtualClock.js"
import { make, retrying, type Run } from "../src/internal/connection.js"
import { onVirtualTime, until } from "./support/fleet.js"
import { type Played, playedServer, type Reply } from "./support/playedServer.js"

describe("a command that fails", () => {
  it.effect.each(
    ["ClientClosedError", "ERR", "NOAUTH", "NOPERM", "OOM", "WRONGPASS", "WRONGTYPE", "unknown name"]
  )("with %s is not tried again", (reason) =>
    Effect.gen(function*() {
      const failing = yield* Effect.fork(Effect.exit(retrying(Effect.fail(reason))))
      yield* TestClock.adjust(0)
      deepStrictEqual(yield* Fiber.poll(failing), Option.some(Exit.succeed(Exit.fail(reason))))
    }))

  it.effect("with another reason is tried again about every 200 ms, for 30 seconds", () =>
    onVirtualTime((virtual) =>
      Effect.gen(function*() {
        let attempts = 0
        const trying = yield* Effect.fork(Effect.flip(retrying(Effect.suspend(() => Effect.fail(`${++attempts}`)))))
        yield* virtual.advance("29700 millis")
        assert.isTrue(Option.isNone(yield* Fiber.poll(trying)))
        assert.isAbove(attempts, 120)
        assert.isBelow(attempts, 190)
        yield* virtual.advance("600 millis")
        assert.strictEqual(yield* Fiber.join(trying), `${attempts}`)
      })
    ))
})

/** A primary that responds to `GET` with this reply, and with others to the first commands. */
const primary = (reply: Reply, ...first: ReadonlyArray<Reply | undefined>) => {
  const replies = [...first]
  return playedServer(([word]) => word === "GET" ? (replies.length === 0 ? reply : replies.shift()) : undefined)
}

/** A sentinel that names these servers one after the other, and the last one from then on. */
const naming = (...servers: ReadonlyArray<Played>) => {
  const rest = [...servers]
  return playedServer(([word]) =>
    word === "SENTINEL" ? ["127.0.0.1", String((rest.length > 1 ? rest.shift() : rest[0])?.port)] : undefined
  )
}

const get = (run: Run) => run((client) => client.get("key"))

/** Connects through this sentinel, which the URL lists this number of times. */
const through = (sentinel: Played, times = 1) => {
  const hosts = Array.from({ length: times }, () => `127.0.0.1:${sentinel.port}`)
  return make(Redacted.make(`redis+sentinel://${hosts.join()}/name`))
}

/** The number of connections to a server, once it has accepted all that clients have opened. */
const connections = (played: Played) =>
  Effect.gen(function*() {
    const own = () => played.commands.filter(({ words }) => words[0] === "PING").length
    const before = own()
    // The server accepts connections in their order.
    const socket = yield* Effect.acquireRelease(
      Effect.sync(() => connect(played.port, "127.0.0.1")),
      (socket) => Effect.sync(() => socket.destroy())
    )
    socket.write("*1\r\n$4\r\nPING\r\n")
    yield* until("the connection is accepted", Effect.sync(() => own() > before))
    return played.opened() - own()
  }).pipe(Effect.scoped)

/** Advances the clock until the effect ends. */
const inTime = <A, E>(virtual: VirtualClock, effect: Effect.Effect<A, E>) =>
  Effect.gen(function*() {
    const running = yield* Effect.fork(effect)
    yield* until("it ends", Effect.zipRight(virtual.advance(20), Effect.map(Fiber.poll(running), Option.isSome)))
    return yield* Fiber.join(running)
  })

/** Declares a test whose clock only the test advances. */
const onVirtual = (title: string, steps: (virtual: VirtualClock) => LiveSteps) =>
  test.live(title, function*() {
    yield* onVirtualTime((virtual) => Effect.gen(() => steps(virtual)))
  })

describe("a connection through sentinels", () => {
  onVirtual("is replaced when its server fails, once for all commands, and these are tried again", function*(virtual) {
    const [first, second] = yield* Effect.all([primary(new Error("READONLY You can't write")), primary("entry")])
    const sentinel = yield* naming(first, second)
    const run = yield* through(sentinel)
    deepStrictEqual(yield* inTime(virtual, Effect.all([get(run), get(run)], { concurrency: 2 })), [
      "entry",
      "entry"
    ])
    yield* until("the first is closed", Effect.sync(() => first.open() === 0))
    deepStrictEqual([yield* connections(first), yield* connections(second), yield* connections(sentinel)], [
      ...[1, 1, 2]
    ])
  })

  onVirtual(
    "is kept as it gets older, and when a command fails for a reason that another server would give too",
    function*(virtual) {
      const only = yield* primary("entry", new Error("WRONGTYPE any"), new Error("OOM any"))
      const sentinel = yield* naming(only)
      const run = yield* through(sentinel)
      assert.strictEqual(yield* Effect.flip(get(run)), "WRONGTYPE")
      assert.strictEqual(yield* Effect.flip(get(run)), "OOM")
      yield* virtual.advance("1 minute")
      assert.strictEqual(yield* get(run), "entry")
      deepStrictEqual([yield* connections(only), yield* connections(sentinel)], [1, 1])
    }
  )

  onVirtual("is replaced when a command gets no response for a second", function*(virtual) {
    const [silent, second] = yield* Effect.all([playedServer(() => undefined), primary("entry")])
    const sentinel = yield* naming(silent, second)
    const run = yield* through(sentinel)
    const getting = yield* Effect.fork(get(run))
    yield* until("it is sent", Effect.sync(() => silent.commands.some(({ words }) => words[0] === "GET")))
    yield* virtual.advance(999)
    assert.strictEqual(yield* connections(sentinel), 1)
    yield* virtual.advance(1)
    assert.strictEqual(yield* connections(sentinel), 2)
    assert.strictEqual(yield* inTime(virtual, Fiber.join(getting)), "entry")
    yield* until("the first is closed", Effect.sync(() => silent.open() === 0))
  })

  onVirtual("fails after 30 seconds without a response", function*(virtual) {
    const silent = yield* playedServer(() => undefined)
    const sentinel = yield* naming(silent)
    const run = yield* through(sentinel)
    const getting = yield* Effect.fork(Effect.flip(get(run)))
    for (const count of [1, 2]) {
      const isSent = Effect.sync(() => silent.commands.filter(({ words }) => words[0] === "GET").length === count)
      yield* until("it is sent", Effect.zipRight(virtual.advance(20), isSent))
      if (count === 1) yield* virtual.advance(1000)
    }
    assert.isTrue(Option.isNone(yield* Fiber.poll(getting)))
    virtual.freeze(30_000)
    yield* virtual.advance(0)
    assert.strictEqual(yield* Fiber.join(getting), "no response in time")
  })

  onVirtual("is replaced more than a second after it was opened if its server does not let it in", function*(virtual) {
    const mute = yield* playedServer(() => new Promise(() => undefined))
    const second = yield* primary("entry")
    const sentinel = yield* naming(mute, second)
    const making = yield* Effect.fork(through(sentinel))
    yield* until("it connects", Effect.sync(() => mute.commands.length > 0))
    yield* virtual.advance(999)
    assert.isTrue(Option.isNone(yield* Fiber.poll(making)))
    yield* virtual.advance(1)
    const run = yield* Fiber.join(making)
    yield* virtual.advance(1)
    assert.strictEqual(yield* inTime(virtual, get(run)), "entry")
    yield* until("the first is closed", Effect.sync(() => mute.open() === 0))
    deepStrictEqual([yield* connections(mute), yield* connections(sentinel)], [1, 2])
  })

  onVirtual("is opened again after the sentinels have not responded, and not before", function*(virtual) {
    const silent = yield* playedServer(() => undefined)
    const making = yield* Effect.fork(through(silent))
    yield* until("it is asked", Effect.sync(() => silent.commands.some(({ words }) => words[0] === "SENTINEL")))
    yield* virtual.advance(500)
    const run = yield* Fiber.join(making)
    const getting = yield* Effect.fork(get(run))
    yield* virtual.advance("10 seconds")
    // One attempt in 500 to 740 milliseconds.
    const asked = yield* connections(silent)
    assert.isAbove(asked, 12)
    assert.isBelow(asked, 23)
    yield* Fiber.interrupt(getting)
  })

  onVirtual(
    "completes a command in an uninterruptible region, whose fiber is interrupted, on the next server",
    function*(virtual) {
      const [silent, second] = yield* Effect.all([playedServer(() => undefined), primary("entry")])
      const sentinel = yield* naming(silent, second)
      const run = yield* through(sentinel)
      const got = yield* Deferred.make<string | null>()
      const getting = yield* get(run).pipe(
        Effect.flatMap((entry) => Deferred.succeed(got, entry)),
        Effect.uninterruptible,
        Effect.fork
      )
      yield* until("it is sent", Effect.sync(() => silent.commands.some(({ words }) => words[0] === "GET")))
      yield* Fiber.interruptFork(getting)
      yield* inTime(virtual, Fiber.await(getting))
      assert.isTrue(yield* Deferred.isDone(got))
    }
  )

  onVirtual("works again after its server has refused the password", function*(virtual) {
    let isRight = false
    const only = yield* playedServer(([word]) =>
      word === "GET" ? "entry" : word === "HELLO" && !isRight ? new Error("WRONGPASS any") : undefined
    )
    const sentinel = yield* naming(only)
    const run = yield* through(sentinel)
    assert.strictEqual(yield* Effect.flip(get(run)), "WRONGPASS")
    isRight = true
    yield* virtual.advance(1000)
    assert.strictEqual(yield* Effect.flip(get(run)), "WRONGPASS")
    yield* virtual.advance(1)
    assert.strictEqual(yield* inTime(virtual, get(run)), "entry")
  })

  /** A sentinel of which each third response, and each after it, waits until it is asked for. */
  const slow = (server: Played) => {
    let asked = 0
    let respond: () => void = () => undefined
    return Effect.map(
      playedServer(([word]) => {
        if (word !== "SENTINEL") return undefined
        asked++
        const address = ["127.0.0.1", String(server.port)]
        if (asked > 3) return address
        return asked < 3 ? new Promise(() => undefined) : new Promise((resolve) => {
          respond = () => resolve(address)
        })
      }),
      (played) => ({ played, asked: () => asked, respond: () => respond() })
    )
  }

  /** Opens a connection with such a sentinel. Its third response is then awaited. */
  const opening = (virtual: VirtualClock, { asked, played }: Effect.Effect.Success<ReturnType<typeof slow>>) =>
    Effect.gen(function*() {
      const making = yield* Effect.fork(through(played, 3))
      for (const count of [1, 2, 3]) {
        yield* until(`it is asked ${count} times`, Effect.sync(() => asked() === count))
        if (count < 3) yield* virtual.advance(500)
      }
      return yield* Fiber.join(making)
    })

  onVirtual("is not opened by a response that arrives after it has been replaced", function*(virtual) {
    const only = yield* primary("entry")
    const sentinel = yield* slow(only)
    const run = yield* opening(virtual, sentinel)
    yield* virtual.advance(1)
    assert.strictEqual(yield* inTime(virtual, get(run)), "entry")
    assert.strictEqual(yield* connections(only), 1)
    sentinel.respond()
    yield* until("the sentinels are done", Effect.sync(() => sentinel.played.open() === 0))
    assert.strictEqual(yield* connections(only), 1)
  })

  onVirtual("is not opened by a response that arrives after the scope has closed", function*(virtual) {
    const only = yield* primary("entry")
    const sentinel = yield* slow(only)
    const scope = yield* Scope.make()
    const run = yield* Scope.extend(opening(virtual, sentinel), scope)
    yield* Scope.close(scope, Exit.void)
    assert.strictEqual(yield* Effect.flip(get(run)), "ClientClosedError")
    sentinel.respond()
    yield* until("the sentinels are done", Effect.sync(() => sentinel.played.open() === 0))
    assert.strictEqual(yield* connections(only), 0)
  })

  onVirtual("closes with its scope, and then also ends commands", function*(virtual) {
    const silent = yield* playedServer(() => undefined)
    const sentinel = yield* naming(silent)
    const scope = yield* Scope.make()
    const run = yield* Scope.extend(through(sentinel), scope)
    const getting = yield* Effect.fork(Effect.flip(get(run)))
    yield* until("it is sent", Effect.sync(() => silent.commands.some(({ words }) => words[0] === "GET")))
    yield* Scope.close(scope, Exit.void)
    yield* virtual.advance(240)
    assert.strictEqual(yield* Fiber.join(getting), "ClientClosedError")
    yield* until("it is closed", Effect.sync(() => silent.open() === 0))
    deepStrictEqual([yield* connections(silent), yield* connections(sentinel)], [1, 1])
  })
})
