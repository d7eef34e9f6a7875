import { assert, describe, it } from "@effect/vitest"
import { deepStrictEqual } from "@effect/vitest/utils"
import { Duration, FastCheck as FC } from "effect"
import * as tokenPolicy from "../src/internal/tokenPolicy.js"

const hour = 3_600_000

/** From 0 (inclusive) to 1 (exclusive). */
const chance = FC.double({ min: 0, max: 1, maxExcluded: true, noNaN: true })
const life = FC.double({ min: 0, max: tokenPolicy.maxLife, noNaN: true })

/** Durations as a careless configuration may give them. */
const absurd: FC.Arbitrary<Duration.DurationInput | undefined> = FC.oneof(
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
  refreshAhead: absurd,
  leeway: absurd,
  cooldown: FC.option(FC.record({ base: absurd, max: absurd }), { nil: undefined })
}).map(tokenPolicy.make)

const defaults: tokenPolicy.TokenPolicy = {
  refreshAhead: 300_000,
  leeway: 30_000,
  cooldownBase: 1000,
  cooldownMax: 60_000
}

const failing = (failures: number, options: Partial<Parameters<typeof tokenPolicy.pauses>[1]> = {}) =>
  tokenPolicy.pauses(defaults, { failures, refused: false, retryAfter: 0, chance: 0, ...options })

/** The greatest number that chance may be. */
const almostOne = 1 - Number.EPSILON / 2

describe("tokenPolicy", () => {
  it("no token lives longer than an hour, and no Retry-After is honoured for longer", () => {
    assert.strictEqual(tokenPolicy.maxLife, hour)
    assert.strictEqual(tokenPolicy.maxRetryAfter, hour)
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

    it("takes durations in every form", () => {
      deepStrictEqual(
        tokenPolicy.make({
          refreshAhead: Duration.minutes(1),
          leeway: 5000,
          cooldown: { base: "2 seconds", max: "10 minutes" }
        }),
        { refreshAhead: 60_000, leeway: 5000, cooldownBase: 2000, cooldownMax: 600_000 }
      )
    })

    it("the longest pause is at most an hour, and the first no longer than the longest", () => {
      assert.strictEqual(tokenPolicy.make({ cooldown: { max: "1 days" } }).cooldownMax, hour)
      const policy = tokenPolicy.make({ cooldown: { base: "5 minutes", max: "1 minutes" } })
      deepStrictEqual([policy.cooldownBase, policy.cooldownMax], [60_000, 60_000])
    })

    it.prop("whatever the options, no knob is negative or NaN, and pauses are finite", [policies], ([policy]) => {
      for (const knob of Object.values(policy) as ReadonlyArray<number>) assert.isTrue(knob >= 0)
      assert.isAtMost(policy.cooldownMax, hour)
      assert.isAtMost(policy.cooldownBase, policy.cooldownMax)
    })
  })

  describe("margins", () => {
    it("of an hour: 4 to 5 minutes and 30 seconds", () => {
      deepStrictEqual(tokenPolicy.margins(defaults, hour, 0), { refreshAhead: 240_000, leeway: 30_000 })
      const longest = tokenPolicy.margins(defaults, hour, almostOne)
      assert.closeTo(longest.refreshAhead, 300_000, 1e-6)
      assert.isAtMost(longest.refreshAhead, 300_000)
    })

    it("of a short life: 25 % (of which 80 to 100 %) and 5 % of it", () => {
      deepStrictEqual(tokenPolicy.margins(defaults, 10_000, 0), { refreshAhead: 2000, leeway: 500 })
      assert.closeTo(tokenPolicy.margins(defaults, 10_000, 0.5).refreshAhead, 2250, 1e-6)
    })

    it.prop("stay parts of the life and of the options", [policies, life, chance], ([policy, life, chance]) => {
      const { leeway, refreshAhead } = tokenPolicy.margins(policy, life, chance)
      assert.isTrue(Number.isFinite(refreshAhead) && Number.isFinite(leeway))
      const longest = Math.min(policy.refreshAhead, life * 0.25)
      assert.isAtLeast(refreshAhead, longest * 0.8)
      assert.isAtMost(refreshAhead, longest)
      assert.strictEqual(leeway, Math.min(policy.leeway, life * 0.05))
    })
  })

  describe("state", () => {
    const margins = { refreshAhead: 300, leeway: 30 }

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
    )("with %d left: %s", (remaining, state) => {
      assert.strictEqual(tokenPolicy.stateOf(margins, remaining), state)
    })

    it.prop(
      "ages in one direction: less left is never a fresher state, and nothing left is always expired",
      [policies, life, chance, FC.double({ noNaN: true }), FC.double({ noNaN: true })],
      ([policy, life, chance, one, other]) => {
        const order: ReadonlyArray<tokenPolicy.TokenState> = ["Expired", "MustWait", "RefreshSoon", "Fresh"]
        const margins = tokenPolicy.margins(policy, life, chance)
        const age = (remaining: number) => order.indexOf(tokenPolicy.stateOf(margins, remaining))
        assert.isAtMost(age(Math.min(one, other)), age(Math.max(one, other)))
        assert.strictEqual(tokenPolicy.stateOf(margins, Math.min(one, 0)), "Expired")
        if (life > 0) assert.strictEqual(tokenPolicy.stateOf(margins, life), "Fresh", "a token is born fresh")
      }
    )
  })

  describe("pauses", () => {
    it("double from 1 s to 60 s while a token is held, and to 5 s while callers fail", () => {
      const all = [1, 2, 3, 4, 5, 6, 7, 8, 10_000].map((failures) => failing(failures, { chance: almostOne }))
      const rounded = (pauses: ReadonlyArray<number>) => pauses.map(Math.round)
      deepStrictEqual(
        rounded(all.map(({ holding }) => holding)),
        [1000, 2000, 4000, 8000, 16_000, 32_000, 60_000, 60_000, 60_000]
      )
      deepStrictEqual(
        rounded(all.map(({ failing }) => failing)),
        [1000, 2000, 4000, 5000, 5000, 5000, 5000, 5000, 5000]
      )
    })

    it("double to 60 s for callers too when the endpoint refused the credentials", () => {
      for (const failures of [1, 2, 5, 10, 100]) {
        const { failing: whileFailing, holding } = failing(failures, { refused: true })
        assert.strictEqual(whileFailing, holding)
      }
      assert.strictEqual(failing(100, { refused: true }).failing, 45_000)
    })

    it("jitter takes away at most a quarter", () => {
      deepStrictEqual(failing(3, { chance: 0 }), { holding: 3000, failing: 3000 })
      deepStrictEqual(failing(3, { chance: 0.5 }), { holding: 3500, failing: 3500 })
    })

    it("a base above 5 s is kept while callers fail", () => {
      const policy = tokenPolicy.make({ cooldown: { base: "20 seconds" } })
      const { failing, holding } = tokenPolicy.pauses(policy, {
        failures: 2,
        refused: false,
        retryAfter: 0,
        chance: almostOne
      })
      deepStrictEqual([Math.round(failing), Math.round(holding)], [20_000, 40_000])
    })

    it("Retry-After lengthens both, up to an hour, and never shortens", () => {
      deepStrictEqual(failing(1, { retryAfter: 30_000 }), { holding: 30_000, failing: 30_000 })
      deepStrictEqual(failing(1, { retryAfter: 10 * hour }), { holding: hour, failing: hour })
      deepStrictEqual(failing(10, { retryAfter: 100 }), failing(10))
      deepStrictEqual(failing(10, { retryAfter: -100 }), failing(10))
    })

    it.prop(
      "whatever the options and however many failures: finite, within their bounds, growing with each failure",
      [policies, FC.integer({ min: 1, max: 10_000 }), chance, FC.boolean(), FC.double({ noNaN: true })],
      ([policy, failures, chance, refused, retryAfter]) => {
        const options = { failures, chance, refused, retryAfter }
        const pauses = tokenPolicy.pauses(policy, options)
        const unasked = tokenPolicy.pauses(policy, { ...options, retryAfter: 0 })
        const next = tokenPolicy.pauses(policy, { ...options, failures: failures + 1 })
        const asked = Math.min(Math.max(retryAfter, 0), hour)
        const doubled = policy.cooldownBase * 2 ** Math.min(failures - 1, 100)
        for (const kind of ["holding", "failing"] as const) {
          assert.isTrue(Number.isFinite(pauses[kind]))
          assert.isTrue(pauses[kind] >= 0 && pauses[kind] <= hour)
          assert.strictEqual(pauses[kind], Math.max(unasked[kind], asked), "the longer of the two")
          assert.isAtLeast(next[kind], pauses[kind], "the next failure waits no less")
          const longest = kind === "holding" || refused
            ? policy.cooldownMax
            : Math.min(policy.cooldownMax, Math.max(policy.cooldownBase, 5000))
          const target = Math.min(doubled, longest)
          assert.isAtLeast(unasked[kind], target * 0.75)
          assert.isAtMost(unasked[kind], Math.ceil(target))
          assert.isTrue(Number.isInteger(unasked[kind]), "whole milliseconds, which every clock can count")
        }
        assert.isAtMost(pauses.failing, pauses.holding)
      },
      { fastCheck: { numRuns: 1000 } }
    )
  })

  describe("rejectionInterval", () => {
    it("doubles from 1 s to 60 s, until 60 s pass without a rejection", () => {
      let interval = tokenPolicy.rejectionInterval(0, Infinity)
      assert.strictEqual(interval, 1000)
      const seen = Array.from({ length: 8 }, () => interval = tokenPolicy.rejectionInterval(interval, 59_999))
      deepStrictEqual(seen, [2000, 4000, 8000, 16_000, 32_000, 60_000, 60_000, 60_000])
      assert.strictEqual(tokenPolicy.rejectionInterval(interval, 60_000), 1000)
    })

    it.prop(
      "is always between 1 s and 60 s",
      [FC.double({ min: 1000, max: 60_000, noNaN: true }), FC.double({ min: 0, noNaN: true })],
      ([previous, sinceLast]) => {
        const interval = tokenPolicy.rejectionInterval(previous, sinceLast)
        assert.isTrue(interval >= 1000 && interval <= 60_000)
      }
    )
  })
})
