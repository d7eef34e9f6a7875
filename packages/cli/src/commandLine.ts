/** Turns arguments into an exit code. Commander parses the flags strictly and writes the help. */
import * as NodeFileSystem from "@effect/platform-node/NodeFileSystem"
import { Command as Parser, CommanderError, Option } from "commander"
import * as Effect from "effect/Effect"
import * as Either from "effect/Either"
import * as Record from "effect/Record"
import { type Command, type Commands, type FlagValues, load, type Run } from "./Command.js"
import { exitCodes, usageError } from "./CommandError.js"
import * as flags from "./flags.js"
import { Host, version } from "./Host.js"
import * as output from "./output.js"

/** Whether an argument holds a secret. Other users can read it there already, and an error must not repeat it. */
const isSecretFlag = (arg: string): boolean => /^--?(client[-_]?)?secret(=|$)/i.test(arg)

/** The line by which a user runs a command of these words. */
type LineOf = (words: string) => string

const storeApi: LineOf = (words) => `store-api ${words}`.trimEnd()

export const main = (
  commands: Commands,
  args: ReadonlyArray<string>,
  lineOf = storeApi
): Effect.Effect<number> =>
  Effect.suspend(() => run(commands, args, lineOf)).pipe(
    Effect.as(0),
    Effect.catchAll(({ code, message }) =>
      Effect.as(message === "" ? Effect.void : output.problem(message), code)
    ),
    Effect.provide(NodeFileSystem.layer),
    output.withLogger
  )

const run = (commands: Commands, args: ReadonlyArray<string>, lineOf: LineOf): Run => {
  // Arguments after -- belong to another program.
  if (args.slice(0, [...args, "--"].indexOf("--")).some(isSecretFlag)) {
    const why =
      "A secret cannot be a flag, because other users of this machine can read flags."
    return usageError(`${why} Use STORE_API_CLIENT_SECRET or --secret-file.`)
  }
  // Hidden, because only the completion scripts run it.
  if (args[0] === "__complete") {
    return load(
      () => import("./commands/completion/complete.js"),
      ({ complete }) => complete(commands, args.slice(1))
    )
  }
  return Effect.flatMap(Host, ({ process }) => {
    const columns = Math.min(process.stdout.columns ?? 80, 80)
    return parse(commands, args, lineOf, columns)
  })
}

const parse = (
  commands: Commands,
  args: ReadonlyArray<string>,
  lineOf: LineOf,
  columns: number
): Run => {
  // Commander prints, and calls the action of a command, while it parses.
  const printed: Array<string> = []
  const texts: Texts = new Map()
  let chosenRun: Run = Effect.void
  const root = makeRoot(lineOf, columns, (text) => void printed.push(text))
  addFlags(root, flags.commonFlags, texts, true)
  for (const [name, command] of Object.entries(commands)) {
    const { run } = command
    const hasMembers = isGroup(commands, name)
    const parser = addCommand(root, name, command, hasMembers, lineOf)
    addFlags(parser, command.flags, texts)
    if (run === undefined) continue
    parser.action(() => {
      const [unknown] = hasMembers ? parser.args : []
      if (unknown !== undefined) parser.error(`error: unknown command '${unknown}'`)
      const misplacedFlag = [...texts.keys()].find((flag) =>
        !Object.hasOwn(command.flags, flag)
      )
      if (misplacedFlag !== undefined) {
        parser.error(`--${misplacedFlag} is not a flag of ${name}.`)
      }
      const values = valuesOf(texts, args, command.flags, (problem) => parser.error(problem))
      chosenRun = run(values, parser.args)
    })
  }
  return Either.match(
    Either.try(() => root.parse(withHelp(commands, args), { from: "user" })),
    {
      onLeft: (error) => {
        if (!(error instanceof CommanderError)) return Effect.die(error)
        const text = printed.join("")
        const isHelp = error.exitCode === 0 || error.code === "commander.help"
        return isHelp ? output.write("stdout", text) : usageError(sentenceOf(text))
      },
      onRight: () => chosenRun
    }
  )
}

/** The program without its commands. */
const makeRoot = (lineOf: LineOf, columns: number, print: (text: string) => void): Parser => {
  const width = () => columns
  return new Parser("store-api")
    .description("Access tokens for the store API.")
    .version(version(), "-V, --version", "Print the version")
    .helpOption("-h, --help", "Print this help")
    .configureOutput({
      writeOut: print,
      writeErr: print,
      getOutHelpWidth: width,
      getErrHelpWidth: width
    })
    .configureHelp({
      minWidthToWrap: 20,
      subcommandTerm: (parser) => parser.name(),
      commandUsage: (parser) => `${lineOf(pathOf(parser))} ${parser.usage()}`
    })
    .enablePositionalOptions()
    .exitOverride()
    .helpCommand("help", "Print the help of a command")
    .addHelpText("after", exitCodesText)
    .showHelpAfterError(`See ${lineOf("--help")}.`)
}

/** Adds a command without its flags. A command of two words is added to its group. */
const addCommand = (
  root: Parser,
  name: string,
  { args, examples, more, text }: Command,
  hasMembers: boolean,
  lineOf: LineOf
): Parser => {
  const words = name.split(" ")
  const last = words.at(-1) ?? name
  const group = words.length === 1
    ? root
    : root.commands.find((parser) => parser.name() === words[0])
  const parser = (group ?? root).command(last)
    .helpCommand(hasMembers)
    .allowExcessArguments(hasMembers)
    .summary(text)
    .description(more === undefined ? `${text}.` : `${text}. ${more}`)
    .addHelpText(
      "after",
      examples.reduce((text, line) => `${text}\n  $ ${lineOf(line)}`, "\nExamples:")
    )
    .showHelpAfterError(`See ${lineOf(`${name} --help`)}.`)
  return args === undefined
    ? parser
    : parser.argument(args).passThroughOptions(args.includes("..."))
}

const isGroup = (commands: Commands, name: string): boolean =>
  Object.keys(commands).some((member) => member.startsWith(`${name} `))

/** The words of a command, without the name of the program. */
const pathOf = (parser: Parser): string =>
  parser.parent === null ? "" : `${pathOf(parser.parent)} ${parser.name()}`.trimStart()

/** Rewrites `help COMMAND` as `COMMAND --help`, so that an unknown command is reported in the same way. */
const withHelp = (commands: Commands, args: ReadonlyArray<string>): ReadonlyArray<string> => {
  if (args.length === 0) return ["--help"]
  if (args[0] !== "help") return args
  const words = args.slice(1)
  const knownWords = words.filter((_, index) =>
    Object.hasOwn(commands, words.slice(0, index + 1).join(" "))
  )
  const isUnknown = knownWords.length < words.length &&
    commands[knownWords.join(" ")]?.run === undefined
  return isUnknown ? words.slice(0, knownWords.length + 1) : [...knownWords, "--help"]
}

const exitCodesText = Object.values(exitCodes)
  .reduce(
    (text, { code, text: meaning }) => `${text}\n${String(code).padStart(5)}  ${meaning}`,
    "\nExit codes:"
  )

type Texts = Map<string, ReadonlyArray<string>>

/** Collects each value, before and after the command, so that a repeated flag is noticed. */
const addFlags = (
  parser: Parser,
  table: flags.Flags,
  texts: Texts,
  isHidden = false
): void => {
  for (const [name, { alias, text, value }] of Object.entries(table)) {
    const short = alias === undefined ? "" : `-${alias}, `
    const argument = value === undefined ? "" : ` <${value}>`
    const term = `${short}--${name}${argument}`
    parser.addOption(new Option(term, text).hideHelp(isHidden))
    parser.on(
      `option:${name}`,
      (text = "") => texts.set(name, [...texts.get(name) ?? [], String(text)])
    )
  }
}

/** The values of the flags. Fails as the parser does if one is wrong. */
const valuesOf = (
  flagTexts: Texts,
  args: ReadonlyArray<string>,
  table: flags.Flags,
  fail: (problem: string) => never
) =>
  Record.map(table, ({ choices, many, value }, flag): FlagValues[string] => {
    const texts = flagTexts.get(flag) ?? []
    if (value === undefined) return texts.length > 0
    if (texts.length > 1 && many !== true) return fail(`--${flag} is given twice.`)
    // After `=`, such a text is a value.
    if (
      texts.some((text) =>
        text.startsWith("--") && Object.hasOwn(table, text.slice(2)) && args.includes(text)
      )
    ) {
      return fail(`--${flag} needs a value: --${flag} ${value}.`)
    }
    if (choices !== undefined && !texts.every((text) => choices.includes(text))) {
      return fail(`--${flag} must be one of ${choices.join(", ")}.`)
    }
    return many === true ? texts : texts[0]
  })

/** Turns the lines of commander into sentences, and leaves out the value of a flag. */
const sentenceOf = (text: string): string =>
  text.replace(/^error: /, "").replace(/=[^\n]*'/, "'").replace(/^\((.*)\)$/gm, "$1").trim()
    .split("\n")
    .map((line) =>
      `${line.charAt(0).toUpperCase()}${line.slice(1)}${/[.?]$/.test(line) ? "" : "."}`
    )
    .join(" ")
