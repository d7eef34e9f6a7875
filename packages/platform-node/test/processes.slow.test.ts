/** Processes that share a folder, and the end of a process. */
import { spawn } from "node:child_process"
import { existsSync, writeFileSync } from "node:fs"
import { createServer } from "node:http"
import { join } from "node:path"
import { assert, describe } from "@effect/vitest"
import { deepStrictEqual } from "@effect/vitest/utils"
import { TokenStore } from "@store-api/core"
import { FileTokenStore } from "@store-api/platform-node"
import { Deferred, Effect, Fiber, Option } from "effect"
import { test } from "../../core/test/support/test.js"
import type { Order } from "./child/storeWorker.js"
import { canMakeCertificates, filesOf, selfSigned } from "./support/certificates.js"
import { bundle, type ChildProcess, start } from "./support/childProcess.js"
import { newFolder, stillWorks } from "./support/tokenFolder.js"
import { hanging, listen, shared, silent, startStore, startTlsStore, store } from "./utils.js"

const limit = 60_000

/** Uses a new store in the folder. */
const withStore = <A, E>(folder: string, use: (store: TokenStore.Service) => Effect.Effect<A, E>) =>
  Effect.provide(Effect.flatMap(TokenStore.TokenStore, use), FileTokenStore.layer({ folder }))

/** Sends an order to all workers at once, and returns their results. */
const askAll = (workers: ReadonlyArray<ChildProcess>, order: Order) =>
  Effect.map(
    Effect.forEach(workers, ({ ask }) => Effect.orDie(ask(order)), { concurrency: "unbounded" }),
    (results) => results.map(Number)
  )

const sum = (results: ReadonlyArray<number>): number => results.reduce((sum, n) => sum + n, 0)

/** Counts the token requests of each client. It does not respond to the first request of `client-silent`. */
const tokenEndpoint = Effect.gen(function*() {
  const requests = new Map<string, number>()
  const heldBack = yield* Deferred.make<void>()
  const { url } = yield* listen(createServer((request, response) => {
    let body = ""
    request.setEncoding("utf8").on("data", (text: string) => body += text).on("end", () => {
      const clientId = new URLSearchParams(body).get("client_id") ?? ""
      const count = (requests.get(clientId) ?? 0) + 1
      requests.set(clientId, count)
      if (clientId === "client-silent" && count === 1) Deferred.unsafeDone(heldBack, Effect.void)
      // So long that every process finds no token when it starts.
      else setTimeout(() => store(request, response), 30)
    })
  }))
  return { url, requests: (clientId: string) => requests.get(clientId) ?? 0, heldBack: Deferred.await(heldBack) }
})

describe("FileTokenStore between processes", () => {
  const program = shared(bundle(new URL("./child/storeWorker.ts", import.meta.url)))
  const startMany = (count: number) =>
    Effect.flatMap(program, (file) => Effect.all(Effect.replicate(start(file), count)))
  const workers = shared(startMany(5))

  test.live("only one of several workers removes an entry", function*() {
    const [all, folder] = [yield* workers, yield* newFolder]
    const keys = Array.from({ length: 40 }, (_, n) => `key ${n}`)
    yield* withStore(folder, (store) => Effect.forEach(keys, (key) => store.put(key, "entry", "1 hour")))
    const removed = yield* askAll(all, { folder, name: "remove", keys, entry: "entry" })
    assert.strictEqual(sum(removed), keys.length)
    deepStrictEqual(yield* askAll(all, { folder, name: "remove", keys, entry: "entry" }), removed.map(() => 0))
  }, limit)

  test.live("while several workers put, each read returns a whole entry", function*() {
    const [all, folder] = [yield* workers, yield* newFolder]
    const broken = yield* askAll(all, { folder, name: "putAndGet", key: "key", times: 40 })
    deepStrictEqual(broken, all.map(() => 0))
  }, limit)

  test.live("only one of several workers gets a lease, and they hold it one after the other", function*() {
    const [all, folder] = [yield* workers, yield* newFolder]
    const got = yield* askAll(all, { folder, name: "lease", key: "once", millis: 60_000 })
    assert.strictEqual(sum(got), 1)
    const file = join(folder, "..", "at work")
    const together = yield* askAll(all, { folder, name: "workAlone", key: "key", file, times: 10 })
    deepStrictEqual(together, all.map(() => 0))
    assert.isFalse(existsSync(file))
  }, limit)

  test.live("ten processes at once send one token request; if the first is killed, at most two more", function*() {
    const [folder, workers, endpoint] = yield* Effect.all([newFolder, startMany(10), tokenEndpoint])
    const acquire = (clientId: string, lease: number) =>
      ({ folder, name: "acquire", url: endpoint.url, clientId, lease }) as const
    for (let round = 1; round <= 10; round++) {
      deepStrictEqual(yield* askAll(workers, acquire(`client-${round}`, 30_000)), workers.map(() => 1))
      assert.strictEqual(endpoint.requests(`client-${round}`), 1, `round ${round}`)
    }
    const [first, ...others] = workers
    assert(first !== undefined)
    yield* Effect.fork(Effect.sandbox(first.ask(acquire("client-silent", 1000))))
    yield* endpoint.heldBack
    yield* first.kill
    deepStrictEqual(yield* askAll(others, acquire("client-silent", 1000)), others.map(() => 1))
    const more = endpoint.requests("client-silent") - 1
    assert.isTrue(more === 1 || more === 2, `${more} more`)
  }, limit)

  test.live(
    "a lease of a killed process ends when it expires, not before; then one or two processes get it",
    function*() {
      const folder = yield* newFolder
      const [holder, ...others] = yield* startMany(4)
      assert(holder !== undefined)
      const [brief, long] = [1500, 3_600_000]
      const taking = (key: string, millis: number) => ({ folder, name: "lease", key, millis }) as const
      assert.strictEqual(yield* holder.ask(taking("long", long)), 1)
      const taken = Date.now()
      assert.strictEqual(yield* holder.ask(taking("brief", brief)), 1)
      yield* holder.kill
      let got = 0
      while (got === 0) got = sum(yield* askAll(others, taking("brief", long)))
      assert.isAtLeast(Date.now() - taken, brief)
      assert.isAtMost(got, 2)
      // A lease ends when it expires, not when its holder is killed.
      assert.strictEqual(sum(yield* askAll(others, taking("long", long))), 0)
    },
    limit
  )

  test.live("no process loses an entry or a lease while other processes remove expired files", function*() {
    const folder = yield* newFolder
    const [remover, another, ...users] = yield* workers
    assert(remover !== undefined && another !== undefined)
    yield* withStore(folder, (store) => store.put("key", "entry", "1 hour"))
    const end = join(folder, "..", "end")
    const removing = yield* Effect.fork(askAll([remover, another], { folder, name: "removeExpired", until: end }))
    const lost = yield* Effect.forEach(
      users,
      ({ ask }, n) => ask({ folder, name: "comeAndGo", key: `key of ${n}`, times: 100 }),
      { concurrency: "unbounded" }
    )
    deepStrictEqual(lost, users.map(() => 0))
    const file = join(folder, "..", "at work")
    const order = { folder, name: "workAlone", key: "of all", file, times: 10 } as const
    deepStrictEqual(yield* askAll(users, order), users.map(() => 0))
    // This entry is as old as the others, and valid until the end.
    deepStrictEqual(yield* withStore(folder, (store) => store.get("key")), Option.some("entry"))
    writeFileSync(end, "")
    for (const times of yield* Fiber.join(removing)) assert.isAbove(times, 0)
  }, limit)

  test.live("the store still works after processes are killed at any time", function*() {
    const folder = yield* newFolder
    // Counts entries instead of time, because machines differ in speed.
    for (const entries of [1, 6, 20]) {
      const all = yield* startMany(2)
      yield* Effect.fork(Effect.sandbox(askAll(all, { folder, name: "putForEver", key: "key" })))
      const seen = new Set<string>()
      yield* withStore(folder, (store) =>
        Effect.whileLoop({
          while: () => seen.size < entries,
          body: () => store.get("key"),
          step: Option.map((entry) => seen.add(entry))
        }))
      yield* Effect.forEach(all, ({ kill }) => kill)
      yield* withStore(folder, (store) => stillWorks(store, (entry) => /^(\S+) x{32768} \1$/.test(entry)))
    }
  }, limit)
})

interface Outcome {
  readonly output: string
  readonly hasExited: boolean
}

describe("a process that used the layer", () => {
  const program = shared(bundle(new URL("./child/request.ts", import.meta.url)))

  /** Runs the program. A process that still runs 3 seconds after its work is killed. */
  const run = (parameters: ReadonlyArray<string>, variables: Readonly<Record<string, string>> = {}) =>
    Effect.flatMap(program, (file) =>
      Effect.async<Outcome>((resume) => {
        const child = spawn(process.execPath, ["--no-warnings", file, ...parameters], {
          env: { ...process.env, NODE_OPTIONS: "", ...variables },
          stdio: ["ignore", "pipe", "inherit"]
        })
        let output = ""
        let limitOfExit: NodeJS.Timeout | undefined
        child.stdout.on("data", (chunk: Buffer) => {
          output += chunk.toString()
          limitOfExit ??= setTimeout(() => child.kill(), 3000)
        })
        child.on("close", (code) => {
          clearTimeout(limitOfExit)
          resume(Effect.succeed({ output: output.trim(), hasExited: code !== null }))
        })
        return Effect.sync(() => child.kill())
      }))

  test.live("exits although the server keeps the connection open", function*() {
    const { hasExited, output } = yield* run([(yield* startStore).url])
    assert.include(output, "authorization")
    assert.isTrue(hasExited)
  }, limit)

  test.live("exits after an interrupted request, and after an interrupted handshake", function*() {
    const urls = [(yield* hanging).url, (yield* silent).url]
    const outcomes = yield* Effect.forEach(urls, (url) => run([url, "", "interrupted"]), { concurrency: 2 })
    deepStrictEqual(outcomes, urls.map(() => ({ output: "interrupted", hasExited: true })))
  }, limit)

  test.live("control: a scope that is never closed, and undici alone, keep the process running", function*() {
    const [leaked, undici] = yield* Effect.all([
      run([(yield* hanging).url, "", "leaked"]),
      run([(yield* silent).url, "undici", "interrupted"])
    ], { concurrency: 2 })
    deepStrictEqual(leaked, { output: "leaked", hasExited: false })
    deepStrictEqual(undici, { output: "interrupted", hasExited: false })
  }, limit)

  test.live.runIf(canMakeCertificates)("adds ca to NODE_EXTRA_CA_CERTS", function*() {
    const [trusted, other] = [yield* selfSigned(), yield* selfSigned("localhost", 2)]
    const [one, another] = [(yield* filesOf(trusted)).cert, (yield* filesOf(other)).cert]
    const server = yield* startTlsStore(trusted)
    const outcomes = yield* Effect.forEach(
      [{ TEST_CA: another, NODE_EXTRA_CA_CERTS: one }, { TEST_CA: one, NODE_EXTRA_CA_CERTS: another }, {
        TEST_CA: another
      }],
      (variables) => Effect.map(run([server.url], variables), ({ output }) => output),
      { concurrency: 2 }
    )
    const response = `{"authorization":"none"}`
    deepStrictEqual(outcomes, [response, response, "DEPTH_ZERO_SELF_SIGNED_CERT"])
  })
})
