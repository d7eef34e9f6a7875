/** The events of the demo, and the tokens of a run as bars over time, as plain text. */
import type { AccessToken } from "@store-api/core"
import { Clock, Console, Context, DateTime, Effect, Layer, Ref } from "effect"
import * as show from "./show.js"

interface TokenEntry {
  readonly acquiredAt: number
  readonly expiresAt: number
  readonly revokedAt: number
}

interface Entries {
  readonly tokens: ReadonlyArray<TokenEntry>
  readonly calls: ReadonlyArray<number>
}

/** The events so far. */
export class Journal
  extends Context.Tag("@store-api/examples/Journal")<Journal, Ref.Ref<Entries>>()
{}

export const layerJournal = Layer.effect(Journal, Ref.make<Entries>({ tokens: [], calls: [] }))

const write = (change: (entries: Entries, now: number) => Entries) =>
  Effect.gen(function*() {
    const now = yield* Clock.currentTimeMillis
    yield* Ref.update(yield* Journal, (entries) => change(entries, now))
  })

/** Records a token that is in use, unless it is recorded already. */
export const acquired = (token: AccessToken.AccessToken) => {
  const [acquiredAt, expiresAt] = [token.acquiredAt, token.expiresAt].map(
    DateTime.toEpochMillis
  ) as [number, number]
  return write(({ calls, tokens }) => ({
    calls,
    tokens: tokens.some((known) => known.acquiredAt === acquiredAt)
      ? tokens
      : [...tokens, { acquiredAt, expiresAt, revokedAt: Infinity }]
  }))
}

/** Revokes all tokens that are valid now. */
export const revoked = write(({ calls, tokens }, now) => ({
  calls,
  tokens: tokens.map((token) => token.expiresAt > now ? { ...token, revokedAt: now } : token)
}))

export const called = write(({ calls, tokens }, now) => ({ tokens, calls: [...calls, now] }))

/** The width of the bars, without labels. */
const most = 60
const fewest = 20

const indent = 3
const before = indent + 10
const behind = "× revoked".length

const steps = [0.5, 1, 5, 10, 60, 300, 600, 3600].map((seconds) => seconds * 1000)

/** Draws the journal from the first acquisition to the given moment, unless the terminal is too narrow. */
export const draw = ({ to }: { readonly to: number }) =>
  Effect.gen(function*() {
    const { calls, tokens } = yield* Ref.get(yield* Journal)
    const width = yield* show.width
    const columns = Math.min(width - before - behind, most)
    if (columns < fewest) return
    const from = Math.min(...tokens.map(({ acquiredAt }) => acquiredAt))
    const column = (at: number) =>
      Math.round(((Math.min(at, to) - from) / (to - from)) * columns)
    const paint = yield* show.paint

    yield* show.title("Timeline")
    yield* Console.log(line(...axis(to - from, columns)))
    for (const [index, token] of tokens.entries()) {
      yield* Console.log(line(`token ${index + 1}`, bar(token, column, to, paint)))
    }
    if (calls.length > 0) yield* Console.log(line("calls", marks(calls.map(column), columns)))
    const meanings = [
      "━ fresh",
      "╌ renewal due: the next call starts it",
      ...(calls.length > 0 ? ["• a call"] : [])
    ]
    yield* Console.log(`\n${legend(meanings, width)}`)
  })

const line = (label: string, text: string) =>
  `${" ".repeat(indent)}${label}`.padEnd(before).concat(text).trimEnd()

/** The legend below the bars: on one line if it fits, otherwise one line per entry. */
const legend = (meanings: ReadonlyArray<string>, width: number) => {
  const one = line("", meanings.join("   "))
  return one.length <= width
    ? one
    : meanings.map((meaning) => `${" ".repeat(indent)}${meaning}`).join("\n")
}

const axis = (span: number, columns: number): [label: string, text: string] => {
  const step = steps.find((step) => span / step <= columns / 7.5) ?? span
  const unit = step < 60_000
    ? { name: "seconds", millis: 1000 }
    : { name: "minutes", millis: 60_000 }
  const ticks = Array.from({ length: Math.floor(span / step) + 1 }, (_, index) => index * step)
  return [
    unit.name,
    ticks.reduce(
      (text, tick) =>
        text.padEnd(Math.round((tick / span) * columns)) + String(tick / unit.millis),
      ""
    )
  ]
}

const bar = (
  token: TokenEntry,
  column: (at: number) => number,
  to: number,
  paint: show.Paint
) => {
  const { acquiredAt, expiresAt, revokedAt } = token
  // The default of the provider, without its jitter.
  const refreshAhead = Math.min(5 * 60_000, (expiresAt - acquiredAt) * 0.25)
  const end = Math.min(expiresAt, revokedAt, to)
  const [start, ageing, stop] = [acquiredAt, Math.min(expiresAt - refreshAhead, end), end].map(
    column
  ) as [
    number,
    number,
    number
  ]
  const fate = revokedAt <= to
    ? paint.red("× revoked")
    : expiresAt <= to
    ? paint.yellow("| expires")
    : "> in use"
  return " ".repeat(start) + paint.green("━".repeat(Math.max(ageing - start, 1))) +
    paint.yellow("╌".repeat(Math.max(stop - ageing, 0))) + fate
}

const marks = (at: ReadonlyArray<number>, columns: number) =>
  Array.from({ length: columns + 1 }, (_, column) => at.includes(column) ? "•" : " ").join("")
