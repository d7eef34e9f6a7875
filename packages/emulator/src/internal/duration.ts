/** Lengths of time as they are typed on a command line: `500ms`, `2s`, `5m`, `1h`, or the long form `2 seconds`. */
import * as Duration from "effect/Duration"
import * as Option from "effect/Option"

const units = {
  ms: Duration.millis,
  millis: Duration.millis,
  s: Duration.seconds,
  second: Duration.seconds,
  seconds: Duration.seconds,
  m: Duration.minutes,
  minute: Duration.minutes,
  minutes: Duration.minutes,
  h: Duration.hours,
  hour: Duration.hours,
  hours: Duration.hours
}

const isUnit = (text: string): text is keyof typeof units => Object.hasOwn(units, text)

export const parse = (text: string): Option.Option<Duration.Duration> => {
  const [, amount = "", unit = ""] = /^(\d+(?:\.\d+)?) ?([a-z]+)$/.exec(text) ?? []
  return isUnit(unit) ? Option.some(units[unit](Number(amount))) : Option.none()
}
