import { assert, describe, it } from "@effect/vitest"
import { deepStrictEqual } from "@effect/vitest/utils"
import { AccessTokenError, ClientCredentials, TokenRequest } from "@store-api/core"
import { unreadable } from "@store-api/testing/config"
import { shows } from "@store-api/testing/renderings"
import { test } from "@store-api/testing/test"
import { ConfigProvider, Effect, Equal, Layer, Redacted } from "effect"
import { credentialsOf } from "../support/wire.js"

const make = (clientId: string, clientSecret: string) =>
  ClientCredentials.make({ clientId, clientSecret: Redacted.make(clientSecret) })

describe("ClientCredentials", () => {
  describe("make", () => {
    test.each([["clientId", make("", "x")], ["clientSecret", make("x", "")]] as const)(
      "fails for an empty %s",
      function*([field, effect]) {
        const error = yield* Effect.flip(effect)
        deepStrictEqual([error._tag, error.field, error.reason], [
          "CredentialsError",
          field,
          "is empty"
        ])
      }
    )

    test("accepts any other text", function*() {
      const credentials = yield* make("an id: 100 %", "a & \u00fc\n")
      deepStrictEqual([credentials.clientId, Redacted.value(credentials.clientSecret)], [
        "an id: 100 %",
        "a & \u00fc\n"
      ])
    })

    it("makes credentials that are equal when their fields are equal", () => {
      assert.isTrue(
        Equal.equals(credentialsOf("one", "secret"), credentialsOf("one", "secret"))
      )
      assert.isFalse(
        Equal.equals(credentialsOf("one", "secret"), credentialsOf("two", "secret"))
      )
      assert.isFalse(
        Equal.equals(credentialsOf("one", "secret"), credentialsOf("one", "other"))
      )
    })

    it("makes credentials whose secret is not printed with the body of the token request", () => {
      const credentials = credentialsOf("invented-id", "invented-secret-canary")
      const { body } = Effect.runSync(TokenRequest.specification.request(credentials))
      assert.notInclude(JSON.stringify(body) + String(body), "canary")
    })
  })

  describe("fromConfig", () => {
    const withEnvironment = (entries: Readonly<Record<string, string>>) =>
      Effect.provide(
        Layer.setConfigProvider(ConfigProvider.fromMap(new Map(Object.entries(entries))))
      )

    it.effect("reads STORE_API_CLIENT_ID and STORE_API_CLIENT_SECRET", () =>
      Effect.gen(function*() {
        const credentials = yield* ClientCredentials.fromConfig()
        assert.isTrue(
          Equal.equals(credentials, credentialsOf("invented-id", "invented secret"))
        )
      }).pipe(
        withEnvironment({
          STORE_API_CLIENT_ID: "invented-id",
          STORE_API_CLIENT_SECRET: "invented secret"
        })
      ))

    it.effect.each(
      [
        [
          "a missing id",
          { MY_STORE_CLIENT_SECRET: "canary" },
          "clientId",
          "is missing from the configuration"
        ],
        [
          "a missing secret",
          { MY_STORE_CLIENT_ID: "canary" },
          "clientSecret",
          "is missing from the configuration"
        ],
        [
          "an empty secret",
          { MY_STORE_CLIENT_ID: "canary", MY_STORE_CLIENT_SECRET: "" },
          "clientSecret",
          "is empty"
        ]
      ] as const
    )(
      "fails for %s with a CredentialsError that names the variable, not its value",
      ([, entries, field, reason]) =>
        Effect.gen(function*() {
          const variable = field === "clientId"
            ? "MY_STORE_CLIENT_ID"
            : "MY_STORE_CLIENT_SECRET"
          const error = yield* Effect.flip(ClientCredentials.fromConfig("MY_STORE"))
          assert.instanceOf(error, AccessTokenError.CredentialsError)
          deepStrictEqual([error.field, error.reason, error.variable], [
            field,
            reason,
            variable
          ])
          assert.strictEqual(
            error.message,
            `${variable} ${reason}: correct the client credentials.`
          )
          assert.strictEqual(
            error.describe({ [field]: "--flag" }),
            error.message.replace(variable, "--flag")
          )
          assert.isFalse(shows(error, "canary"))
        }).pipe(withEnvironment(entries))
    )

    it.effect("fails for a value that cannot be read with a CredentialsError that does not show it", () =>
      Effect.gen(function*() {
        const error = yield* Effect.flip(ClientCredentials.fromConfig())
        assert.strictEqual(error.field, "clientSecret")
        assert.match(error.message, /^STORE_API_CLIENT_SECRET cannot be read/)
        assert.isFalse(shows(error, "canary"))
      }).pipe(
        Effect.withConfigProvider(unreadable("STORE_API_CLIENT_SECRET", "refused: canary"))
      ))
  })
})
