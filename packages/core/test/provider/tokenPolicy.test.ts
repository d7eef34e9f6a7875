/** Pure functions of the provider: margins, cooldowns and states. */
import { assert, describe, it } from "@effect/vitest"
import { deepStrictEqual } from "@effect/vitest/utils"
import { AccessToken, TokenSource } from "@store-api/core"
import { prop } from "@store-api/testing/test"
import {
  DateTime,
  Deferred,
  Duration,
  Effect,
  Exit,
  FastCheck as FC,
  FiberId,
  Redacted
} from "effect"
import { maxLife } from "../../src/internal/lifetime.js"
import * as heldToken from "../../src/internal/provider/heldToken.js"
import * as tokenPolicy from "../../src/internal/provider/tokenPolicy.js"
import * as tokenState from "../../src/internal/provider/tokenState.js"
import { isRepeated, isRepeatedDue, lifeOfRepeated } from "../../src/internal/repeatedToken.js"

const hour = 3_600_000

/** A token that was acquired at 0, in milliseconds of the wall clock. */
const token = (value: string, expiresAt = hour) =>
  new AccessToken.AccessToken({
    value: Redacted.make(value),
    acquiredAt: DateTime.unsafeMake(0),
    expiresAt: DateTime.unsafeMake(expiresAt)
  })

/** From 0 (inclusive) to 1 (exclusive). */
const chance = FC.double({ min: 0, max: 1, maxExcluded: true, noNaN: true })
const lifetime = FC.double({ min: 0, max: maxLife, noNaN: true })

/** Durations that a configuration may contain, also outside their useful range. */
const anyDuration: FC.Arbitrary<Duration.DurationInput | undefined> = FC.oneof(
  FC.constantFrom<Duration.DurationInput | undefined>(
    undefined,
    0,
    Infinity,
    1e308,
    Number.MIN_VALUE,
    "0 seconds",
    "3650 days",
    Duration.infinity,
    Duration.zero,
    10n ** 30n
  ),
  FC.double({ min: 0, noNaN: true }),
  FC.nat().map(Duration.seconds)
)

const policyOf = (options?: Parameters<typeof tokenPolicy.make>[0]) =>
  Effect.runSync(tokenPolicy.make(options))

const policies = FC.record({
  refreshAhead: anyDuration,
  leeway: anyDuration,
  cooldown: FC.option(FC.record({ base: anyDuration, max: anyDuration }), { nil: undefined })
}).map(policyOf)

const defaults: tokenPolicy.TokenPolicy = {
  refreshAhead: 300_000,
  leeway: 30_000,
  cooldownBase: 1000,
  cooldownMax: 60_000
}

describe("tokenPolicy", () => {
  describe("make", () => {
    it("the default durations are 5 minutes, 30 seconds, 1 second, 60 seconds", () => {
      deepStrictEqual(policyOf(), defaults)
      deepStrictEqual(
        policyOf({
          refreshAhead: undefined,
          leeway: undefined,
          cooldown: { base: undefined, max: undefined }
        }),
        defaults
      )
      deepStrictEqual(policyOf({ cooldown: undefined }), defaults)
    })

    it("a policy accepts durations in every form", () => {
      deepStrictEqual(
        policyOf({
          refreshAhead: Duration.minutes(1),
          leeway: 5000,
          cooldown: { base: "2 seconds", max: "10 minutes" }
        }),
        { refreshAhead: 60_000, leeway: 5000, cooldownBase: 2000, cooldownMax: 600_000 }
      )
    })

    it("cooldown.max is at most 1 hour", () => {
      assert.strictEqual(policyOf({ cooldown: { max: "1 days" } }).cooldownMax, hour)
    })

    it("cooldown.base is at most cooldown.max", () => {
      const { cooldownBase } = policyOf({ cooldown: { base: "5 minutes", max: "1 minutes" } })
      assert.strictEqual(cooldownBase, 60_000)
    })

    prop(
      "every duration of a policy is valid for any options",
      [policies],
      ([policy]) => {
        for (const value of Object.values(policy) as ReadonlyArray<number>) {
          assert.isTrue(
            value >= 0
          )
        }
        assert.isAtMost(policy.cooldownMax, hour)
        assert.isAtMost(policy.cooldownBase, policy.cooldownMax)
      }
    )
  })

  describe("margins", () => {
    prop(
      "margins are fractions of the lifetime, limited by the options",
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

  it("a renewal brings progress only if it returns another token that expires later", () => {
    const renewed = [token("two", hour + 1), token("two"), token("one", hour + 1)]
    deepStrictEqual(renewed.map((next) => isRepeated(token("one"), next)), [false, true, true])
  })

  const isDue = (left: number, remaining: number) =>
    isRepeatedDue({ left: remaining, life: left })

  it("a repeated token is renewed when a quarter of what was left is left", () => {
    deepStrictEqual([isDue(40_000, 10_001), isDue(40_000, 10_000)], [false, true])
  })

  it("a repeated token is not renewed within its last 8 seconds", () => {
    deepStrictEqual([lifeOfRepeated(8000), lifeOfRepeated(7999)], [8000, 0])
    deepStrictEqual([isDue(7999, 1), isDue(7999, 0)], [false, true])
  })

  describe("an acquisition", () => {
    const now = { wall: 1000, monotonic: 1000 }
    const inFlight: tokenState.InFlight = {
      acquisition: TokenSource.missing,
      startedAt: now,
      done: Deferred.unsafeMake(FiberId.none)
    }
    const land = (state: tokenState.State, received: AccessToken.AccessToken) =>
      tokenState.land(policyOf(), { inFlight, exit: Exit.succeed(received), chance: 0 })(
        { ...state, inFlight },
        now
      )

    it.each([
      { received: token("one"), expected: true, what: "the rejected token" },
      {
        received: token("two", hour - 1),
        expected: false,
        what: "another token, even with a shorter lifetime"
      }
    ])(
      "an acquisition after a rejection counts as repeated, $expected, for $what",
      ({ expected, received }) => {
        const [, holding] = land(tokenState.initial, token("one"))
        const [, rejected] = tokenState.reject(token("one"))(holding, now)
        const [, next] = land(rejected, received)
        assert.strictEqual(next.held?.repeated, expected)
      }
    )
  })

  describe("state", () => {
    const margins = { refreshAhead: 300, leeway: 30 }
    const start = { wall: 0, monotonic: 0 }

    /** The state of a token that starts now. */
    const state = (margins: tokenPolicy.Margins, life: number) =>
      // Only these fields count.
      heldToken.stateOf({ margins, life, since: start } as heldToken.Held, start)

    it("the state changes when exactly the margin is left", () => {
      const states = [300, 299.999, 30, 29.999, Number.MIN_VALUE, 0].map((remaining) =>
        state(margins, remaining)
      )
      deepStrictEqual(states, [
        "Fresh",
        "RefreshSoon",
        "RefreshSoon",
        "MustWait",
        "MustWait",
        "Expired"
      ])
    })

    prop(
      "the state is never fresher when less time is left",
      [policies, lifetime, chance, FC.double({ noNaN: true }), FC.double({ noNaN: true })],
      ([policy, lifetime, chance, one, other]) => {
        const order: ReadonlyArray<string> = ["Expired", "MustWait", "RefreshSoon", "Fresh"]
        const margins = tokenPolicy.margins(policy, lifetime, chance)
        const age = (remaining: number) => order.indexOf(state(margins, remaining))
        assert.isAtMost(age(Math.min(one, other)), age(Math.max(one, other)))
        assert.strictEqual(state(margins, Math.min(one, 0)), "Expired")
        if (lifetime > 0) {
          assert.strictEqual(state(margins, lifetime), "Fresh", "a new token is Fresh")
        }
      }
    )
  })

  describe("cooldowns", () => {
    const kinds = ["withToken", "withoutToken"] as const
    const cases = [
      policies,
      FC.integer({ min: 1, max: 10_000 }),
      chance,
      FC.boolean(),
      FC.double({ noNaN: true })
    ] as const
    const numRuns = { fastCheck: { numRuns: 500 } }

    const lengthsOf = (
      [policy, failures, chance, isRefusal, retryAfter]: readonly [
        tokenPolicy.TokenPolicy,
        number,
        number,
        boolean,
        number
      ],
      options: Partial<Parameters<typeof tokenPolicy.cooldownLengths>[1]> = {}
    ) =>
      tokenPolicy.cooldownLengths(policy, {
        failures,
        chance,
        isRefusal,
        retryAfter,
        isRenewal: false,
        ...options
      })

    prop("cooldowns are finite for any options", cases, (values) => {
      const lengths = lengthsOf(values)
      for (const kind of kinds) {
        assert.isTrue(Number.isFinite(lengths[kind]))
        assert.isTrue(lengths[kind] >= 0 && lengths[kind] <= hour)
      }
      assert.isAtMost(lengths.withoutToken, lengths.withToken)
    }, numRuns)

    prop(
      "a cooldown is as long as Retry-After if that is longer, up to one hour",
      cases,
      (values) => {
        const [lengths, without] = [lengthsOf(values), lengthsOf(values, { retryAfter: 0 })]
        const capped = Math.min(Math.max(values[4], 0), hour)
        for (const kind of kinds) {
          assert.strictEqual(lengths[kind], Math.max(without[kind], capped))
        }
      },
      numRuns
    )

    prop("a cooldown is not shorter after the next failure", cases, (values) => {
      const [lengths, next] = [
        lengthsOf(values),
        lengthsOf(values, { failures: values[1] + 1 })
      ]
      for (const kind of kinds) assert.isAtLeast(next[kind], lengths[kind])
    }, numRuns)

    prop(
      "a cooldown is at least three quarters of the doubled base in whole milliseconds",
      cases,
      (values) => {
        const [policy, failures, , isRefusal] = values
        const lengths = lengthsOf(values, { retryAfter: 0 })
        const doubled = policy.cooldownBase * 2 ** Math.min(failures - 1, 100)
        for (const kind of kinds) {
          const longest = kind === "withToken" || isRefusal
            ? policy.cooldownMax
            : Math.min(policy.cooldownMax, Math.max(policy.cooldownBase, 5000))
          const target = Math.min(doubled, longest)
          assert.isAtLeast(lengths[kind], target * 0.75)
          assert.isAtMost(lengths[kind], Math.ceil(target))
          assert.isTrue(Number.isInteger(lengths[kind]))
        }
      },
      numRuns
    )

    prop(
      "only Retry-After delays a caller without a token after a failed renewal",
      cases,
      (values) => {
        const ofRenewal = lengthsOf(values, { isRenewal: true })
        const capped = Math.min(Math.max(values[4], 0), hour)
        deepStrictEqual(ofRenewal, {
          withToken: lengthsOf(values).withToken,
          withoutToken: capped
        })
      },
      numRuns
    )
  })
})
