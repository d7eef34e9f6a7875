/** Tests the rotation of the client secret while the application runs, and an endpoint where no server listens. */
import { assert, describe } from "@effect/vitest"
import { deepStrictEqual } from "@effect/vitest/utils"
import { AccessTokenProvider, ClientCredentials, StoreAuth } from "@store-api/core"
import { Emulator } from "@store-api/emulator"
import { Context, Effect, Layer, Option, Redacted, Ref } from "effect"
import * as CaptureServer from "../support/captureServer.js"
import { clients } from "../support/clients.js"
import { test } from "../support/test.js"
import { socketsLeft } from "./observation.js"

const clientId = "invented-client"
const [before, after] = [Redacted.make("an-invented-secret"), Redacted.make("another-invented-secret")]
const client = (clientSecret: Redacted.Redacted) => ({ clientId, clientSecret })

const secrets = (emulator: Emulator.Service) =>
  Effect.map(
    emulator.requests,
    (requests) => requests.map(({ body }) => new URLSearchParams(Redacted.value(body)).get("client_secret"))
  )

describe.concurrent.each(clients)("secret rotation and refused connections, $name", ({ layer }) => {
  const provider = (url: string, credentials: StoreAuth.CredentialsOptions["credentials"]) =>
    Layer.build(
      Layer.provide(StoreAuth.layer({ authUrl: url, apiUrl: url, credentials }), layer(Option.none()))
    ).pipe(Effect.map(Context.get(AccessTokenProvider.AccessTokenProvider)))

  test.live("after the secret was rotated, the next acquisition uses the new one", function*() {
    const emulator = yield* Emulator.make({ clients: [client(before), client(after)] })
    const secret = yield* Ref.make(before)
    yield* Effect.scoped(Effect.gen(function*() {
      const { get, refresh } = yield* provider(
        emulator.url,
        Effect.flatMap(Ref.get(secret), (secret) => ClientCredentials.make(client(secret)))
      )
      const first = yield* get
      yield* Ref.set(secret, after)
      assert.strictEqual(yield* get, first, "the cached token stays valid")
      assert.notStrictEqual(yield* refresh, first)
    }))
    deepStrictEqual(yield* secrets(emulator), [before, after].map(Redacted.value))
    assert.strictEqual(yield* socketsLeft(emulator), 0)
  })

  test.live("when the old secret is refused and the new one is available, the same acquisition succeeds", function*() {
    const emulator = yield* Emulator.make({ clients: [client(after)] })
    const reads = yield* Ref.make(0)
    yield* Effect.scoped(Effect.gen(function*() {
      const { get } = yield* provider(
        emulator.url,
        Effect.flatMap(
          Ref.getAndUpdate(reads, (n) => n + 1),
          (n) => ClientCredentials.make(client(n === 0 ? before : after))
        )
      )
      yield* get
    }))
    deepStrictEqual(yield* secrets(emulator), [before, after].map(Redacted.value))
    assert.strictEqual(yield* socketsLeft(emulator), 0)
  })

  test.live("when the old secret is refused and there is no new one, get fails with InvalidClient after one request", function*() {
    const emulator = yield* Emulator.make({ clients: [client(after)] })
    const error = yield* Effect.scoped(
      Effect.flatMap(provider(emulator.url, ClientCredentials.make(client(before))), ({ get }) => Effect.flip(get))
    )
    assert(error._tag === "TokenRefusedError")
    assert.strictEqual(error.reason, "InvalidClient")
    assert.lengthOf(yield* emulator.requests, 1)
  })

  test.live("when no server listens, get retries within the deadline and fails with ECONNREFUSED", function*() {
    const error = yield* Effect.scoped(
      Effect.flatMap(
        provider(CaptureServer.nothing, ClientCredentials.make(client(before))),
        ({ get }) => Effect.flip(get)
      )
    )
    assert(error._tag === "TokenRequestError")
    assert.strictEqual(error.reason, "Transport")
    deepStrictEqual(error.code, Option.some("ECONNREFUSED"))
    assert.isAtLeast(error.attempts, 2)
  })
})
