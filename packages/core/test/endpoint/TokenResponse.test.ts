import { assert, describe, it } from "@effect/vitest"
import { deepStrictEqual } from "@effect/vitest/utils"
import { AccessTokenError, TokenResponse } from "@store-api/core"
import { renderings, shows } from "@store-api/testing/renderings"
import { prop } from "@store-api/testing/test"
import { Either, FastCheck as FC, Option, Redacted, Schema } from "effect"
import { lifeOf } from "../../src/internal/lifetime.js"
import { character, printable, specificationFields, tokenBody } from "../support/wire.js"

const hour = 3_600_000

const decode = (body: string): TokenResponse.TokenResponse =>
  Either.getOrThrowWith(TokenResponse.decode(body), (error) => error)

/** The error of a body that is not a valid token response. */
const errorOf = (body: string): AccessTokenError.TokenResponseError => {
  const error = Either.merge(TokenResponse.decode(body))
  if (error instanceof AccessTokenError.TokenResponseError) return error
  return assert.fail(`accepted: ${body.slice(0, 100)}`)
}

const problemsOf = (body: string): ReadonlyArray<string> =>
  errorOf(body).problems.map(({ path }) => path)

/** A body in which the value of a field is this JSON text, valid or not. */
const withRaw = (field: string, json: string) =>
  tokenBody({ [field]: "RAW-VALUE" }).replace("\"RAW-VALUE\"", () => json)

const lifetimeOf = (json: string) =>
  lifeOf(decode(withRaw("expires_in", json)).expires_in, hour)

describe("TokenResponse", () => {
  describe("decode", () => {
    it("redacts the token and developer.email", () => {
      for (const text of ["invented-token-0001", "developer@shop.example"]) {
        assert.isFalse(shows(decode(tokenBody()), text))
      }
    })

    it("decodes the response of the specification", () => {
      const response = decode(tokenBody())
      const email = Option.map(response["developer.email"], Redacted.value)
      deepStrictEqual({
        ...response,
        access_token: Redacted.value(response.access_token),
        "developer.email": email
      }, {
        access_token: "invented-token-0001",
        token_type: "bearer",
        expires_in: 3600,
        scope: Option.some(""),
        application_name: Option.some("Invented Shop"),
        "developer.email": Option.some("developer@shop.example"),
        issued_at: Option.some("1767225600000"),
        client_id: Option.some(specificationFields.client_id)
      })
    })

    it.each([
      `{"access_token":"t"}`,
      `{"access_token":"t","token_type":null,"expires_in":null}`
    ])(
      "decodes a response that has only an access_token, as a bearer token of 60 minutes: %s",
      (body) => {
        const { access_token, expires_in, token_type, ...others } = decode(body)
        deepStrictEqual([Redacted.value(access_token), token_type, expires_in], [
          "t",
          "bearer",
          3600
        ])
        deepStrictEqual(Object.values(others), Array(5).fill(Option.none()))
      }
    )

    it("reads no field from an unknown one, such as a nested developer.email", () => {
      const response = decode(tokenBody({
        "developer.email": undefined,
        developer: { email: "nested@shop.example" },
        refresh_token: "invented-refresh",
        status: "approved",
        deep: [[[{}]]]
      }))
      assert.isTrue(Option.isNone(response["developer.email"]))
    })

    it.each<readonly [string, Option.Option<string>]>([
      [`"1767225600000"`, Option.some("1767225600000")],
      ["1767225600000", Option.some("1767225600000")],
      ["0", Option.some("0")],
      ...["1.5", "-1", `"2026-01-01"`, `""`, "null"].map((json) =>
        [json, Option.none()] as const
      )
    ])("decodes issued_at as digits or a number: %s", (json, expected) => {
      deepStrictEqual(decode(withRaw("issued_at", json)).issued_at, expected)
    })

    it.each(
      ["scope", "application_name", "developer.email", "issued_at", "client_id"] as const
    )(
      "treats %s as missing when it is null or has a wrong type",
      (field) => {
        for (
          const json of [
            "null",
            "true",
            "{}",
            "[7]",
            ...field === "scope" ? [] : ["[]", "[\"x\"]"],
            ...field === "issued_at" ? [] : ["7"]
          ]
        ) {
          assert.strictEqual(
            decode(withRaw(field, json))[field]._tag,
            "None",
            `${field}: ${json}`
          )
        }
        assert.strictEqual(decode(withRaw(field, `"7"`))[field]._tag, "Some")
      }
    )

    it("ignores keys such as __proto__ or constructor", () => {
      const hostile =
        `"__proto__":{"access_token":"polluted","token_type":"bearer","expires_in":1,"scope":"polluted"}`
      const others =
        `"constructor":{"prototype":{"scope":"polluted"}},"toString":"polluted","hasOwnProperty":1`
      deepStrictEqual(problemsOf(`{${hostile},${others}}`), ["access_token"])
      const response = decode(
        `{"access_token":"t","token_type":"bearer",${hostile},${others}}`
      )
      assert.isTrue(Option.isNone(response.scope))
      assert.strictEqual(lifeOf(response.expires_in, hour), hour)
      assert.doesNotHaveAnyKeys({}, ["scope", "access_token"])
    })

    it.each([
      "",
      " \n ",
      "<!doctype html><title>Hello</title>",
      "access_token=invented&token_type=bearer",
      "[]",
      `[${tokenBody()}]`,
      "null",
      "7",
      "\"invented-token-0001\"",
      "[".repeat(32_000) + "]".repeat(32_000),
      tokenBody().slice(0, -1),
      `${tokenBody()}{}`,
      `${tokenBody()}\n${tokenBody()}`,
      Buffer.from(tokenBody(), "utf16le").toString("utf8")
    ])(
      "fails for a body that is not one JSON object, with an error that shows no token: %#",
      (body) => {
        deepStrictEqual(problemsOf(body), [""])
        assert.isFalse(shows(errorOf(body), "invented-token"))
      }
    )

    it.each([
      ["an OAuth error", `{"error":"invalid_client"}`, ["access_token"]],
      ["an empty object", "{}", ["access_token"]],
      ["a wrong type and lifetime", tokenBody({ token_type: "mac", expires_in: true }), [
        "token_type",
        "expires_in"
      ]]
    ])("names every invalid field of %s", (_name, body, paths) => {
      deepStrictEqual(problemsOf(body), paths)
    })

    it("says in each problem what was expected", () => {
      const expectedOf = (body: string) =>
        errorOf(body).problems.map(({ expected }) => expected)
      deepStrictEqual(expectedOf("no JSON"), ["a JSON object with access_token"])
      const fields = [
        "1 to 16384 visible ASCII characters",
        "a type other than DPoP, MAC and PoP",
        "a number of seconds"
      ]
      deepStrictEqual(expectedOf(`{"token_type":"mac","expires_in":"soon"}`), fields)
    })

    prop("never throws for any body", [
      FC.oneof(
        FC.string({ unit: character }),
        FC.json(),
        FC.jsonValue().map((value) => tokenBody({ scope: value }))
      )
    ], ([body]) => {
      assert.isTrue(Either.isEither(TokenResponse.decode(body)))
    })
  })

  describe("expires_in", () => {
    it.each<readonly [string, number]>([
      ["3599", 3_599_000],
      ...["1", "\"0001\"", "1.0"].map((json) => [json, 1000] as const),
      ["\"1799\"", 1_799_000],
      ...["59.9", "\"59.9\"", "\"59.95\""].map((json) => [json, 59_000] as const),
      ...[
        "3600",
        "3601",
        "86400",
        "3600000",
        "1e300",
        "9007199254740993",
        `"${"9".repeat(300)}"`
      ].map((json) => [json, hour] as const)
    ])("expires_in of %s is a lifetime of %d ms", (json, lifetime) => {
      assert.strictEqual(lifetimeOf(json), lifetime)
    })

    it.each([undefined, null])(
      "expires_in of %s is a lifetime of 60 minutes",
      (expires_in) => {
        assert.strictEqual(lifeOf(decode(tokenBody({ expires_in })).expires_in, hour), hour)
      }
    )

    it.each([
      "0",
      "-0",
      "-1",
      "-3600",
      "0.9",
      "-0.1",
      "\"0\"",
      "\"-1\"",
      "\"-5.5\"",
      "-1e308",
      "-1e999",
      "5e-324"
    ])(
      "expires_in of %s leaves no lifetime",
      (json) => {
        assert.isTrue(lifetimeOf(json) <= 0)
      }
    )

    it.each(["1e999", "9".repeat(400), JSON.stringify("9".repeat(400))])(
      "%s, which is beyond all numbers, is capped",
      (json) => {
        assert.strictEqual(lifetimeOf(json), hour)
      }
    )

    it.each([
      "true",
      "false",
      "[]",
      "[3600]",
      "{}",
      ...[
        "NaN",
        "Infinity",
        "-Infinity",
        "1e3",
        "0x10",
        "soon",
        "",
        " ",
        "3600 ",
        "+3600",
        "3,600"
      ]
        .map((text) => JSON.stringify(text)),
      "\"\u0663\u0666\u0660\u0660\""
    ])("expires_in of %s is not a number of seconds", (json) => {
      deepStrictEqual(problemsOf(withRaw("expires_in", json)), ["expires_in"])
    })

    prop("any expires_in is an error, no lifetime, or whole seconds up to 60 minutes", [
      FC.oneof(
        FC.jsonValue(),
        FC.double(),
        FC.integer(),
        FC.bigInt().map(String),
        FC.double().map(String),
        FC.nat({ max: 10_000 }),
        FC.nat({ max: 10_000 }).map(String)
      )
    ], ([expiresIn]) => {
      const body = tokenBody({ expires_in: expiresIn })
      const result = TokenResponse.decode(body)
      if (Either.isLeft(result)) {
        deepStrictEqual(problemsOf(body), ["expires_in"])
        return
      }
      const lifetime = lifeOf(result.right.expires_in, hour)
      if (lifetime <= 0) return
      assert.isTrue(Number.isSafeInteger(lifetime) && lifetime % 1000 === 0)
      // JSON has no number for infinity and NaN: it has null.
      const sent = typeof expiresIn === "number" && !Number.isFinite(expiresIn)
        ? null
        : expiresIn
      assert.isAtMost(
        lifetime,
        Math.min(hour, Number(sent ?? 3600) * 1000),
        "not longer than expires_in"
      )
    }, { fastCheck: { numRuns: 1000 } })
  })

  describe("token_type", () => {
    it.each([
      "bearer",
      "Bearer",
      "BearerToken",
      "Application Access Token",
      "jwt-bearer",
      "",
      "N_A",
      "dpop-not",
      "machine"
    ])("the token_type %s is accepted", (type) => {
      assert.strictEqual(decode(tokenBody({ token_type: type })).token_type, type)
    })

    it.each([
      "mac",
      "DPoP",
      "pop",
      " PoP ",
      "bearer\n",
      "bearer\r\nx-injected: 1",
      "b\u0117arer",
      7,
      true,
      ["bearer"],
      {}
    ])("the token_type %j is not accepted", (type) => {
      deepStrictEqual(problemsOf(tokenBody({ token_type: type })), ["token_type"])
    })
  })

  describe("access_token", () => {
    it.each([
      "t",
      "invented-token-0001",
      "abc.def-ghi_jkl~mno+pqr/stu",
      "YWJj=",
      "===",
      "a=b",
      "a,\"b\"",
      "00D!AQ.^#|'x",
      "a".repeat(16 * 1024)
    ])("the access_token %s is accepted", (token) => {
      assert.strictEqual(
        Redacted.value(decode(tokenBody({ access_token: token })).access_token),
        token
      )
    })

    it.each<unknown>([
      "",
      "canary-0001\r\nx-injected: 1",
      "canary-0001\n",
      "canary-0001\0",
      "canary 0001",
      "canary\t0001",
      "canary-0001\x7f",
      "canary-\u00e9",
      "canary-\u79d8\u5bc6",
      "canary-\u{1f600}",
      `canary${"a".repeat(16 * 1024 - 5)}`,
      1234567890123,
      { value: "canary-0001" },
      ["canary-0001"],
      null,
      true
    ])(
      "another access_token is not accepted, with an error that does not show it: %#",
      (token) => {
        const error = errorOf(tokenBody({ access_token: token }))
        deepStrictEqual(error.problems, [
          { path: "access_token", expected: "1 to 16384 visible ASCII characters" }
        ])
        for (const text of ["canary", "1234567890123", "invented-token"]) {
          assert.notInclude(renderings(error), text)
        }
      }
    )

    prop("only an access_token of 1 to 16384 visible ASCII characters is accepted", [
      FC.oneof(
        FC.string({ unit: character }),
        FC.string({ unit: FC.constantFrom(...printable, "&", "\n", "\u00e9") })
      )
    ], ([token]) => {
      const isSendable = token !== "" &&
        [...token].every((character) => character > " " && character < "\x7f")
      assert.strictEqual(
        Either.isRight(TokenResponse.decode(tokenBody({ access_token: token }))),
        isSendable
      )
    }, { fastCheck: { numRuns: 500 } })
  })

  it("other sources can use the schema alone", () => {
    const { access_token } = Schema.decodeUnknownSync(TokenResponse.TokenResponse)(
      specificationFields
    )
    assert.strictEqual(Redacted.value(access_token), "invented-token-0001")
  })
})
