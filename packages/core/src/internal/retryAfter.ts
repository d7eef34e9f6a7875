import * as Option from "effect/Option"

/** The three forms of an HTTP date that a recipient must read (RFC 9110 §5.6.7); asctime leaves the time zone out. */
const httpDate = /^[A-Za-z]{3,9}, \d{2}[ -][A-Za-z]{3}[ -](\d{4}|\d{2}) \d{2}:\d{2}:\d{2} GMT$/
const asctime = /^[A-Za-z]{3} [A-Za-z]{3} [ \d]\d \d{2}:\d{2}:\d{2} \d{4}$/

/** Not by `DateTime.make`, which takes `GMT` for no time zone and puts another behind it. */
const parseDate = (text: string): Option.Option<number> =>
  Option.liftPredicate(
    httpDate.test(text) ? Date.parse(text) : asctime.test(text) ? Date.parse(`${text} GMT`) : NaN,
    Number.isFinite
  )

/**
 * How many milliseconds a `Retry-After` header asks to wait (RFC 9110 §10.2.3): seconds or a date, at most `max`; what is
 * past is 0, what is neither is ignored. Of several values, the longest counts. A date is compared with the answer's own
 * `Date`, if it has one, so that a wrong clock here does no harm.
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
