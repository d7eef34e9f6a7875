import { assert, describe, it } from "@effect/vitest"
import { deepStrictEqual } from "@effect/vitest/utils"
import { DateTime, Duration, FastCheck as FC } from "effect"
import { maxRetryAfter } from "../../src/internal/backoff.js"
import { maxLife } from "../../src/internal/lifetime.js"
import * as cooldown from "../../src/internal/provider/cooldown.js"
import * as heldToken from "../../src/internal/provider/heldToken.js"
import * as tokenPolicy from "../../src/internal/provider/tokenPolicy.js"
import { isRepeatedDue, lifeOfRepeated } from "../../src/internal/repeatedToken.js"
import { prop } from "../support/property.js"

const hour = 3_600_000

/** From 0 (inclusive) to 1 (exclusive). */
const chance = FC.double({ min: 0, max: 1, maxExcluded: true, noNaN: true })
const lifetime = FC.double({ min: 0, max: maxLife, noNaN: true })

/** Durations that a configuration may contain, including invalid ones. */
const anyDuration: FC.Arbitrary<Duration.DurationInput | undefined> = FC.oneof(
  FC.constantFrom<Duration.DurationInput | undefined>(
    undefined,
    0,
    -1,
    NaN,
    Infinity,
    -Infinity,
    1e308,
    Number.MIN_VALUE,
    "0 seconds",
    "3650 days",
    Duration.infinity,
    Duration.zero,
    10n ** 30n
  ),
  FC.double(),
  FC.nat().map(Duration.seconds)
)

const policies = FC.record({
  refreshAhead: anyDuration,
  leeway: anyDuration,
  cooldown: FC.option(FC.record({ base: anyDuration, max: anyDuration }), { nil: undefined })
}).map(tokenPolicy.make)

const defaults: tokenPolicy.TokenPolicy = {
  refreshAhead: 300_000,
  leeway: 30_000,
  cooldownBase: 1000,
  cooldownMax: 60_000
}

const failing = (failures: number, options: Partial<Parameters<typeof cooldown.lengths>[1]> = {}) =>
  cooldown.lengths(defaults, { failures, isRefusal: false, isRenewal: false, retryAfter: 0, chance: 0, ...options })

/** The greatest value of `chance`. */
const almostOne = 1 - Number.EPSILON / 2

describe("tokenPolicy", () => {
  it("lifetimes and Retry-After are capped at 1 hour", () => {
    assert.strictEqual(maxLife, hour)
    assert.strictEqual(maxRetryAfter, hour)
  })

  describe("make", () => {
    it("the defaults are 5 minutes, 30 seconds, 1 second and 60 seconds", () => {
      deepStrictEqual(tokenPolicy.make(), defaults)
      deepStrictEqual(
        tokenPolicy.make({ refreshAhead: undefined, leeway: undefined, cooldown: { base: undefined, max: undefined } }),
        defaults
      )
      deepStrictEqual(tokenPolicy.make({ cooldown: undefined }), defaults)
    })

    it("accepts durations in every form", () => {
      deepStrictEqual(
        tokenPolicy.make({
          refreshAhead: Duration.minutes(1),
          leeway: 5000,
          cooldown: { base: "2 seconds", max: "10 minutes" }
        }),
        { refreshAhead: 60_000, leeway: 5000, cooldownBase: 2000, cooldownMax: 600_000 }
      )
    })

    it("caps cooldown.max at 1 hour, and cooldown.base at cooldown.max", () => {
      assert.strictEqual(tokenPolicy.make({ cooldown: { max: "1 days" } }).cooldownMax, hour)
      const policy = tokenPolicy.make({ cooldown: { base: "5 minutes", max: "1 minutes" } })
      deepStrictEqual([policy.cooldownBase, policy.cooldownMax], [60_000, 60_000])
    })

    prop("returns finite cooldowns, and no negative value or NaN, for any options", [policies], ([policy]) => {
      for (const value of Object.values(policy) as ReadonlyArray<number>) assert.isTrue(value >= 0)
      assert.isAtMost(policy.cooldownMax, hour)
      assert.isAtMost(policy.cooldownBase, policy.cooldownMax)
    })
  })

  describe("margins", () => {
    it("for a lifetime of 1 hour: 4 to 5 minutes and 30 seconds", () => {
      deepStrictEqual(tokenPolicy.margins(defaults, hour, 0), { refreshAhead: 240_000, leeway: 30_000 })
      const longest = tokenPolicy.margins(defaults, hour, almostOne)
      assert.closeTo(longest.refreshAhead, 300_000, 1e-6)
      assert.isAtMost(longest.refreshAhead, 300_000)
    })

    it("for a short lifetime: 80 to 100 % of a quarter of it, and 5 % of it", () => {
      deepStrictEqual(tokenPolicy.margins(defaults, 10_000, 0), { refreshAhead: 2000, leeway: 500 })
      assert.closeTo(tokenPolicy.margins(defaults, 10_000, 0.5).refreshAhead, 2250, 1e-6)
    })

    prop(
      "are fractions of the lifetime, limited by the options",
      [policies, lifetime, chance],
      ([policy, lifetime, chance]) => {
        const { leeway, refreshAhead } = tokenPolicy.margins(policy, lifetime, chance)
        assert.isTrue(Number.isFinite(refreshAhead) && Number.isFinite(leeway))
        const longest = Math.min(policy.refreshAhead, lifetime * 0.25)
        assert.isAtLeast(refreshAhead, longest * 0.8)
        assert.isAtMost(refreshAhead, longest)
        assert.strictEqual(leeway, Math.min(policy.leeway, lifetime * 0.05))
      }
    )
  })

  it("a repeated token is renewed when a quarter of what was left is left, and not within the last 8 seconds", () => {
    assert.strictEqual(lifeOfRepeated(8000), 8000)
    assert.strictEqual(lifeOfRepeated(7999), 0)
    const isDue = (left: number, remaining: number) => {
      const acquiredAt = DateTime.unsafeMake(1_000_000)
      const expiresAt = DateTime.add(acquiredAt, { millis: left })
      return isRepeatedDue({ acquiredAt, expiresAt }, expiresAt.epochMillis - remaining)
    }
    assert.isFalse(isDue(40_000, 10_001))
    assert.isTrue(isDue(40_000, 10_000))
    assert.isFalse(isDue(7999, 1))
    assert.isTrue(isDue(7999, 0))
  })

  describe("state", () => {
    const margins = { refreshAhead: 300, leeway: 30 }
    const start = { wall: 0, monotonic: 0 }

    /** The state of a token that starts now. */
    const state = (margins: tokenPolicy.Margins, life: number) =>
      // Only these fields count.
      heldToken.stateOf({ margins, life, since: start } as heldToken.Held, start)

    it.each(
      [
        [Infinity, "Fresh"],
        [300, "Fresh"],
        [299.999, "RefreshSoon"],
        [30, "RefreshSoon"],
        [29.999, "MustWait"],
        [Number.MIN_VALUE, "MustWait"],
        [0, "Expired"],
        [-0, "Expired"],
        [-1, "Expired"],
        [-Infinity, "Expired"]
      ] as const
    )("with %d ms left: %s", (remaining, expected) => {
      assert.strictEqual(state(margins, remaining), expected)
    })

    prop(
      "is never fresher when less time is left, and is Expired when none is left",
      [policies, lifetime, chance, FC.double({ noNaN: true }), FC.double({ noNaN: true })],
      ([policy, lifetime, chance, one, other]) => {
        const order: ReadonlyArray<string> = ["Expired", "MustWait", "RefreshSoon", "Fresh"]
        const margins = tokenPolicy.margins(policy, lifetime, chance)
        const age = (remaining: number) => order.indexOf(state(margins, remaining))
        assert.isAtMost(age(Math.min(one, other)), age(Math.max(one, other)))
        assert.strictEqual(state(margins, Math.min(one, 0)), "Expired")
        if (lifetime > 0) assert.strictEqual(state(margins, lifetime), "Fresh", "a new token is Fresh")
      }
    )
  })

  describe("cooldowns", () => {
    it("double from 1 s to 60 s while a valid token is cached, and to 5 s without one", () => {
      const all = [1, 2, 3, 4, 5, 6, 7, 8, 10_000].map((failures) => failing(failures, { chance: almostOne }))
      const rounded = (cooldowns: ReadonlyArray<number>) => cooldowns.map(Math.round)
      deepStrictEqual(
        rounded(all.map(({ withToken }) => withToken)),
        [1000, 2000, 4000, 8000, 16_000, 32_000, 60_000, 60_000, 60_000]
      )
      deepStrictEqual(
        rounded(all.map(({ withoutToken }) => withoutToken)),
        [1000, 2000, 4000, 5000, 5000, 5000, 5000, 5000, 5000]
      )
    })

    it("double to 60 s in both cases when the endpoint refused the credentials", () => {
      for (const failures of [1, 2, 5, 10, 100]) {
        const { withoutToken: whileFailing, withToken } = failing(failures, { isRefusal: true })
        assert.strictEqual(whileFailing, withToken)
      }
      assert.strictEqual(failing(100, { isRefusal: true }).withoutToken, 45_000)
    })

    it("are shortened by at most 25 % by jitter", () => {
      deepStrictEqual(failing(3, { chance: 0 }), { withToken: 3000, withoutToken: 3000 })
      deepStrictEqual(failing(3, { chance: 0.5 }), { withToken: 3500, withoutToken: 3500 })
    })

    it("without a valid token, are at most cooldown.base if that is longer than 5 s", () => {
      const policy = tokenPolicy.make({ cooldown: { base: "20 seconds" } })
      const { withToken, withoutToken } = cooldown.lengths(policy, {
        failures: 2,
        isRefusal: false,
        isRenewal: false,
        retryAfter: 0,
        chance: almostOne
      })
      deepStrictEqual([Math.round(withoutToken), Math.round(withToken)], [20_000, 40_000])
    })

    it("are lengthened by Retry-After, up to 1 hour, and never shortened", () => {
      deepStrictEqual(failing(1, { retryAfter: 30_000 }), { withToken: 30_000, withoutToken: 30_000 })
      deepStrictEqual(failing(1, { retryAfter: 10 * hour }), { withToken: hour, withoutToken: hour })
      deepStrictEqual(failing(10, { retryAfter: 100 }), failing(10))
      deepStrictEqual(failing(10, { retryAfter: -100 }), failing(10))
    })

    prop(
      "are finite, within bounds and not shorter after each failure, for any options and number of failures",
      [policies, FC.integer({ min: 1, max: 10_000 }), chance, FC.boolean(), FC.double({ noNaN: true })],
      ([policy, failures, chance, isRefusal, retryAfter]) => {
        const options = { failures, chance, isRefusal, retryAfter, isRenewal: false }
        const cooldowns = cooldown.lengths(policy, options)
        const withoutRetryAfter = cooldown.lengths(policy, { ...options, retryAfter: 0 })
        const next = cooldown.lengths(policy, { ...options, failures: failures + 1 })
        const capped = Math.min(Math.max(retryAfter, 0), hour)
        const doubled = policy.cooldownBase * 2 ** Math.min(failures - 1, 100)
        for (const kind of ["withToken", "withoutToken"] as const) {
          assert.isTrue(Number.isFinite(cooldowns[kind]))
          assert.isTrue(cooldowns[kind] >= 0 && cooldowns[kind] <= hour)
          assert.strictEqual(cooldowns[kind], Math.max(withoutRetryAfter[kind], capped), "the longer of the two")
          assert.isAtLeast(next[kind], cooldowns[kind], "not shorter after the next failure")
          const longest = kind === "withToken" || isRefusal
            ? policy.cooldownMax
            : Math.min(policy.cooldownMax, Math.max(policy.cooldownBase, 5000))
          const target = Math.min(doubled, longest)
          assert.isAtLeast(withoutRetryAfter[kind], target * 0.75)
          assert.isAtMost(withoutRetryAfter[kind], Math.ceil(target))
          assert.isTrue(Number.isInteger(withoutRetryAfter[kind]), "whole milliseconds")
        }
        assert.isAtMost(cooldowns.withoutToken, cooldowns.withToken)
        const ofRenewal = cooldown.lengths(policy, { ...options, isRenewal: true })
        deepStrictEqual(ofRenewal, { withToken: cooldowns.withToken, withoutToken: capped }, "after a renewal")
      },
      { fastCheck: { numRuns: 1000 } }
    )
  })
})
