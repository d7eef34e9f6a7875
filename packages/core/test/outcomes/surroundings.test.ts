/** The rotation of the client secret, an endpoint where no server listens, and a pooled socket that has closed. */
import { NodeHttpClient } from "@effect/platform-node"
import { assert, describe } from "@effect/vitest"
import { deepStrictEqual } from "@effect/vitest/utils"
import { AccessTokenProvider, ClientCredentials, StoreAuth } from "@store-api/core"
import { Emulator, Fault } from "@store-api/emulator"
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

/** The clients that pool sockets, and node:http with keep-alive. */
const pooling = [
  ...clients.filter(({ name }) => name !== "node:http").map(({ layer, name }) => ({
    name,
    layer: layer(Option.none())
  })),
  {
    name: "node:http with keep-alive",
    layer: Layer.provide(NodeHttpClient.layerWithoutAgent, NodeHttpClient.makeAgentLayer({ keepAlive: true }))
  }
]

describe.each(pooling)("a pooled socket that the server closed, $name", ({ layer }) => {
  test.live("causes one more attempt, and the caller gets a token", function*() {
    const emulator = yield* Emulator.make()
    // The first response leaves a socket in the pool. The second request fails on it. The third succeeds.
    yield* emulator.fail([Fault.status(503), Fault.stale()])
    const context = yield* Layer.build(Layer.provide(
      StoreAuth.layer({
        authUrl: emulator.url,
        apiUrl: emulator.url,
        clientId: Emulator.demoClient.clientId,
        clientSecret: Emulator.demoClient.clientSecret
      }),
      layer
    ))
    yield* Context.get(context, AccessTokenProvider.AccessTokenProvider).get
    const requests = yield* emulator.requests
    deepStrictEqual(requests.map(({ status }) => Option.getOrElse(status, () => "none")), [503, "none", 200])
    assert.strictEqual((yield* emulator.pendingFaults).length, 0)
  })
})
