/** The rows for the token endpoint: each scenario, once per client. */
import { assert } from "@effect/vitest"
import type { AccessToken, AccessTokenError } from "@store-api/core"
import { Scenario } from "@store-api/emulator"
import { Cause, DateTime, Exit, Option } from "effect"
import type { Client } from "../support/clients.js"
import { isFailure } from "../support/effectLine.js"
import { describeError, margin, type Observation, observe, type Timing } from "./observation.js"

export const names = Scenario.names.filter((name) => name.startsWith("token/"))

export type Row = Observation<AccessToken.AccessToken, AccessTokenError.AccessTokenError>

/** The expected outcome of a scenario. */
interface Expectation {
  readonly outcomes: ReadonlyArray<string>
  /** What `least` and `most` count. */
  readonly unit: "request" | "attempt"
  readonly least: number
  readonly most: number
}

/** The first attempt and five retries. */
const mostAttempts = 6

/** Parses `X (Reason) or Y after N attempts`. */
const parse = (expected: string): Expectation => {
  const [, outcomes = expected, amount = "any", unit = "attempts"] =
    / *(.+?) after (one|several|\d+) (requests?|attempts?)$/.exec(expected) ?? []
  const bounds = {
    one: [1, 1],
    several: [2, mostAttempts],
    any: [1, mostAttempts]
  }[amount] ?? [Number(amount), Number(amount)]
  return {
    outcomes: outcomes.split(" or "),
    unit: unit.startsWith("request") ? "request" : "attempt",
    least: bounds[0] ?? 1,
    most: bounds[1] ?? mostAttempts
  }
}

/** Short limits where a timeout is expected, otherwise enough time for all attempts. */
const timing = (expected: string): Timing =>
  expected.includes("(Timeout)")
    ? { attemptTimeout: 400, deadline: 2500 }
    : { attemptTimeout: 10_000, deadline: 30_000 }

export const run = (name: Scenario.Name, client: Client) =>
  observe(
    { client, scenario: Scenario.all[name], timing: timing(Scenario.all[name].expected) },
    ({ provider }) => provider.get
  )

/** The least duration of a scenario with a delay. */
const leastMillis = (name: string): number =>
  // If a header is sent twice, node:http returns only the first one.
  /retry-after-(seconds|date|twice)$|slow-answer$/.test(name) ? 990 : 0

/** More than the server can write before it detects that the client closed the connection. */
const mostBytes = 16 * 1024 * 1024

export const check = (name: Scenario.Name, row: Row): void => {
  const { expected } = Scenario.all[name]
  const expectation = parse(expected)
  const { deadline } = timing(expected)
  assert.isTrue(Option.isSome(row.exit), "the run ended")
  if (Option.isNone(row.exit)) return
  const exit = row.exit.value
  if (Exit.isFailure(exit)) assert.isTrue(isFailure(exit.cause), Cause.pretty(exit.cause))

  const error = Exit.isFailure(exit) ? Cause.failureOption(exit.cause) : Option.none()
  assert.include(
    [
      ...expectation.outcomes,
      ...expectation.outcomes.map((outcome) => outcome.replace(/ .*/, "")),
      // On a busy machine, a lifetime of one second may pass before the token arrives.
      ...name.endsWith("expires-in-one") && row.elapsed >= 1000 ? ["TokenExpiredError"] : []
    ],
    Option.match(error, { onNone: () => "a token", onSome: describeError })
  )
  assert.isBelow(row.elapsed, deadline + margin, "within the deadline")
  assert.isAtLeast(row.elapsed, leastMillis(name), "not before the delay")

  const attempts = Option.match(error, {
    onNone: () => row.requests.length,
    onSome: (error) => error._tag === "TokenRequestError" ? error.attempts : row.requests.length
  })
  const counted = expectation.unit === "request" ? row.requests.length : attempts
  assert.isAtLeast(counted, expectation.least, `${expectation.unit}s`)
  assert.isAtMost(counted, expectation.most, `${expectation.unit}s`)
  assert.isAtMost(row.requests.length, attempts, "every request is counted as an attempt")
  assert.isTrue(row.requests.every(({ kind }) => kind === "token"), "all requests are token requests")
  assert.isBelow(
    Math.max(0, ...row.requests.map(({ sentBytes }) => sentBytes)),
    mostBytes,
    "the client stops reading near the size limit"
  )

  assert.lengthOf(row.elsewhere, 0, "nothing at the other origin")
  assert.strictEqual(row.socketsLeft, 0, "no socket is left")
  assert.isFalse(row.leaked, "no secret and no token is revealed")
  if (name.endsWith("retry-after-year")) {
    const retryAt = Option.flatMap(error, ({ retryAt }) => retryAt)
    assert.isTrue(
      Option.exists(retryAt, (at) => at.epochMillis > DateTime.unsafeNow().epochMillis),
      "retryAt is in the future"
    )
  }
}
