import { maxRetryAfter } from "../backoff.js"

/** The three forms of an HTTP date (RFC 9110 §5.6.7). asctime has no time zone. */
const httpDate = /^[A-Za-z]{3,9}, \d{2}[ -][A-Za-z]{3}[ -](\d{4}|\d{2}) \d{2}:\d{2}:\d{2} GMT$/
const asctime = /^[A-Za-z]{3} [A-Za-z]{3} [ \d]\d \d{2}:\d{2}:\d{2} \d{4}$/

/** NaN without a date. `DateTime.make` does not accept `GMT` as a time zone. */
const parseDate = (text: string): number =>
  httpDate.test(text) ? Date.parse(text) : asctime.test(text) ? Date.parse(`${text} GMT`) : NaN

/**
 * The delay of a `Retry-After` header in milliseconds (RFC 9110 §10.2.3): seconds or a date, at most an hour. A past
 * date is 0. Other values are ignored. The longest of several values counts. A date is compared with the `Date` of the
 * response, if there is one, so that a wrong system clock has no effect.
 */
export const milliseconds = (
  headers: Readonly<Record<string, string | undefined>>,
  now: number
): number | undefined => {
  const { date = "", "retry-after": requested = "" } = headers
  const value = requested.trim()
  const sentAt = parseDate(date)
  const wait = /^\d+(\s*,\s*\d+)*$/.test(value)
    ? Math.max(...value.split(",").map(Number)) * 1000
    : parseDate(value) - (Number.isNaN(sentAt) ? now : sentAt)
  return Number.isNaN(wait) ? undefined : Math.min(Math.max(wait, 0), maxRetryAfter)
}
