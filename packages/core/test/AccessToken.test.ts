import { assert, describe, it } from "@effect/vitest"
import { deepStrictEqual } from "@effect/vitest/utils"
import { AccessToken, AccessTokenError } from "@store-api/core"
import { renderings, shows } from "@store-api/testing/renderings"
import { test } from "@store-api/testing/test"
import {
  DateTime,
  Duration,
  Effect,
  Either,
  Equal,
  Option,
  Redacted,
  Schema,
  TestClock
} from "effect"

const acquiredAt = DateTime.unsafeMake("2026-01-01T00:00:00Z")
const minute = 60_000

const tokenOf = (value = "invented-token-0001") =>
  new AccessToken.AccessToken({
    value: Redacted.make(value),
    acquiredAt,
    expiresAt: DateTime.add(acquiredAt, { minutes: 60 })
  })

/** Checks a token this many milliseconds after its acquisition, by the wall clock. */
const checkedAt = (millis: number) =>
  Effect.gen(function*() {
    yield* TestClock.setTime(acquiredAt.epochMillis + millis)
    const token = tokenOf()
    return {
      token,
      expired: yield* AccessToken.isExpired(token),
      remaining: Duration.toMillis(yield* AccessToken.remaining(token)),
      valid: yield* Effect.either(AccessToken.ensureValid(token))
    }
  })

const validCases = [
  ["on arrival", 0, 60 * minute],
  ["after 59 minutes", 59 * minute, minute],
  ["1 ms before 60 minutes", 60 * minute - 1, 1],
  ["with the wall clock set back by 500 ms", -500, 60 * minute + 500],
  ["with the wall clock set back by 1000 ms", -1000, 60 * minute + 1000]
] as const

const expiredCases = [
  ["after 60 minutes exactly", 60 * minute, "Elapsed"],
  ["after 60 minutes and 1 ms", 60 * minute + 1, "Elapsed"],
  ["after a day", 24 * 60 * minute, "Elapsed"],
  ["with the wall clock set back by 1001 ms", -1001, "ClockMovedBack"],
  ["with the wall clock set back by an hour", -60 * minute, "ClockMovedBack"]
] as const

describe("AccessToken", () => {
  describe("the lifetime of 60 minutes by the wall clock", () => {
    test.each(validCases)("a token is valid %s", function*([, millis, left]) {
      const { expired, remaining, token, valid } = yield* checkedAt(millis)
      assert.isFalse(expired)
      assert.strictEqual(remaining, left)
      assert.isTrue(
        Either.isRight(valid) && valid.right === token,
        "ensureValid returns the token itself"
      )
    })

    test.each(expiredCases)("a token has expired %s", function*([, millis, reason]) {
      const { expired, remaining, token, valid } = yield* checkedAt(millis)
      assert.isTrue(expired)
      assert.strictEqual(remaining, 0)
      const error = Either.merge(valid)
      assert.instanceOf(error, AccessTokenError.TokenExpiredError)
      deepStrictEqual([error.reason, error.expiredAt, error.retryAt], [
        reason,
        token.expiresAt,
        undefined
      ])
      assert.strictEqual(error.checkedAt.epochMillis, acquiredAt.epochMillis + millis)
    })
  })

  describe("as a value", () => {
    it("all fields of a token are optional except its value with its two times", () => {
      const token = tokenOf()
      deepStrictEqual(
        [
          token.tokenType,
          token.scope,
          token.applicationName,
          token.developerEmail,
          token.issuedAt,
          token.clientId
        ],
        ["Bearer", "", Option.none(), Option.none(), Option.none(), Option.none()]
      )
      assert.strictEqual(Redacted.value(token.value), "invented-token-0001")
    })

    it("authorization is the value of the header, redacted", () => {
      const authorization = AccessToken.authorization(tokenOf())
      assert.isTrue(Redacted.isRedacted(authorization))
      assert.strictEqual(Redacted.value(authorization), "Bearer invented-token-0001")
    })

    it("two tokens are equal if all their fields are equal", () => {
      assert.isTrue(Equal.equals(tokenOf(), tokenOf()))
      assert.isFalse(Equal.equals(tokenOf(), tokenOf("invented-token-0002")))
      assert.isFalse(
        Equal.equals(
          tokenOf(),
          new AccessToken.AccessToken({ ...tokenOf(), applicationName: Option.some("Shop") })
        )
      )
    })

    test("no form of a token shows its value or the developer's email address", function*() {
      const secret = "invented-token-canary"
      const email = "canary@shop.example"
      const token = new AccessToken.AccessToken({
        ...tokenOf(secret),
        developerEmail: Option.some(Redacted.make(email))
      })
      const unredacted = {
        ...token,
        value: Redacted.value(token.value),
        developerEmail: email
      }
      assert.isTrue(
        shows(unredacted, secret) && shows(unredacted, email),
        "control: the search finds both"
      )
      const values = [
        token,
        Option.some(token),
        { ...token },
        yield* Schema.encode(AccessToken.AccessToken)(token),
        Effect.runSyncExit(
          Schema.encode(AccessToken.AccessToken)({ ...token, tokenType: "mac" } as never)
        ),
        Schema.decodeUnknownEither(AccessToken.AccessToken)({ value: token.value }),
        Schema.decodeUnknownEither(AccessToken.AccessToken)({
          ...token,
          value: Redacted.make(1)
        })
      ]
      for (const value of values) assert.isFalse(shows(value, secret) || shows(value, email))
      assert.include(renderings(token), "redacted")
    })
  })
})
