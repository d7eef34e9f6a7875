/** Completes a command line for the scripts of `store-api completion`. */
import * as Effect from "effect/Effect"
import type { Commands } from "../../Command.js"
import * as flags from "../../flags.js"
import * as output from "../../output.js"
import { profileNames } from "../../settings/profiles.js"
import { shells } from "./scripts.js"

/** Prints the words that may replace the last one, each with a tab and its meaning. In bash, a "=" is a word. */
export const complete = (commands: Commands, words: ReadonlyArray<string>) =>
  Effect.gen(function*() {
    const [prefix = ""] = /^--[\w-]+=/.exec(words.at(-1) ?? "") ?? []
    const before = [...words.slice(0, -1), prefix.slice(0, -1)].filter((word) =>
      word !== "=" && word !== ""
    )
    const tables = Object.values(commands).map(({ flags }) => flags)
    const valueFlags = tables.flatMap(Object.entries<flags.Flag>).filter(([, { value }]) =>
      value !== undefined
    )
    const flagOf = (word: string | undefined) =>
      valueFlags.find(([name, { alias }]) =>
        word === `--${name}` || word === `-${alias ?? name}`
      )
        ?.[1]
    const isOfPath = (word: string, at: number) =>
      !word.startsWith("-") && flagOf(before[at - 1]) === undefined
    const path = before.filter(isOfPath).join(" ")
    const [first = "", second = ""] = path.split(" ")
    const table: flags.Flags = (commands[`${first} ${second}`] ?? commands[first])?.flags ??
      flags.commonFlags
    const pendingFlag = flagOf(before.at(-1))
    if (pendingFlag !== undefined) return yield* print(yield* valuesOf(pendingFlag), prefix)
    if ((words.at(-1) ?? "").startsWith("-")) {
      const rows = Object.entries(table).map(([name, { text }]): Row => [`--${name}`, text])
      return yield* print([["--help", "Print the help of the command"], ...rows])
    }
    if (path === "completion") return yield* print(shells.map((shell) => [shell]))
    if (/^profile (remove|show)$/.test(path)) return yield* print(yield* profileRows)
    if (path === "emulator fail") {
      return yield* print(yield* scenarioRows)
    }
    const start = `${path.replace(/^help\b/, "")} `.trimStart()
    const rows = Object.entries(commands).filter(([name]) => name.startsWith(start))
      .map(([name, { text }]): Row => [name.slice(start.length), text])
    return yield* print(
      start === "" ? [...rows, ["help", "Print the help of a command"]] : rows
    )
  })

/** A word, and what it means. */
type Row = readonly [word: string, text?: string | undefined]

const profileRows = Effect.map(
  profileNames,
  (names) => names.map((name): Row => [name, "profile"])
)

const scenarioRows = Effect.map(
  Effect.promise(() => import("@store-api/emulator/Scenario")),
  ({ all, describeOutcome, names }) =>
    names.map((name): Row => [name, describeOutcome(all[name].outcome)])
)

const offers = { profiles: profileRows, scenarios: scenarioRows }

const valuesOf = ({ choices = [], offers: name }: flags.Flag) =>
  name === undefined
    ? Effect.succeed(choices.map((word): Row => [word]))
    : offers[name]

/** A command of two words is offered after its first one. */
const print = (rows: ReadonlyArray<Row>, prefix = "") =>
  output.write(
    "stdout",
    rows.map((row) => row[0].includes(" ") ? "" : `${prefix}${row.join("\t")}\n`).join("")
  )
