import { spawn } from "node:child_process"
import { assert, describe, it } from "@effect/vitest"
import { deepStrictEqual } from "@effect/vitest/utils"
import { Effect } from "effect"
import { test } from "../../core/test/support/test.js"
import { canMakeCertificates, filesOf, selfSigned } from "./support/certificates.js"
import { bundle } from "./support/childProcess.js"
import { shared } from "./support/shared.js"
import { hanging, silent, startStore, startTlsStore } from "./utils.js"

const limit = 60_000

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

  test.live(
    "control: a scope that is never closed, and undici alone, keep the process running",
    function*() {
      const [leaked, undici] = yield* Effect.all([
        run([(yield* hanging).url, "", "leaked"]),
        run([(yield* silent).url, "undici", "interrupted"])
      ], { concurrency: 2 })
      deepStrictEqual(leaked, { output: "leaked", hasExited: false })
      deepStrictEqual(undici, { output: "interrupted", hasExited: false })
    },
    limit
  )

  it.scopedLive.runIf(canMakeCertificates)("adds ca to NODE_EXTRA_CA_CERTS", () =>
    Effect.gen(function*() {
      const [trusted, other] = [yield* selfSigned(), yield* selfSigned("localhost", 2)]
      const [one, another] = [(yield* filesOf(trusted)).cert, (yield* filesOf(other)).cert]
      const server = yield* startTlsStore(trusted)
      const outcomes = yield* Effect.forEach([
        { TEST_CA: another, NODE_EXTRA_CA_CERTS: one },
        { TEST_CA: one, NODE_EXTRA_CA_CERTS: another },
        { TEST_CA: another }
      ], (variables) =>
        Effect.map(run([server.url], variables), ({ output }) => output), { concurrency: 2 })
      const response = `{"authorization":"none"}`
      deepStrictEqual(outcomes, [response, response, "DEPTH_ZERO_SELF_SIGNED_CERT"])
    }), limit)
})
