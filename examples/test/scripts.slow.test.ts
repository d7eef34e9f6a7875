/** Scripts that share the token through Redis end if they call `dispose`, as docs/guides/without-effect.md says. */
import { spawn } from "node:child_process"
import { describe, it } from "@effect/vitest"
import { deepStrictEqual } from "@effect/vitest/utils"
import { bundle } from "@store-api/testing/childProcess"
import { freePort, startStore } from "@store-api/testing/loopback"
import { isLeftOut, redisServer } from "@store-api/testing/redisServers"
import { Effect } from "effect"

/** Runs the script, and kills it if it still runs `patience` after its work. */
const run = (patience: number, redis: string, end: string) =>
  Effect.gen(function*() {
    const file = yield* bundle(new URL("./child/script.ts", import.meta.url))
    const { url } = yield* startStore
    return yield* Effect.async<
      { readonly last: string | undefined; readonly hasExited: boolean }
    >(
      (resume) => {
        const child = spawn(process.execPath, [file, url, redis, end], {
          env: { ...process.env, NODE_OPTIONS: "" },
          stdio: ["ignore", "pipe", "ignore"]
        })
        let output = ""
        let limit: NodeJS.Timeout | undefined
        child.stdout.on("data", (chunk: Buffer) => {
          output += chunk.toString()
          limit ??= setTimeout(() => child.kill(), patience)
        })
        child.on("close", (code) => {
          clearTimeout(limit)
          const last = output.trim().split("\n").at(-1)
          resume(Effect.succeed({ last, hasExited: code !== null }))
        })
        return Effect.sync(() => child.kill())
      }
    )
  })

const patient = 20_000

describe.skipIf(isLeftOut)("a script with a store on Redis", () => {
  it.scopedLive("ends after dispose", () =>
    Effect.gen(function*() {
      const { url } = yield* redisServer()
      deepStrictEqual(yield* run(patient, url, "dispose"), {
        last: "Bearer",
        hasExited: true
      })
    }))

  it.scopedLive("ends after dispose if Redis is unreachable", () =>
    Effect.gen(function*() {
      const url = `redis://127.0.0.1:${yield* freePort}`
      deepStrictEqual(yield* run(patient, url, "dispose"), {
        last: "Bearer",
        hasExited: true
      })
    }))

  it.scopedLive("control: does not end without dispose", () =>
    Effect.gen(function*() {
      const { url } = yield* redisServer()
      deepStrictEqual(yield* run(3000, url, "leave"), { last: "Bearer", hasExited: false })
    }))
})
