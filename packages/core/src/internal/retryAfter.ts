import * as Option from "effect/Option"

/** The three forms of an HTTP date (RFC 9110 §5.6.7). asctime has no time zone. */
const httpDate = /^[A-Za-z]{3,9}, \d{2}[ -][A-Za-z]{3}[ -](\d{4}|\d{2}) \d{2}:\d{2}:\d{2} GMT$/
const asctime = /^[A-Za-z]{3} [A-Za-z]{3} [ \d]\d \d{2}:\d{2}:\d{2} \d{4}$/

/** `DateTime.make` does not accept `GMT` as a time zone. */
const parseDate = (text: string): Option.Option<number> =>
  Option.liftPredicate(
    httpDate.test(text) ? Date.parse(text) : asctime.test(text) ? Date.parse(`${text} GMT`) : NaN,
    Number.isFinite
  )

/**
 * The delay of a `Retry-After` header in milliseconds (RFC 9110 §10.2.3): seconds or a date, at most `max`. A past date
 * is 0. Other values are ignored. The longest of several values counts. A date is compared with the `Date` of the
 * response, if there is one, so that a wrong system clock has no effect.
 */
export const milliseconds = (
  headers: Readonly<Record<string, string | undefined>>,
  now: number,
  max: number
): Option.Option<number> => {
  const { date: sent, "retry-after": requested } = headers
  const answeredAt = Option.getOrElse(Option.flatMap(Option.fromNullable(sent), parseDate), () => now)
  return Option.fromNullable(requested).pipe(
    Option.map((value) => value.trim()),
    Option.flatMap((value) =>
      /^\d+(\s*,\s*\d+)*$/.test(value)
        ? Option.some(Math.max(...value.split(",").map(Number)) * 1000)
        : Option.map(parseDate(value), (date) => date - answeredAt)
    ),
    Option.map((wait) => Math.min(Math.max(wait, 0), max))
  )
}
