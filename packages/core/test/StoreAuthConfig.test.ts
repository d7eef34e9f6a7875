import { assert, describe, it } from "@effect/vitest"
import { deepStrictEqual } from "@effect/vitest/utils"
import { AccessTokenError, AccessTokenProvider, StoreAuth } from "@store-api/core"
import { ConfigProvider, Effect, Layer, Redacted } from "effect"
import * as FakeClient from "./support/fakeClient.js"
import { renderings, shows } from "./support/renderings.js"
import { test } from "./support/test.js"
import { clientId, clientSecret } from "./support/wire.js"

const withEnvironment = (entries: Readonly<Record<string, string>>) =>
  Effect.provide(Layer.setConfigProvider(ConfigProvider.fromMap(new Map(Object.entries(entries)))))

const complete = {
  STORE_API_AUTH_URL: "https://auth.shop.example",
  STORE_API_URL: "https://api.shop.example",
  STORE_API_CLIENT_ID: clientId,
  STORE_API_CLIENT_SECRET: clientSecret
}

const names = Object.keys(complete)

/** Builds the layer from an environment and checks that no request is sent. */
const build = (
  entries: Readonly<Record<string, string>>,
  layer: ReturnType<typeof StoreAuth.layerConfig> = StoreAuth.layerConfig()
) => {
  const client = FakeClient.make(FakeClient.token)
  return Layer.build(layer).pipe(
    Effect.scoped,
    Effect.provide(client.layer),
    withEnvironment(entries),
    Effect.tap(() => Effect.sync(() => assert.strictEqual(client.times.length, 0)))
  )
}

/** The error of a layer that cannot be built from an environment. */
const buildError = (entries: Readonly<Record<string, string>>) => Effect.flip(build(entries))

describe("StoreAuth.config", () => {
  it.effect("reads the four variables", () =>
    Effect.gen(function*() {
      const options = yield* StoreAuth.config()
      deepStrictEqual(
        { ...options, clientSecret: Redacted.value(options.clientSecret) },
        { authUrl: "https://auth.shop.example", apiUrl: "https://api.shop.example", clientId, clientSecret }
      )
      assert.isFalse(shows(options, clientSecret))
    }).pipe(withEnvironment(complete)))

  it.effect("reads the variables with another prefix", () =>
    Effect.gen(function*() {
      const options = yield* StoreAuth.config("OTHER_STORE")
      assert.strictEqual(options.authUrl, "https://other-auth.shop.example")
      assert.strictEqual(options.clientId, "other-client")
    }).pipe(withEnvironment({
      ...complete,
      OTHER_STORE_AUTH_URL: "https://other-auth.shop.example",
      OTHER_STORE_URL: "https://other-api.shop.example",
      OTHER_STORE_CLIENT_ID: "other-client",
      OTHER_STORE_CLIENT_SECRET: "other-secret"
    })))

  test("names all missing variables at once", function*() {
    const all = yield* Effect.flip(Effect.provide(StoreAuth.config(), Layer.empty).pipe(withEnvironment({})))
    for (const name of names) assert.include(renderings(all), name)
    const other = yield* Effect.flip(Effect.provide(StoreAuth.config("OTHER"), Layer.empty).pipe(withEnvironment({})))
    for (const name of names) assert.include(renderings(other), name.replace("STORE_API", "OTHER"))
  })

  test("names only the missing variables, and shows no value of the others", function*() {
    const { STORE_API_CLIENT_SECRET, STORE_API_URL, ...missing } = complete
    const error = yield* buildError({ STORE_API_CLIENT_SECRET, STORE_API_URL })
    for (const name of Object.keys(missing)) assert.include(renderings(error), name)
    for (const name of ["STORE_API_CLIENT_SECRET", "STORE_API_URL"]) assert.notInclude(renderings(error), name)
    for (const value of [STORE_API_CLIENT_SECRET, STORE_API_URL]) assert.isFalse(shows(error, value))
  })

  it.effect("builds the layer from a complete environment without a request", () => build(complete))

  test("acquires the first token with the credentials of the environment", function*() {
    const client = FakeClient.make(FakeClient.token)
    yield* Effect.flatMap(AccessTokenProvider.AccessTokenProvider, ({ get }) => get).pipe(
      Effect.provide(StoreAuth.layerConfig()),
      Effect.provide(client.layer),
      withEnvironment(complete)
    )
    deepStrictEqual(client.bodies, [
      `grant_type=client_credentials&client_id=${clientId}&client_secret=${clientSecret}`
    ])
    deepStrictEqual(
      client.requests.map(({ url }) => url),
      ["https://auth.shop.example/v1/oauth/accesstoken"]
    )
  })

  test.each(
    [
      ["STORE_API_AUTH_URL", { _tag: "ConfigurationError", option: "authUrl" }],
      ["STORE_API_URL", { _tag: "ConfigurationError", option: "apiUrl" }],
      ["STORE_API_CLIENT_ID", { _tag: "CredentialsError", field: "clientId" }],
      ["STORE_API_CLIENT_SECRET", { _tag: "CredentialsError", field: "clientSecret" }]
    ] as const
  )("fails when %s is empty, not as if it were missing", function*([name, expected]) {
    for (const value of name.includes("CLIENT") ? [""] : ["", "  "]) {
      const error = yield* buildError({ ...complete, [name]: value })
      assert.deepInclude({ ...error }, expected)
      assert.match("reason" in error ? error.reason : "", /^is empty/)
    }
  })

  test.each(
    [
      ["STORE_API_AUTH_URL", "canary"],
      ["STORE_API_AUTH_URL", "https://canary@auth.shop.example"],
      ["STORE_API_AUTH_URL", "https://auth.shop.example/?canary"],
      ["STORE_API_AUTH_URL", "https://auth.shop.example/#canary"],
      ["STORE_API_AUTH_URL", "http://canary.shop.example"],
      ["STORE_API_URL", "ftp://canary.shop.example"],
      ["STORE_API_URL", "https://:canary@api.shop.example"],
      ["STORE_API_CLIENT_ID", "canary&"],
      ["STORE_API_CLIENT_SECRET", "canary\n"],
      ["STORE_API_CLIENT_SECRET", "canary\u00e9"]
    ] as const
  )("fails when the layer is built with an invalid %s, and shows no value: %s", function*([name, value]) {
    const error = yield* buildError({ ...complete, [name]: value })
    assert.isTrue(
      error instanceof AccessTokenError.ConfigurationError || error instanceof AccessTokenError.CredentialsError
    )
    for (const text of ["canary", clientSecret, clientId]) assert.isFalse(shows(error, text))
  })
})
