/** The command `store-api-emulator`: parses its arguments by the table of commands. */
import { parseArgs } from "node:util"
import * as Console from "effect/Console"
import * as Effect from "effect/Effect"
import { type Command, commands } from "../EmulatorCommand.js"
import { EmulatorError } from "../EmulatorError.js"

const unusable = (option: string, problem: string) =>
  Effect.fail(new EmulatorError({ reason: "InvalidOption", option, problem: `${problem}; see --help` }))

const start = "store-api-emulator"

const columns = (rows: ReadonlyArray<readonly [string, string]>) =>
  rows.map(([term, text]) => `  ${term.padEnd(34)}${text}`).join("\n")

const helpOf = (name: string, { args = "", examples, flags, more, text }: Command) => {
  const others = Object.entries(commands).filter(([other]) => other !== "")
    .map(([name, { args = "", text }]) => [`${name} ${args}`, text] as const)
  const options = Object.entries(flags)
    .map(([name, { text, value }]) => [`--${name}${value === undefined ? "" : ` <${value}>`}`, text] as const)
  return [
    `Usage: ${[start, name, args].filter((word) => word !== "").join(" ")} [options]`,
    `${text}.${more === undefined ? "" : `\n${more}`}`,
    ...(name === "" ? [`Commands for a running emulator:\n${columns(others)}`] : []),
    `Options:\n${columns([...options, ["--help", "Print this text"]])}`,
    `Examples:\n${examples.map((line) => `  $ ${start} ${line}`).join("\n")}`
  ].join("\n\n")
}

/** Node only splits the line: its own messages have several sentences and repeat what was typed. */
const parse = (args: ReadonlyArray<string>, { args: argument = "", flags }: Command) =>
  Effect.gen(function*() {
    const options = Object.fromEntries(
      Object.entries({ ...flags, help: {} }).map(([name, flag]) => [
        name,
        { type: "value" in flag ? "string" as const : "boolean" as const, multiple: "many" in flag }
      ])
    )
    const { positionals, tokens, values } = parseArgs({ args: [...args], options, strict: false, tokens: true })
    for (const token of tokens) {
      if (token.kind !== "option") continue
      const option = Object.hasOwn(options, token.name) ? options[token.name] : undefined
      if (option === undefined) return yield* unusable(token.rawName, "is not a flag")
      if (option.type === "string" && !token.value) return yield* unusable(token.rawName, "needs a value")
      if (option.type === "boolean" && token.value !== undefined) {
        return yield* unusable(token.rawName, "takes no value")
      }
    }
    const isComplete = values["help"] === true || positionals.length > 0 || !argument.startsWith("<")
    if (positionals.length > (argument === "" ? 0 : 1) || !isComplete) {
      return yield* unusable("The command line", argument === "" ? "must consist of flags" : `must name ${argument}`)
    }
    return { values: values, argument: positionals[0] ?? "" }
  })

const isName = (word: string): word is keyof typeof commands => Object.hasOwn(commands, word)

/** Runs until it is interrupted, or until another command is done; fails with one sentence. */
export const run = (args: ReadonlyArray<string>): Effect.Effect<void, EmulatorError> => {
  const [first = ""] = args
  const name = isName(first) ? first : ""
  const command = commands[name]
  return Effect.flatMap(
    parse(args.slice(name === "" ? 0 : 1), command),
    ({ argument, values }) =>
      values["help"] === true ? Console.log(helpOf(name, command)) : command.run(values, argument)
  )
}
