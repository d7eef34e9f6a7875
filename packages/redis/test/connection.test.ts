/** Connections to one server and to several ones: when they are replaced, kept and closed. */
import { createServer } from "node:tls"
import { assert, describe } from "@effect/vitest"
import { deepStrictEqual } from "@effect/vitest/utils"
import type { TokenStore } from "@store-api/core"
import { RedisTokenStore } from "@store-api/redis"
import { canMakeCertificates, selfSigned } from "@store-api/testing/certificates"
import type { LiveSteps } from "@store-api/testing/effectMajor"
import { entryOf } from "@store-api/testing/entryOf"
import { listen } from "@store-api/testing/loopback"
import {
  inTime,
  onVirtualTime,
  type Played,
  playedServer,
  proxyTo,
  type Reply,
  silentServer,
  until
} from "@store-api/testing/network"
import { isLeftOut, redisServer } from "@store-api/testing/redisServers"
import { test } from "@store-api/testing/test"
import type { VirtualClock } from "@store-api/testing/virtualClock"
import {
  Deferred,
  type Duration,
  Effect,
  Either,
  Exit,
  Fiber,
  Layer,
  Option,
  Redacted,
  Scope,
  TestClock
} from "effect"
import { make, makeRetries, type Run } from "../src/internal/connection.js"

/** Declares a test whose clock only the test advances. */
const onVirtual = (title: string, steps: (virtual: VirtualClock) => LiveSteps) =>
  test.live(title, function*() {
    yield* onVirtualTime((virtual) => Effect.gen(() => steps(virtual)))
  })

const lastFailureOf = ({ lastFailure = Effect.succeedNone }: TokenStore.Service) => lastFailure

const isPending = <A, E>(fiber: Fiber.Fiber<A, E>) =>
  Effect.map(Fiber.poll(fiber), Option.isNone)

const proxiedRedis = Effect.flatMap(redisServer(), ({ port }) => proxyTo(port))

const storeAt = (port: number) =>
  RedisTokenStore.make({ url: Redacted.make(`redis://127.0.0.1:${port}`) })

describe.skipIf(isLeftOut)("a connection without responses", () => {
  onVirtual(
    "is replaced when a command is interrupted after a quarter of a second, not before",
    function*(virtual) {
      const proxy = yield* proxiedRedis
      const store = yield* storeAt(proxy.port)
      const interruptAfter = (time: Duration.DurationInput) =>
        Effect.gen(function*() {
          const command = yield* Effect.fork(store.get("key"))
          yield* virtual.advance(time)
          assert.isTrue(yield* isPending(command), "no response")
          yield* Fiber.interrupt(command)
        })
      yield* store.put("key", "entry", "1 hour")
      yield* proxy.lose
      for (let time = 0; time < 10; time++) {
        yield* interruptAfter(0)
        yield* interruptAfter("249 millis")
      }
      yield* interruptAfter("250 millis")
      yield* until("the store works", Effect.isSuccess(store.get("key")))
      deepStrictEqual([yield* entryOf(store, "key"), yield* proxy.accepted], [
        Option.some("entry"),
        2
      ])
    }
  )

  onVirtual(
    "is replaced once for all interrupted commands, even right after a response",
    function*(virtual) {
      const proxy = yield* proxiedRedis
      const store = yield* storeAt(proxy.port)
      yield* store.put("key", "entry", "1 hour")
      yield* proxy.lose
      const commands = yield* Effect.forEach(
        Array(3).keys(),
        () => Effect.fork(store.get("key"))
      )
      yield* virtual.advance("250 millis")
      yield* Fiber.interruptAll(commands)
      yield* until("the store works", Effect.isSuccess(store.get("key")))
      assert.strictEqual(yield* proxy.accepted, 2)
    }
  )

  onVirtual(
    "is kept if a response arrived since the command, which was only slow",
    function*(virtual) {
      const redis = yield* redisServer()
      const proxy = yield* proxyTo(redis.port)
      const store = yield* storeAt(proxy.port)
      yield* proxy.hold
      const earlier = yield* Effect.fork(store.put("key", "entry", "1 hour"))
      yield* until(
        "the entry is put",
        Effect.map(redis.command("GET", "key"), (entry) => entry === "entry")
      )
      yield* redis.pause
      yield* virtual.advance(1)
      const slow = yield* Effect.fork(store.get("key"))
      yield* virtual.advance("1 second")
      yield* proxy.release
      yield* Fiber.join(earlier)
      assert.isTrue(yield* isPending(slow), "no response")
      yield* Fiber.interrupt(slow)
      yield* redis.resume
      deepStrictEqual([yield* entryOf(store, "key"), yield* proxy.accepted], [
        Option.some("entry"),
        1
      ])
    }
  )

  onVirtual(
    "since its handshake is replaced by a command after ten seconds, and not before",
    function*(virtual) {
      const proxy = yield* proxiedRedis
      yield* proxy.hold
      // The ten seconds count from the creation of the client.
      yield* virtual.advance("1 hour")
      const making = yield* Effect.fork(storeAt(proxy.port))
      yield* until("the store connects", Effect.sync(() => proxy.opened() === 1))
      yield* virtual.advance("1 second")
      const store = yield* Fiber.join(making)
      yield* virtual.advance("9 seconds")
      deepStrictEqual([(yield* Effect.flip(store.get("key"))).reason, yield* proxy.accepted], [
        "no connection",
        1
      ])
      yield* proxy.lose
      yield* proxy.release
      yield* virtual.advance("1 millis")
      yield* until("the store works", Effect.isSuccess(store.get("key")))
      assert.strictEqual(yield* proxy.accepted, 2)
    }
  )
})

describe.skipIf(isLeftOut)("a store", () => {
  test.live("closing the scope closes the connection, even if Redis does not respond", function*() {
    const proxy = yield* proxiedRedis
    for (const fault of [Effect.void, proxy.hold]) {
      yield* Effect.scoped(Effect.gen(function*() {
        const store = yield* storeAt(proxy.port)
        yield* store.put("key", "entry", "1 hour")
        assert.strictEqual(proxy.open(), 1)
        yield* fault
      }))
      yield* proxy.closed
    }
  })

  onVirtual("fails when its scope has closed, and does not connect again", function*(virtual) {
    const proxy = yield* proxiedRedis
    const store = yield* Effect.scoped(storeAt(proxy.port))
    yield* virtual.advance("1 minute")
    assert.isTrue(Either.isLeft(yield* Effect.either(store.get("key"))))
    assert.strictEqual(yield* proxy.accepted, 1)
  })
})

describe.skipIf(isLeftOut)("a Redis that does not respond", () => {
  test.live("more than a thousand commands that wait for Redis fail at once with a reason", function*() {
    const redis = yield* redisServer()
    const store = yield* RedisTokenStore.make({ url: Redacted.make(redis.url) })
    yield* store.put("key", "entry", "1 hour")
    yield* redis.pause
    const waiting = yield* Effect.forEach(
      Array.from({ length: 1000 }),
      () => Effect.fork(store.get("key"))
    )
    // A turn of the event loop, so that all commands have started.
    yield* Effect.sleep(1)
    const further = yield* Effect.all(Effect.replicate(Effect.either(store.get("key")), 100))
    deepStrictEqual(
      new Set(
        further.map(Either.match({ onLeft: ({ reason }) => reason, onRight: () => "none" }))
      ),
      new Set(["Error"])
    )
    yield* redis.resume
    const entries = yield* Effect.forEach(waiting, Fiber.join)
    deepStrictEqual(
      entries.map(Option.map(({ entry }) => entry)),
      Array.from({ length: 1000 }, () => Option.some("entry"))
    )
    deepStrictEqual(yield* entryOf(store, "key"), Option.some("entry"))
  })
})

const urls = ["redis://127.0.0.1", "redis+cluster://127.0.0.1", "redis+sentinel://127.0.0.1"]
const urlAt = (url: string, port: number) =>
  Redacted.make(`${url}:${port}${url.startsWith("redis+sentinel") ? "/name" : ""}`)

test.each(urls)(
  "a server that does not respond does not keep a layer from being built, even if a test controls the clock: %s",
  function*(url) {
    const { port } = yield* silentServer
    yield* Layer.build(RedisTokenStore.layer({ url: urlAt(url, port) }))
  }
)

test("a server that does not respond does not end a build in an uninterruptible region early", function*() {
  const { opened, port } = yield* silentServer
  const built = yield* Deferred.make<TokenStore.Service>()
  const building = yield* RedisTokenStore.make({ url: urlAt("redis://127.0.0.1", port) })
    .pipe(
      Effect.flatMap((store) => Deferred.succeed(built, store)),
      Effect.uninterruptible,
      Effect.fork
    )
  yield* until("it connects", Effect.sync(() => opened() === 1))
  yield* Fiber.interrupt(building)
  assert.isTrue(yield* Deferred.isDone(built))
})

describe.runIf(canMakeCertificates)("several servers that no client can use", () => {
  // The port is that of a TLS server that Node does not trust. No server listens on port 1.
  test.live.each<readonly [url: string, reason: string]>([
    ["rediss+cluster://127.0.0.1:PORT", "DEPTH_ZERO_SELF_SIGNED_CERT"],
    ["rediss+sentinel://127.0.0.1:PORT/name", "DEPTH_ZERO_SELF_SIGNED_CERT"],
    ["redis+cluster://127.0.0.1:1", "ECONNREFUSED"],
    ["redis+sentinel://127.0.0.1:1/name", "ECONNREFUSED"]
  ])("the last failure is known from the first attempt on: %s, %s", function*([url, reason]) {
    const { port } = yield* listen(createServer(yield* selfSigned()))
    const reasons = new Set<string>()
    yield* onVirtualTime((virtual) =>
      Effect.gen(function*() {
        const store = yield* RedisTokenStore.make({
          url: Redacted.make(url.replace("PORT", String(port)))
        })
        // Now the first attempt replaces the client, which has no error yet.
        yield* virtual.advance("2 seconds")
        const started = virtual.monotonic()
        const getting = yield* Effect.forkScoped(store.get("key"))
        yield* Effect.yieldNow()
        const isOver = Effect.gen(function*() {
          reasons.add(Option.getOrElse(yield* lastFailureOf(store), () => "none"))
          yield* virtual.advance("10 millis")
          return virtual.monotonic() - started > 1000
        })
        yield* until("a second has passed", isOver)
        assert.isTrue(yield* isPending(getting))
      })
    )
    deepStrictEqual(reasons, new Set([reason]))
  })
})

describe.runIf(canMakeCertificates)("a connection over TLS", () => {
  test.live.each(["rediss", "rediss+cluster", "rediss+sentinel"])(
    "a connection over TLS by %s has the server's name as SNI unless it is an address",
    function*(scheme) {
      const names: Array<string> = []
      const SNICallback = (name: string, done: (error: null) => void) => {
        names.push(name)
        done(null)
      }
      const { opened, port } = yield* listen(
        createServer({ ...yield* selfSigned(), SNICallback })
      )
      const path = scheme.endsWith("sentinel") ? "/tokens" : ""
      const open = (host: string) =>
        Effect.scoped(
          RedisTokenStore.make({ url: Redacted.make(`${scheme}://${host}:${port}${path}`) })
        )
      yield* open("127.0.0.1")
      yield* until("the server has seen a connection", Effect.sync(() => opened() > 0))
      deepStrictEqual(names, [])
      yield* open("localhost")
      deepStrictEqual(new Set(names), new Set(["localhost"]))
    }
  )
})

test.each([
  "ClientClosedError",
  "ERR",
  "NOAUTH",
  "NOPERM",
  "OOM",
  "WRONGPASS",
  "WRONGTYPE",
  "unknown name"
])(
  "with %s is not tried again",
  function*(reason) {
    const failing = yield* Effect.fork(Effect.exit(makeRetries().retry(Effect.fail(reason))))
    yield* TestClock.adjust(0)
    deepStrictEqual(yield* Fiber.poll(failing), Option.some(Exit.succeed(Exit.fail(reason))))
  }
)

onVirtual(
  "with another reason is tried again about every 200 ms, for 30 seconds",
  function*(virtual) {
    let attempts = 0
    const { retry } = makeRetries()
    const trying = yield* Effect.fork(
      Effect.flip(retry(Effect.suspend(() => Effect.fail(`${++attempts}`))))
    )
    yield* virtual.advance("29700 millis")
    assert.isTrue(yield* isPending(trying))
    assert.isAbove(attempts, 120)
    assert.isBelow(attempts, 190)
    yield* virtual.advance("600 millis")
    assert.strictEqual(yield* Fiber.join(trying), `${attempts}`)
  }
)

onVirtual(
  "is the last failure until an attempt succeeds, if its reason is known",
  function*(virtual) {
    const outcomes = [
      Effect.fail("READONLY"),
      Effect.fail("no connection"),
      Effect.fail("TRYAGAIN"),
      Effect.void
    ]
    const { lastFailure, retry } = makeRetries()
    const seen: Array<string> = []
    const note = Effect.map(
      lastFailure,
      (last) => seen.push(Option.getOrElse(last, () => "none"))
    )
    yield* Effect.fork(retry(Effect.suspend(() => outcomes.shift() ?? Effect.void)))
    for (let attempt = 1; attempt <= 4; attempt++) {
      yield* virtual.advance(attempt === 1 ? 0 : 240)
      yield* note
    }
    deepStrictEqual(seen, ["READONLY", "READONLY", "TRYAGAIN", "none"])
  }
)

/** A primary that responds to `GET` with this reply, and with others to the first commands. */
const primary = (reply: Reply, ...first: ReadonlyArray<Reply | undefined>) => {
  const replies = [...first]
  return playedServer(([word]) =>
    word === "GET" ? (replies.length === 0 ? reply : replies.shift()) : undefined
  )
}

/** A sentinel that names these servers one after the other, and the last one from then on. */
const naming = (...servers: ReadonlyArray<Played>) => {
  const rest = [...servers]
  return playedServer(([word]) =>
    word === "SENTINEL"
      ? ["127.0.0.1", String((rest.length > 1 ? rest.shift() : rest[0])?.port)]
      : undefined
  )
}

const get = (run: Run) => run((client) => client.get("key"))

/** Connects through this sentinel, which the URL lists this number of times. */
const through = (sentinel: Played, times = 1) => {
  const hosts = Array.from({ length: times }, () => `127.0.0.1:${sentinel.port}`)
  return Effect.map(
    make(Redacted.make(`redis+sentinel://${hosts.join()}/name`)),
    ({ run }) => run
  )
}

/** A sentinel that names these servers, and the connection through it. */
const connectedThrough = (...servers: ReadonlyArray<Played>) =>
  Effect.gen(function*() {
    const sentinel = yield* naming(...servers)
    return { sentinel, run: yield* through(sentinel) }
  })

/** The numbers of connections that these servers have accepted. */
const accepted = (...servers: ReadonlyArray<Played>) =>
  Effect.all(servers.map(({ accepted }) => accepted))

onVirtual(
  "is replaced when its server fails, once for all commands, and these are tried again",
  function*(virtual) {
    const [first, second] = yield* Effect.all([
      primary(new Error("READONLY You can't write")),
      primary("entry")
    ])
    const { run, sentinel } = yield* connectedThrough(first, second)
    deepStrictEqual(
      yield* inTime(virtual, Effect.all([get(run), get(run)], { concurrency: 2 })),
      ["entry", "entry"]
    )
    yield* first.closed
    deepStrictEqual(yield* accepted(first, second, sentinel), [1, 1, 2])
  }
)

onVirtual(
  "is kept as it gets older, and after failures that another server would repeat",
  function*(virtual) {
    const only = yield* primary("entry", new Error("WRONGTYPE any"), new Error("OOM any"))
    const { run, sentinel } = yield* connectedThrough(only)
    deepStrictEqual([yield* Effect.flip(get(run)), yield* Effect.flip(get(run))], [
      "WRONGTYPE",
      "OOM"
    ])
    yield* virtual.advance("1 minute")
    assert.strictEqual(yield* get(run), "entry")
    deepStrictEqual(yield* accepted(only, sentinel), [1, 1])
  }
)

onVirtual(
  "is replaced when a command gets no response for half a second",
  function*(virtual) {
    const [silent, second] = yield* Effect.all([playedServer(), primary("entry")])
    const { run, sentinel } = yield* connectedThrough(silent, second)
    const getting = yield* Effect.fork(get(run))
    yield* silent.has("GET")
    yield* virtual.advance(499)
    assert.strictEqual(yield* sentinel.accepted, 1)
    yield* virtual.advance(1)
    deepStrictEqual(
      [yield* sentinel.accepted, yield* inTime(virtual, Fiber.join(getting))],
      [2, "entry"]
    )
    yield* silent.closed
  }
)

onVirtual("fails after 30 seconds without a response", function*(virtual) {
  const silent = yield* playedServer()
  const { run } = yield* connectedThrough(silent)
  const getting = yield* Effect.fork(Effect.flip(get(run)))
  yield* silent.has("GET")
  yield* virtual.advance(1000)
  yield* inTime(virtual, silent.has("GET", 2))
  assert.isTrue(yield* isPending(getting))
  virtual.freeze(30_000)
  yield* virtual.advance(0)
  assert.strictEqual(yield* Fiber.join(getting), "no response in time")
})

onVirtual(
  "is replaced more than a second after it was opened if its server does not let it in",
  function*(virtual) {
    const mute = yield* playedServer(() => new Promise(() => undefined))
    const second = yield* primary("entry")
    const sentinel = yield* naming(mute, second)
    const making = yield* Effect.fork(through(sentinel))
    yield* until("it connects", Effect.sync(() => mute.commands.length > 0))
    yield* virtual.advance(999)
    assert.isTrue(yield* isPending(making))
    yield* virtual.advance(1)
    const run = yield* Fiber.join(making)
    yield* virtual.advance(1)
    assert.strictEqual(yield* inTime(virtual, get(run)), "entry")
    yield* mute.closed
    deepStrictEqual(yield* accepted(mute, sentinel), [1, 2])
  }
)

onVirtual(
  "is opened again after the sentinels have not responded, and not before",
  function*(virtual) {
    const silent = yield* playedServer()
    const making = yield* Effect.fork(through(silent))
    yield* silent.has("SENTINEL")
    yield* virtual.advance(500)
    const run = yield* Fiber.join(making)
    const getting = yield* Effect.fork(get(run))
    yield* virtual.advance("10 seconds")
    // One attempt in 500 to 740 milliseconds.
    const asked = yield* silent.accepted
    assert.isAbove(asked, 12)
    assert.isBelow(asked, 23)
    yield* Fiber.interrupt(getting)
  }
)

onVirtual(
  "completes a command that is uninterruptible and interrupted on the next server",
  function*(virtual) {
    const [silent, second] = yield* Effect.all([playedServer(), primary("entry")])
    const { run } = yield* connectedThrough(silent, second)
    const got = yield* Deferred.make<string | null>()
    const getting = yield* get(run).pipe(
      Effect.flatMap((entry) => Deferred.succeed(got, entry)),
      Effect.uninterruptible,
      Effect.fork
    )
    yield* silent.has("GET")
    yield* Fiber.interruptFork(getting)
    yield* inTime(virtual, Fiber.await(getting))
    assert.isTrue(yield* Deferred.isDone(got))
  }
)

onVirtual("works again after its server has refused the password", function*(virtual) {
  let isRight = false
  const only = yield* playedServer(([word]) =>
    word === "GET"
      ? "entry"
      : word === "HELLO" && !isRight
      ? new Error("WRONGPASS any")
      : undefined
  )
  const { run } = yield* connectedThrough(only)
  assert.strictEqual(yield* Effect.flip(get(run)), "WRONGPASS")
  isRight = true
  yield* virtual.advance(1000)
  assert.strictEqual(yield* Effect.flip(get(run)), "WRONGPASS")
  yield* virtual.advance(1)
  assert.strictEqual(yield* inTime(virtual, get(run)), "entry")
})

/** Opens a connection through a sentinel that is asked three times. `respond` sends its first response. */
const opening = (virtual: VirtualClock, server: Played) =>
  Effect.gen(function*() {
    let asked = 0
    const address = ["127.0.0.1", String(server.port)]
    const response = yield* Deferred.make<Reply>()
    const sentinel = yield* playedServer(([word]) => {
      if (word !== "SENTINEL") return undefined
      asked++
      return asked > 3
        ? address
        : asked < 3
        ? new Promise(() => undefined)
        : Effect.runPromise(Deferred.await(response))
    })
    const making = yield* Effect.fork(through(sentinel, 3))
    for (const count of [1, 2, 3]) {
      yield* sentinel.has("SENTINEL", count)
      if (count < 3) yield* virtual.advance(500)
    }
    const respond = Effect.zipRight(Deferred.succeed(response, address), sentinel.closed)
    return { run: yield* Fiber.join(making), respond }
  })

onVirtual(
  "is not opened by a response that arrives after it has been replaced",
  function*(virtual) {
    const only = yield* primary("entry")
    const { respond, run } = yield* opening(virtual, only)
    yield* virtual.advance(1)
    deepStrictEqual([yield* inTime(virtual, get(run)), yield* only.accepted], ["entry", 1])
    yield* respond
    assert.strictEqual(yield* only.accepted, 1)
  }
)

onVirtual(
  "is not opened by a response that arrives after the scope has closed",
  function*(virtual) {
    const only = yield* primary("entry")
    const scope = yield* Scope.make()
    const { respond, run } = yield* Scope.extend(opening(virtual, only), scope)
    yield* Scope.close(scope, Exit.void)
    assert.strictEqual(yield* Effect.flip(get(run)), "ClientClosedError")
    yield* respond
    assert.strictEqual(yield* only.accepted, 0)
  }
)

onVirtual("closes with its scope, and then also ends commands", function*(virtual) {
  const silent = yield* playedServer()
  const sentinel = yield* naming(silent)
  const scope = yield* Scope.make()
  const run = yield* Scope.extend(through(sentinel), scope)
  const getting = yield* Effect.fork(Effect.flip(get(run)))
  yield* silent.has("GET")
  yield* Scope.close(scope, Exit.void)
  yield* virtual.advance(240)
  assert.strictEqual(yield* Fiber.join(getting), "ClientClosedError")
  yield* silent.closed
  deepStrictEqual(yield* accepted(silent, sentinel), [1, 1])
})
