import { writeFileSync } from "node:fs"
import { join } from "node:path"
import { assert, describe, it } from "@effect/vitest"
import { deepStrictEqual } from "@effect/vitest/utils"
import { Emulator, Fault } from "@store-api/emulator"
import { Effect, Redacted } from "effect"
import { run, start, type User, userOf, withEnv } from "./support/cli.js"
import { endless, serving, tooMuch } from "./support/listening.js"

const started = Effect.gen(function*() {
  const emulator = yield* Emulator.make()
  return { emulator, user: yield* userOf(emulator) }
})

const echo = (text: string) => JSON.parse(text) as Record<string, unknown>

const apiCalls = (emulator: Emulator.Service) =>
  Effect.map(emulator.requests, (requests) => requests.filter(({ kind }) => kind === "api"))

const tokenRequests = (emulator: Emulator.Service) =>
  Effect.map(emulator.requests, (requests) => requests.filter(({ kind }) => kind === "token").length)

const at = (user: User, apiUrl: string): User => withEnv(user, { STORE_API_URL: apiUrl })

describe("store-api call", () => {
  it.scopedLive("prints the body as it came; --include what stands before it", () =>
    Effect.gen(function*() {
      const { emulator, user } = yield* started
      const plain = yield* run(user, ["call", "get", "/orders?page=2"])
      deepStrictEqual([plain.code, plain.stderr], [0, ""])
      deepStrictEqual(echo(plain.stdout), { method: "GET", path: "/orders", query: "page=2", clientId: "demo-client" })
      const whole = yield* run(user, ["call", "GET", "/orders", "--include"])
      const [head = "", body = ""] = whole.stdout.split("\n\n")
      assert.match(head, /^HTTP\/1\.1 200 OK\n/)
      assert.include(head, "\ncontent-type: application/json")
      assert.strictEqual(echo(body)["path"], "/orders")
      assert.strictEqual(yield* tokenRequests(emulator), 1)
    }))

  it.scopedLive("sends a body from the line, from a file, from standard input, with headers, wherever the flags stand", () =>
    Effect.gen(function*() {
      const { emulator, user } = yield* started
      writeFileSync(join(user.cwd, "order.json"), "{\"from\":\"file\"}")
      const bodies = [
        yield* run(user, [
          "call",
          "POST",
          "/orders",
          "--data",
          "{\"from\":\"line\"}",
          "-H",
          "X-One: 1",
          "--header",
          "X-Two: 2"
        ]),
        yield* run(user, ["call", "--data-file=order.json", "PUT", "/orders/7"]),
        yield* run(user, ["call", "POST", "--data", "-", "/orders"], { stdin: "{\"from\":\"stdin\"}" }),
        yield* run(user, ["call", "POST", "/orders", "-d", "a,b", "-H", "Content-Type: text/csv"])
      ]
      deepStrictEqual(bodies.map(({ stdout }) => echo(stdout)["body"]), [
        "{\"from\":\"line\"}",
        "{\"from\":\"file\"}",
        "{\"from\":\"stdin\"}",
        "a,b"
      ])
      const calls = yield* apiCalls(emulator)
      deepStrictEqual(calls.map(({ headers }) => headers["content-type"]), [
        ...Array.from({ length: 3 }, () => "application/json"),
        "text/csv"
      ])
      deepStrictEqual([calls[0]?.headers["x-one"], calls[0]?.headers["x-two"]], ["1", "2"])
      assert.strictEqual(calls[1]?.headers["content-length"], "15")
    }))

  it.scopedLive("streams both ways: each part arrives while the next is not there yet", () =>
    Effect.gen(function*() {
      const { user } = yield* started
      const parts: Array<string> = []
      const url = yield* serving((request, response) => {
        request.on("data", (chunk: Buffer) => {
          parts.push(chunk.toString())
          response.write(`got ${chunk.toString()}`)
        })
        request.on("end", () => response.end("end"))
      })
      const { end, shows, stdin } = yield* start(at(user, url), ["call", "POST", "/", "--data", "-"])
      for (const part of ["one", "two", "three"]) {
        stdin.write(part)
        // The answer to a part: without it the next is never sent, and the test ends by its time.
        assert.isTrue(yield* shows(`got ${part}`))
      }
      stdin.end()
      deepStrictEqual(yield* end, { code: 0, stderr: "", stdout: "got onegot twogot threeend" })
      deepStrictEqual(parts, ["one", "two", "three"])
    }))

  it.scopedLive("a reader that is slow slows the server down", () =>
    Effect.gen(function*() {
      const { user } = yield* started
      const { beyond, stalled, url } = yield* endless
      const { stdout } = yield* start(at(user, url), ["call", "GET", "/"])
      stdout.cork()
      assert.isBelow(yield* stalled, tooMuch)
      // It was the reader: once it reads, that much comes.
      stdout.uncork()
      yield* beyond(tooMuch)
    }))

  it.scopedLive("a token that was revoked is replaced, in the store too", () =>
    Effect.gen(function*() {
      const { emulator, user } = yield* started
      yield* run(user, ["call", "GET", "/orders"])
      yield* emulator.revoke()
      const after = yield* run(user, ["call", "POST", "/orders", "--data", "{}", "--fail"])
      deepStrictEqual([after.code, after.stderr], [0, ""])
      yield* run(user, ["call", "GET", "/orders", "--fail"])
      assert.strictEqual(yield* tokenRequests(emulator), 2)
      // What was streamed is gone: the 401 is the caller's, and the next run has another token.
      yield* emulator.revoke()
      const streamed = run(user, ["call", "POST", "/orders", "--data", "-", "--fail"], { stdin: "{}" })
      assert.strictEqual((yield* streamed).code, 7)
      assert.strictEqual(yield* tokenRequests(emulator), 2)
      assert.strictEqual((yield* streamed).code, 0)
      assert.strictEqual(yield* tokenRequests(emulator), 3)
    }))

  it.scopedLive("ends with 7 for a status of 400 or more, if it is to fail; the body is printed in any case", () =>
    Effect.gen(function*() {
      const { emulator, user } = yield* started
      const no = Fault.status(404, { on: "api", body: "{\"message\":\"no such order\"}" })
      yield* emulator.fail([no, no])
      const plain = yield* run(user, ["call", "GET", "/orders/7"])
      deepStrictEqual([plain.code, plain.stdout, plain.stderr], [0, "{\"message\":\"no such order\"}", ""])
      const failing = yield* run(user, ["call", "GET", "/orders/7", "-f"])
      deepStrictEqual([failing.code, failing.stdout], [7, plain.stdout])
      assert.strictEqual(failing.stderr, "store-api: The API answered 404 Not Found.\n")
    }))

  it.scopedLive("ends with 6 when there is no answer, or only half of one", () =>
    Effect.gen(function*() {
      const { emulator, user } = yield* started
      const refused = yield* run(at(user, "http://127.0.0.1:9"), ["call", "GET", "/orders"])
      deepStrictEqual([refused.code, refused.stdout], [6, ""])
      assert.match(refused.stderr, /^store-api: The API could not be reached \(ECONNREFUSED\): .*\n$/)
      yield* emulator.fail(Fault.reset("body", { on: "api" }))
      const half = yield* run(user, ["call", "GET", "/orders"])
      assert.strictEqual(half.code, 6)
      assert.match(half.stderr, /^store-api: The answer of the API broke off.*\n$/)
    }))

  it.scopedLive("sends the token to no other origin, and nothing that is no request", () =>
    Effect.gen(function*() {
      const { emulator, user } = yield* started
      const faults: ReadonlyArray<readonly [RegExp, ReadonlyArray<string>]> = [
        [/may not go to http:\/\/127\.0\.0\.1:9,/, ["GET", "http://127.0.0.1:9/orders"]],
        [/The method must be one of/, ["FETCH", "/orders"]],
        [/A --header must be a name/, ["GET", "/orders", "--header", "canary"]],
        [/A --header must be a name/, ["GET", "/orders", "--header", "A: canary\r\nB: 1"]],
        [/--data and --data-file/, ["POST", "/orders", "--data", "1", "--data-file", "2"]],
        [/Standard input cannot hold both/, ["POST", "/orders", "--data", "-", "--secret-stdin"]]
      ]
      for (const [sentence, args] of faults) {
        const { code, stderr, stdout } = yield* run(user, ["call", ...args])
        deepStrictEqual([code, stdout], [2, ""])
        assert.match(stderr, sentence)
        assert.notInclude(stderr, "canary")
      }
      deepStrictEqual(yield* apiCalls(emulator), [])
      const missing = yield* run(user, ["call", "POST", "/orders", "--data-file", "nothing"])
      deepStrictEqual([missing.code, missing.stderr], [
        3,
        "store-api: The file of --data-file, nothing, cannot be read.\n"
      ])
    }))

  it.scopedLive("the token goes in the header, and stays out of what is printed", () =>
    Effect.gen(function*() {
      const { emulator, user } = yield* started
      // The user's search for private values looks at each run above; this is what it would have found.
      const echoed = yield* serving((request, response) => response.end(request.headers.authorization))
      const caught = yield* Effect.exit(run(at(user, echoed), ["call", "GET", "/"]))
      assert.strictEqual(caught._tag, "Failure")
      const [token] = yield* emulator.tokens
      const asked = yield* run(at(user, echoed), ["call", "GET", "/"], { shows: true })
      assert.strictEqual(asked.stdout, `Bearer ${token === undefined ? "" : Redacted.value(token.value)}`)
    }))
})
