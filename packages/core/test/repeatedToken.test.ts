import { assert, describe, it } from "@effect/vitest"
import { AccessToken } from "@store-api/core"
import { DateTime, Deferred, Exit, FiberId, Redacted } from "effect"
import { leewayOf } from "../src/internal/lifetime.js"
import * as tokenPolicy from "../src/internal/provider/tokenPolicy.js"
import * as tokenState from "../src/internal/provider/tokenState.js"
import { isRepeated } from "../src/internal/repeatedToken.js"

const hour = 3_600_000

/** A token that was acquired at 0, in milliseconds of the wall clock. */
const token = (value: string, expiresAt: number) =>
  new AccessToken.AccessToken({
    value: Redacted.make(value),
    acquiredAt: DateTime.unsafeMake(0),
    expiresAt: DateTime.unsafeMake(expiresAt)
  })

describe("a renewal", () => {
  it.each([
    { token: token("two", hour + 1), expected: false, what: "another token that expires later" },
    { token: token("two", hour), expected: true, what: "another token that expires at the same time" },
    { token: token("one", hour + 1), expected: true, what: "the same token, with a later expiry" }
  ])("brings no progress: $expected, for $what", ({ expected, token: renewed }) => {
    assert.strictEqual(isRepeated(token("one", hour), renewed), expected)
  })
})

describe("after a rejection", () => {
  const now = { wall: 1000, monotonic: 1000 }
  const policy = tokenPolicy.make()

  /** The state after the source has returned a token. */
  const landed = (state: tokenState.State, received: AccessToken.AccessToken): tokenState.State => {
    const acquisition: tokenState.Acquisition = {
      startedAt: now,
      replacing: undefined,
      isRenewal: false,
      done: Deferred.unsafeMake(FiberId.none)
    }
    const event = tokenState.land(policy, { acquisition, exit: Exit.succeed(received), chance: 0 })
    return event({ ...state, acquisition }, now)[1]
  }
  const [, rejected] = tokenState.reject(token("one", hour))(landed(tokenState.initial, token("one", hour)), now)

  it.each([
    { received: token("one", hour), expected: true, what: "the rejected token" },
    { received: token("two", hour - 1), expected: false, what: "another token, even with a shorter lifetime" }
  ])("counts as repeated: $expected, for $what", ({ expected, received }) => {
    assert.strictEqual(landed(rejected, received).held?.repeated, expected)
  })
})

it("the leeway is 30 seconds by default, and at most 5 % of the lifetime", () => {
  assert.strictEqual(leewayOf(hour), 30_000)
  assert.strictEqual(leewayOf(60_000), 3000)
})
