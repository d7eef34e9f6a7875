import { assert } from "@effect/vitest"
import { deepStrictEqual } from "@effect/vitest/utils"
import { AccessToken, TokenSource } from "@store-api/core"
import { NodeStoreAuth } from "@store-api/platform-node"
import { canMakeCertificates, selfSigned } from "@store-api/testing/certificates"
import {
  authorized,
  call,
  onThisMachine,
  startStore,
  startTlsStore
} from "@store-api/testing/loopback"
import { test } from "@store-api/testing/test"
import { Cause, Config, ConfigProvider, DateTime, Effect, Exit, Layer, Redacted } from "effect"

onThisMachine()

test.live.runIf(canMakeCertificates)(
  "layerFromSource adds the tokens of a custom source, and applies http",
  function*() {
    const identity = yield* selfSigned()
    const { url } = yield* startTlsStore(identity)
    const source = TokenSource.layer(() =>
      Effect.map(DateTime.now, (acquiredAt) =>
        new AccessToken.AccessToken({
          value: Redacted.make("a-custom-token"),
          acquiredAt,
          expiresAt: DateTime.add(acquiredAt, { minutes: 60 })
        }))
    )
    const live = NodeStoreAuth.layerFromSource({ apiUrl: url, http: { ca: identity.cert } })
    const response = yield* Effect.provide(call(), Layer.provide(live, source))
    deepStrictEqual(response, { authorization: "Bearer a-custom-token" })
  }
)

const variables = (entries: Record<string, string>) =>
  Layer.setConfigProvider(ConfigProvider.fromMap(new Map(Object.entries(entries))))

test.live("layerConfig of NodeStoreAuth reads the variables of the specification's options", function*() {
  const { url } = yield* startStore
  const live = Layer.provide(
    NodeStoreAuth.layerConfig(),
    variables({
      STORE_API_AUTH_URL: url,
      STORE_API_URL: url,
      STORE_API_CLIENT_ID: "demo-client",
      STORE_API_CLIENT_SECRET: "an-invented-secret"
    })
  )
  deepStrictEqual(yield* Effect.provide(call(), live), authorized)
})

test.live("layerConfig of NodeStoreAuth accepts a config for each option, including those of http", function*() {
  const { url } = yield* startStore
  const options = {
    authUrl: Config.succeed(url),
    apiUrl: Config.succeed(url),
    clientId: Config.succeed("demo-client"),
    clientSecret: Config.redacted("SECRET"),
    http: { connections: Config.integer("CONNECTIONS") }
  }
  const outcome = (CONNECTIONS: string) =>
    Effect.exit(Effect.provide(call(), NodeStoreAuth.layerConfig(options))).pipe(
      Effect.provide(variables({ SECRET: "an-invented-secret", CONNECTIONS }))
    )
  deepStrictEqual<unknown>(yield* outcome("2"), Exit.succeed(authorized))
  const refused = yield* outcome("-2")
  assert(Exit.isFailure(refused))
  assert.include(Cause.pretty(refused.cause), "The option http.connections must be")
})
