import { assert, describe } from "@effect/vitest"
import { deepStrictEqual } from "@effect/vitest/utils"
import { AccessToken, AuthorizedHttpClient, TokenSource } from "@store-api/core"
import { NodeStoreAuth } from "@store-api/platform-node"
import { canMakeCertificates, selfSigned } from "@store-api/testing/certificates"
import { authorized, call, onThisMachine, startStore, startTlsStore } from "@store-api/testing/loopback"
import { test } from "@store-api/testing/test"
import { Cause, Config, ConfigProvider, DateTime, Effect, Exit, Layer, Redacted } from "effect"

onThisMachine()

describe("layerFromSource", () => {
  test.live("adds the tokens of a custom source", function*() {
    const { url } = yield* startStore
    const source = TokenSource.layer(() =>
      Effect.map(DateTime.now, (acquiredAt) =>
        new AccessToken.AccessToken({
          value: Redacted.make("a-custom-token"),
          acquiredAt,
          expiresAt: DateTime.add(acquiredAt, { minutes: 60 })
        }))
    )
    const live = Layer.provide(NodeStoreAuth.layerFromSource({ apiUrl: url }), source)
    deepStrictEqual(yield* Effect.provide(call(), live), { authorization: "Bearer a-custom-token" })
  })

  test.live.runIf(canMakeCertificates)("applies http", function*() {
    const identity = yield* selfSigned()
    const { url } = yield* startTlsStore(identity)
    const provider = TokenSource.layer(() => Effect.die("no token is needed"))
    const live = NodeStoreAuth.layerFromSource({ apiUrl: url, http: { ca: identity.cert } })
    const response = Effect.flatMap(
      AuthorizedHttpClient.AuthorizedHttpClient,
      (client) => client.get("/", { headers: { Authorization: "Basic custom" } })
    ).pipe(Effect.flatMap(({ json }) => json))
    deepStrictEqual(yield* Effect.provide(response, Layer.provide(live, provider)), {
      authorization: "Basic custom"
    })
  })
})

describe("layerConfig", () => {
  const variables = (entries: Record<string, string>) =>
    Layer.setConfigProvider(ConfigProvider.fromMap(new Map(Object.entries(entries))))

  test.live("reads the variables of the specification's options", function*() {
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

  test.live("accepts a config for each option, including those of http", function*() {
    const { url } = yield* startStore
    const options = {
      authUrl: Config.succeed(url),
      apiUrl: Config.succeed(url),
      clientId: Config.succeed("demo-client"),
      clientSecret: Config.redacted("SECRET"),
      http: { connections: Config.integer("CONNECTIONS") }
    }
    const outcome = (connections: string) =>
      Effect.exit(
        Effect.provide(
          call(),
          Layer.provide(
            NodeStoreAuth.layerConfig(options),
            variables({ SECRET: "an-invented-secret", CONNECTIONS: connections })
          )
        )
      )
    deepStrictEqual<unknown>(yield* outcome("2"), Exit.succeed(authorized))
    const refused = yield* outcome("-2")
    assert(Exit.isFailure(refused))
    assert.include(Cause.pretty(refused.cause), "The option connections must be")
  })
})
