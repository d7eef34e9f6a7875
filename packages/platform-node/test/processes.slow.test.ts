/** Processes that share a folder, and the end of a process. */
import { spawn } from "node:child_process"
import { createServer } from "node:http"
import { assert, describe } from "@effect/vitest"
import { deepStrictEqual } from "@effect/vitest/utils"
import { canMakeCertificates, filesOf, selfSigned } from "@store-api/testing/certificates"
import { bundle, type ChildProcess, start } from "@store-api/testing/childProcess"
import {
  hanging,
  listen,
  shared,
  silent,
  startStore,
  startTlsStore
} from "@store-api/testing/loopback"
import { test } from "@store-api/testing/test"
import { Deferred, Effect } from "effect"
import type { Order } from "./child/storeWorker.js"
import { newFolder } from "./support/tokenFolder.js"

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
      if (clientId === "client-silent" && count === 1) {
        Deferred.unsafeDone(heldBack, Effect.void)
      } // So long that every process finds no token when it starts.
      else {setTimeout(() =>
          response.end(JSON.stringify({ access_token: `token-${count}` })), 30)}
    })
  }))
  return {
    url,
    requests: (clientId: string) => requests.get(clientId) ?? 0,
    heldBack: Deferred.await(heldBack)
  }
})

describe("FileTokenStore between processes", () => {
  const running = Effect.gen(function*() {
    const file = yield* bundle(new URL("./child/storeWorker.ts", import.meta.url))
    const [first, ...others] = yield* Effect.all(Effect.replicate(start(file), 10))
    assert(first !== undefined)
    const [folder, endpoint] = yield* Effect.all([newFolder, tokenEndpoint])
    /** All workers get a token at once. Returns the number of distinct tokens. */
    const tokens = (
      workers: ReadonlyArray<ChildProcess>,
      order: Omit<Order, "folder" | "url">
    ) =>
      Effect.forEach(
        workers,
        ({ ask }) => Effect.orDie(ask({ folder, url: endpoint.url, ...order })),
        {
          concurrency: "unbounded"
        }
      ).pipe(Effect.map((tokens) => new Set(tokens).size))
    return { endpoint, first, others, tokens }
  })

  test.live("ten processes that need a token at once send one token request", function*() {
    const { endpoint, first, others, tokens } = yield* running
    for (let round = 1; round <= 10; round++) {
      const clientId = `client-${round}`
      assert.strictEqual(yield* tokens([first, ...others], { clientId, lease: 30_000 }), 1)
      assert.strictEqual(endpoint.requests(clientId), 1, `round ${round}`)
    }
  })

  test.live("a process that is killed while it gets a token for ten costs two more requests at most", function*() {
    const { endpoint, first, others, tokens } = yield* running
    const clientId = "client-silent"
    yield* Effect.fork(Effect.sandbox(tokens([first], { clientId, lease: 1000 })))
    yield* endpoint.heldBack
    yield* first.kill
    yield* tokens(others, { clientId, lease: 30_000 })
    const more = endpoint.requests(clientId) - 1
    assert.isTrue(more === 1 || more === 2, `${more} more`)
  })
})

interface Outcome {
  readonly output: string
  readonly hasExited: boolean
}

describe("a process that used the layer", () => {
  const program = shared(bundle(new URL("./child/request.ts", import.meta.url)))

  /** Runs the program. A process that still runs 8 seconds after its work is killed. */
  const run = (
    parameters: ReadonlyArray<string>,
    variables: Readonly<Record<string, string>> = {}
  ) =>
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
          limitOfExit ??= setTimeout(() => child.kill(), 8000)
        })
        child.on("close", (code) => {
          clearTimeout(limitOfExit)
          resume(Effect.succeed({ output: output.trim(), hasExited: code !== null }))
        })
        return Effect.sync(() => child.kill())
      }))

  test.live("a process exits although the server keeps the connection open", function*() {
    const { hasExited, output } = yield* run([(yield* startStore).url])
    assert.include(output, "authorization")
    assert.isTrue(hasExited)
  })

  test.live.each([["request", hanging], ["handshake", silent]] as const)(
    "a process exits after an interrupted %s",
    function*([, server]) {
      deepStrictEqual(yield* run([(yield* server).url, "interrupted"]), {
        output: "interrupted",
        hasExited: true
      })
    }
  )

  test.live.runIf(canMakeCertificates)(
    "a process trusts ca in addition to NODE_EXTRA_CA_CERTS",
    function*() {
      const [trusted, other] = [yield* selfSigned(), yield* selfSigned("localhost", 2)]
      const [one, another] = [(yield* filesOf(trusted)).cert, (yield* filesOf(other)).cert]
      const server = yield* startTlsStore(trusted)
      const outcomes = yield* Effect.forEach(
        [{ TEST_CA: another, NODE_EXTRA_CA_CERTS: one }, {
          TEST_CA: one,
          NODE_EXTRA_CA_CERTS: another
        }, {
          TEST_CA: another
        }],
        (variables) => Effect.map(run([server.url], variables), ({ output }) => output),
        { concurrency: 2 }
      )
      const response = `{"authorization":"none"}`
      deepStrictEqual(outcomes, [response, response, "DEPTH_ZERO_SELF_SIGNED_CERT"])
    }
  )
})
