/** Text for a terminal, or for a pipe. */
import { Config, Console, Duration, Effect, Redacted } from "effect"

/** Removes everything that a terminal would interpret. */
export const stripped = (text: string): string => text.replace(/[\p{C}\p{Zl}\p{Zp}]/gu, "")

/** The text of a server as one printable line. */
export const printable = (text: string): string => stripped(text).slice(0, 100)

/** Masks an e-mail address, which may belong to a person. Enough remains to distinguish two addresses. */
export const masked = (email: Redacted.Redacted): string => {
  const [local = "", domain = ""] = printable(Redacted.value(email)).split("@")
  const top = domain.includes(".") ? domain.slice(domain.lastIndexOf(".")) : ""
  return `${local.slice(0, 1)}***@${domain.slice(0, 1)}***${top}`
}

export const milliseconds = (millis: number): string =>
  `${millis.toFixed(millis < 10 ? 2 : 0)} ms`

export const duration = (took: Duration.Duration): string =>
  milliseconds(Duration.toMillis(took))

export interface Paint {
  readonly bold: (text: string) => string
  readonly green: (text: string) => string
  readonly yellow: (text: string) => string
  readonly red: (text: string) => string
}

const code = (start: number, end: number) => (text: string) =>
  text && `\u001b[${start}m${text}\u001b[${end}m`

const plain = (text: string) => text

/** Colours on a terminal, unless NO_COLOR is set (https://no-color.org). */
export const paint: Effect.Effect<Paint> = Effect.map(
  Effect.orElseSucceed(Config.string("NO_COLOR"), () => ""),
  (noColor) =>
    process.stdout.isTTY && noColor === ""
      ? { bold: code(1, 22), green: code(32, 39), yellow: code(33, 39), red: code(31, 39) }
      : { bold: plain, green: plain, yellow: plain, red: plain }
)

/** How many characters fit on a line, if the output is a terminal that reports its width. */
export const width: Effect.Effect<number> = Effect.sync(() =>
  process.stdout.isTTY && process.stdout.columns > 0 ? process.stdout.columns : Infinity
)

export const title = (text: string) =>
  Effect.flatMap(paint, ({ bold }) => Console.log(`\n${bold(text)}`))

export const row = (label: string, text: string) =>
  Console.log(`   ${label.padEnd(15)} ${text}`)
