import { assert, describe, it } from "@effect/vitest"
import { deepStrictEqual } from "@effect/vitest/utils"
import { AccessTokenError, ClientCredentials } from "@store-api/core"
import { ConfigProvider, Effect, Equal, FastCheck as FC, Layer, Option, Redacted } from "effect"
import * as tokenRequest from "../../src/internal/endpoint/tokenRequest.js"
import { unreadable } from "../support/config.js"
import { shows } from "../support/renderings.js"
import { prop, propEffect, test } from "../support/test.js"
import { character, credentialsOf, printable, sendable } from "../support/wire.js"

const make = (clientId: string, clientSecret: string) =>
  ClientCredentials.make({ clientId, clientSecret: Redacted.make(clientSecret) })

const bodyOf = (clientId: string, clientSecret: string) =>
  new TextDecoder().decode(tokenRequest.body(credentialsOf(clientId, clientSecret)).body)

const controls = [...Array.from({ length: 0x20 }, (_, code) => String.fromCharCode(code)), "\x7f"]
const hexOf = (character: string) => `U+${character.charCodeAt(0).toString(16).padStart(4, "0")}`

const unsendable = [
  ["empty", "", /^is empty$/],
  ["an ampersand", "invented&canary", /holds &/],
  ["a trailing line feed", "inventedcanary\n", /ends with a line break/],
  ["a trailing carriage return and line feed", "inventedcanary\r\n", /ends with a line break/],
  ["a non-ASCII letter", "invent\u00e9dcanary", /beyond ASCII/],
  ["a C1 control character", "invented\u0085canary", /beyond ASCII/],
  ["CJK", "\u79d8\u5bc6canary", /beyond ASCII/],
  ["an emoji", "invented\u{1f600}canary", /beyond ASCII/],
  ["a lone high surrogate", "invented\ud800canary", /beyond ASCII/],
  ["a lone low surrogate", "invented\udc00canary", /beyond ASCII/],
  ["a byte order mark", "\ufeffinventedcanary", /beyond ASCII/],
  ...controls.map((character) =>
    [`the control character ${hexOf(character)}`, `invented${character}canary`, /holds a control character/] as const
  )
] as const

describe("ClientCredentials", () => {
  describe("make", () => {
    test.each(unsendable)("fails for %s as id and as secret, and does not show it", function*([, value, reason]) {
      for (
        const [field, effect] of [
          ["clientId", make(value, "invented-secret")],
          ["clientSecret", make("invented-id", value)]
        ] as const
      ) {
        const error = yield* Effect.flip(effect)
        assert.instanceOf(error, AccessTokenError.CredentialsError)
        assert.strictEqual(error.field, field)
        assert.match(error.reason, reason)
        if (value === "") continue
        assert.isFalse(shows(error, value))
        assert.isFalse(shows(error, "canary"))
      }
    })

    propEffect(
      "accepts all printable ASCII except the ampersand",
      [sendable, sendable],
      ([id, secret]) =>
        Effect.gen(function*() {
          const credentials = yield* make(id, secret)
          assert.strictEqual(credentials.clientId, id)
          assert.strictEqual(Redacted.value(credentials.clientSecret), secret)
        })
    )

    propEffect(
      "accepts no other character at any position",
      [
        sendable,
        character.filter((unit) => !printable.includes(unit)),
        FC.nat()
      ],
      ([value, unit, position]) =>
        Effect.gen(function*() {
          const at = position % (value.length + 1)
          const error = yield* Effect.flip(make("invented-id", value.slice(0, at) + unit + value.slice(at)))
          assert.strictEqual(error.field, "clientSecret")
        })
    )

    it("are equal when id and secret are equal", () => {
      assert.isTrue(Equal.equals(credentialsOf("one", "secret"), credentialsOf("one", "secret")))
      assert.isFalse(Equal.equals(credentialsOf("one", "secret"), credentialsOf("two", "secret")))
      assert.isFalse(Equal.equals(credentialsOf("one", "secret"), credentialsOf("one", "other")))
    })

    it("do not show the secret when they are printed, nor does the body of the token request", () => {
      const credentials = credentialsOf("invented-id", "invented-secret-canary")
      for (const value of [credentials, ClientCredentials.make(credentials)]) assert.isFalse(shows(value, "canary"))
      const body = tokenRequest.body(credentials)
      assert.notInclude(JSON.stringify(body) + String(body), "canary")
    })
  })

  describe("the body of the token request", () => {
    it("has the three fields in order, without any encoding", () => {
      assert.strictEqual(
        bodyOf("an id", "+ / = % ~ %2B a=b"),
        "grant_type=client_credentials&client_id=an id&client_secret=+ / = % ~ %2B a=b"
      )
    })

    it("has the media type of a form, without a charset", () => {
      const body = tokenRequest.body(credentialsOf("an-id", "a-secret"))
      assert.strictEqual(body.contentType, "application/x-www-form-urlencoded")
      assert.strictEqual(body.contentLength, body.body.length)
    })

    prop("contains every sendable value byte for byte", [sendable, sendable], ([id, secret]) => {
      assert.strictEqual(bodyOf(id, secret), `grant_type=client_credentials&client_id=${id}&client_secret=${secret}`)
    })
  })

  prop("changeWhenDecoded returns whether form decoding changes a value", [sendable], ([value]) => {
    const decoded = new URLSearchParams(`x=${value}`).get("x")
    for (const credentials of [credentialsOf(value, "plain"), credentialsOf("plain", value)]) {
      if (decoded !== value) assert.isTrue(tokenRequest.changeWhenDecoded(credentials))
      if (!/[+%]/.test(value)) assert.isFalse(tokenRequest.changeWhenDecoded(credentials))
    }
  })

  describe("fromConfig", () => {
    const withEnvironment = (entries: Readonly<Record<string, string>>) =>
      Effect.provide(Layer.setConfigProvider(ConfigProvider.fromMap(new Map(Object.entries(entries)))))

    test("reads both variables each time it runs, also with another prefix", function*() {
      for (const [prefix, name] of [[undefined, "STORE_API"], ["OTHER", "OTHER"]] as const) {
        const read = ClientCredentials.fromConfig(prefix)
        for (const secret of ["a secret", "another"]) {
          const entries = { [`${name}_CLIENT_ID`]: "invented-id", [`${name}_CLIENT_SECRET`]: secret }
          const credentials = yield* withEnvironment(entries)(read)
          assert.isTrue(Equal.equals(credentials, credentialsOf("invented-id", secret)))
        }
      }
    })

    it.effect.each(
      [
        ["a missing id", { MY_STORE_CLIENT_SECRET: "canary" }, "clientId", "is missing from the configuration"],
        ["a missing secret", { MY_STORE_CLIENT_ID: "canary" }, "clientSecret", "is missing from the configuration"],
        ["an empty secret", { MY_STORE_CLIENT_ID: "canary", MY_STORE_CLIENT_SECRET: "" }, "clientSecret", "is empty"],
        [
          "a secret that cannot be sent",
          { MY_STORE_CLIENT_ID: "x", MY_STORE_CLIENT_SECRET: "canary&" },
          "clientSecret",
          "holds &, which separates the fields of the request and cannot be sent raw"
        ]
      ] as const
    )(
      "fails for %s with a CredentialsError that names the variable and shows no value",
      ([, entries, field, reason]) =>
        Effect.gen(function*() {
          const variable = field === "clientId" ? "MY_STORE_CLIENT_ID" : "MY_STORE_CLIENT_SECRET"
          const error = yield* Effect.flip(ClientCredentials.fromConfig("MY_STORE"))
          assert.instanceOf(error, AccessTokenError.CredentialsError)
          deepStrictEqual([error.field, error.reason, error.variable], [field, reason, Option.some(variable)])
          assert.strictEqual(error.message, `${variable} ${reason}: correct the client credentials.`)
          assert.strictEqual(error.describe({ [field]: "--flag" }), error.message.replace(variable, "--flag"))
          assert.isFalse(shows(error, "canary"))
        }).pipe(withEnvironment(entries))
    )

    it.effect("fails for a value that cannot be read with a CredentialsError that does not show it", () =>
      Effect.gen(function*() {
        const error = yield* Effect.flip(ClientCredentials.fromConfig())
        assert.strictEqual(error.field, "clientSecret")
        assert.match(error.message, /^STORE_API_CLIENT_SECRET cannot be read/)
        assert.isFalse(shows(error, "canary"))
      }).pipe(Effect.withConfigProvider(unreadable("STORE_API_CLIENT_SECRET", "refused: canary"))))
  })
})
