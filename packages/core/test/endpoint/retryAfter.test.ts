import { assert, describe, it } from "@effect/vitest"
import { FastCheck as FC } from "effect"
import * as retryAfter from "../../src/internal/endpoint/retryAfter.js"
import { prop } from "../support/property.js"

const hour = 3_600_000

describe("retryAfter", () => {
  const now = Date.UTC(2026, 0, 1)
  const read = (value: string | undefined, date?: string) =>
    retryAfter.milliseconds({ "retry-after": value, date }, now)

  it.each([
    ["seconds", "30", 30_000],
    ["0", "0", 0],
    ["leading zeros", "0007", 7000],
    ["surrounding white space", "  30  ", 30_000],
    ["a second below an hour", "3599", 3_599_000],
    ["more than an hour", "3601", hour],
    ["a year", "31536000", hour],
    ["more seconds than a number can hold", "9".repeat(400), hour],
    ["the longer of two values", "5, 30", 30_000],
    ["two values without a space", "30,5", 30_000],
    ["a date", "Thu, 01 Jan 2026 00:00:30 GMT", 30_000],
    ["the current time", "Thu, 01 Jan 2026 00:00:00 GMT", 0],
    ["a date in the past", "Wed, 31 Dec 2025 23:59:59 GMT", 0],
    ["a date in the distant past", "Thu, 01 Jan 1970 00:00:00 GMT", 0],
    ["a date a year ahead", "Fri, 01 Jan 2027 00:00:00 GMT", hour],
    ["a date in the format of RFC 850", "Thursday, 01-Jan-26 00:00:30 GMT", 30_000],
    ["a date in the format of asctime", "Thu Jan  1 00:00:30 2026", 30_000],
    ["a date in the format of asctime with a two-digit day", "Sun Feb 15 00:00:30 2026", hour],
    ["a past date in the format of RFC 850", "Sunday, 06-Nov-94 08:49:37 GMT", 0]
  ])("reads %s: %s", (_name, value, expected) => {
    assert.strictEqual(read(value), expected)
  })

  it.each([
    undefined,
    "",
    " ",
    "-1",
    "+30",
    "1.5",
    "1e3",
    "0x10",
    "30s",
    "30 seconds",
    "PT30S",
    "soon",
    "NaN",
    "Infinity",
    "5,",
    ",5",
    "5, soon",
    "5x, 6",
    "1.5, 6",
    "5; 6",
    "2026-01-01T00:00:30Z",
    "1767225630000 GMT",
    "Thu, 99 Jan 2026 00:00:30 GMT",
    "Thu, 01 Foo 2026 00:00:30 GMT",
    "Thu, 01 Jan 2026 25:00:30 GMT",
    "Thu, 01 Jan 2026 00:00:30 +0100",
    "Thu, 01 Jan 2026 00:00:30",
    "Thu, 01 Jan 2026 00:00:30 GMT+0100",
    "On Thu, 01 Jan 2026 00:00:30 GMT",
    "On Thu Jan  1 00:00:30 2026",
    "Thu Jan  1 00:00:30 2026 +0100",
    "01 Jan 2026 00:00:30 GMT",
    "\u0663\u0660"
  ])("ignores %j", (value) => {
    assert.isUndefined(read(value))
  })

  it("returns nothing without the header", () => {
    assert.isUndefined(retryAfter.milliseconds({}, now))
  })

  it("measures a date from the Date header of the response, if it is valid", () => {
    assert.strictEqual(read("Thu, 01 Jan 2026 12:00:30 GMT", "Thu, 01 Jan 2026 12:00:00 GMT"), 30_000)
    assert.strictEqual(read("Thu, 01 Jan 2026 00:00:30 GMT", "Thu, 01 Jan 2026 00:01:00 GMT"), 0)
    assert.strictEqual(read("Thu, 01 Jan 2026 00:00:30 GMT", "yesterday"), 30_000)
    assert.strictEqual(read("30", "Thu, 01 Jan 2026 12:00:00 GMT"), 30_000)
  })

  prop("returns nothing, or whole milliseconds up to the maximum, for any value", [
    FC.oneof(
      FC.string(),
      FC.integer().map(String),
      FC.double().map(String),
      FC.date().map((date) => date.toUTCString()),
      FC.array(FC.nat().map(String)).map((values) => values.join(", "))
    ),
    FC.option(FC.date({ noInvalidDate: true }).map((date) => date.toUTCString()), { nil: undefined })
  ], ([value, date]) => {
    const wait = read(value, date)
    if (wait !== undefined) assert.isTrue(Number.isSafeInteger(wait) && wait >= 0 && wait <= hour, `${value}: ${wait}`)
  }, { fastCheck: { numRuns: 500 } })
})
