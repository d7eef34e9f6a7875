import { assert } from "@effect/vitest"
import { deepStrictEqual } from "@effect/vitest/utils"
import { SharedTokenSource, TokenSource, TokenStore } from "@store-api/core"
import { fullToken } from "@store-api/testing/sharing"
import { test } from "@store-api/testing/test"
import { Effect, Logger, Redacted, Ref } from "effect"

/** A store, and processes of a client without a secret that share through it. */
const processes = Effect.gen(function*() {
  const requests = yield* Ref.make(0)
  const store = yield* TokenStore.makeMemory
  const source = TokenSource.make(
    () =>
      Effect.flatMap(Ref.updateAndGet(requests, (n) => n + 1), (n) => fullToken(`token-${n}`)),
    Effect.succeed({
      name: ["https://auth.shop.example", "invented-client"],
      secret: Redacted.make(""),
      maxLifetime: "1 hour"
    })
  )
  const acquire = (options: SharedTokenSource.Options) =>
    Effect.gen(function*() {
      const shared = yield* SharedTokenSource.make(options).pipe(
        Effect.provideService(TokenSource.TokenSource, source),
        Effect.provideService(TokenStore.TokenStore, store)
      )
      const token = yield* shared.acquire(TokenSource.missing)
      return Redacted.value(token.value)
    })
  return { acquire, requests: Ref.get(requests) }
})

test("processes with the same sealing key share the token of a client without a secret", function*() {
  const { acquire } = yield* processes
  const sealingKey = Redacted.make("an invented sealing key")
  deepStrictEqual([yield* acquire({ sealingKey }), yield* acquire({ sealingKey })], [
    "token-1",
    "token-1"
  ])
})

test("processes with different sealing keys do not share a token", function*() {
  const { acquire } = yield* processes
  deepStrictEqual([
    yield* acquire({ sealingKey: Redacted.make("an invented sealing key") }),
    yield* acquire({ sealingKey: Redacted.make("another invented sealing key") })
  ], ["token-1", "token-2"])
})

test("without a sealing key, processes of a client without a secret do not share", function*() {
  const { acquire } = yield* processes
  deepStrictEqual([yield* acquire({}), yield* acquire({})], ["token-1", "token-2"])
})

test("without a sealing key, a warning names the option", function*() {
  const { acquire } = yield* processes
  const lines: Array<string> = []
  const logger = Logger.map(Logger.logfmtLogger, (line) => void lines.push(line))
  yield* Effect.provide(acquire({}), Logger.replace(Logger.defaultLogger, logger))
  assert.match(lines.join("\n"), /shared\.sealingKey is missing/)
})
