/** Turns arguments into an exit code. Commander parses the flags strictly and writes the help. */
import * as NodeFileSystem from "@effect/platform-node/NodeFileSystem"
import { Command as Parser, CommanderError, Option } from "commander"
import * as Effect from "effect/Effect"
import * as Either from "effect/Either"
import * as Record from "effect/Record"
import { type Commands, type Given, load, type Run } from "./Command.js"
import { exitCodes, usage } from "./Fault.js"
import * as flags from "./flags.js"
import { Host, version } from "./Host.js"
import * as output from "./output.js"

/** Whether an argument holds a secret. Other users can read it there already, and an error must not repeat it. */
const isSecretFlag = (arg: string): boolean => /^--?(client[-_]?)?secret(=|$)/i.test(arg)

const run = (commands: Commands, args: ReadonlyArray<string>) => {
  // Arguments after -- belong to another program.
  if (args.slice(0, [...args, "--"].indexOf("--")).some(isSecretFlag)) {
    const why = "A secret cannot be a flag, because other users of this machine can read flags."
    return usage(`${why} Use STORE_API_CLIENT_SECRET or --secret-file.`)
  }
  // Hidden, because only the completion scripts run it.
  return args[0] === "__complete"
    ? load(
      () => import("./commands/completion/complete.js"),
      ({ complete }) => complete(commands, args.slice(1))
    )
    : Effect.flatMap(
      Host,
      ({ process }) => parse(commands, args, Math.min(process.stdout.columns ?? 80, 80))
    )
}

export const main = (commands: Commands, args: ReadonlyArray<string>): Effect.Effect<number> =>
  Effect.suspend(() => run(commands, args)).pipe(
    Effect.as(0),
    Effect.catchAll(({ code, message }) =>
      Effect.as(message === "" ? Effect.void : output.problem(message), code)
    ),
    Effect.provide(NodeFileSystem.layer),
    output.withLogger
  )

const parse = (commands: Commands, args: ReadonlyArray<string>, columns: number): Run => {
  const printed: Array<string> = []
  const given: Texts = new Map()
  let selected: Run = Effect.void
  // The package of the emulator has no other command, and the command has its own name there.
  const emulator = Object.hasOwn(commands, "token") ? "store-api emulator" : "store-api-emulator"
  const print = (text: string) => void printed.push(text.replaceAll("store-api emulator", emulator))
  const width = () => columns
  const root = new Parser("store-api")
    .description("Access tokens for the store API.")
    .version(version(), "-V, --version", "Print the version")
    .helpOption("-h, --help", "Print this help")
    .configureOutput({
      writeOut: print,
      writeErr: print,
      getOutHelpWidth: width,
      getErrHelpWidth: width
    })
    .configureHelp({ minWidthToWrap: 20, subcommandTerm: (parser) => parser.name() })
    .enablePositionalOptions()
    .exitOverride()
    .helpCommand("help", "Print the help of a command")
    .addHelpText("after", exitCodesText)
    .showHelpAfterError("See store-api --help.")
  addFlags(root, flags.common, given, true)
  for (const [name, command] of Object.entries(commands)) {
    const [first = "", second] = name.split(" ")
    const group = second === undefined
      ? root
      : root.commands.find((parser) => parser.name() === first)
    const isGroup = Object.keys(commands).some((other) => other.startsWith(`${name} `))
    const parser = (group ?? root).command(second ?? first).helpCommand(isGroup)
      .allowExcessArguments(isGroup)
      .summary(command.text)
      .description(`${command.text}.${command.more === undefined ? "" : ` ${command.more}`}`)
      .addHelpText(
        "after",
        ["", "Examples:", ...command.examples.map((line) => `  $ store-api ${line}`)].join("\n")
      )
      .showHelpAfterError(`See store-api ${name} --help.`)
    if (command.args !== undefined) {
      parser.argument(command.args).passThroughOptions(command.args.includes("..."))
    }
    addFlags(parser, command.flags, given)
    const { run } = command
    if (run === undefined) continue
    parser.action(() => {
      if (isGroup && parser.args.length > 0) {
        parser.error(`error: unknown command '${parser.args[0] ?? ""}'`)
      }
      const misplaced = [...given.keys()].find((flag) => !Object.hasOwn(command.flags, flag))
      if (misplaced !== undefined) parser.error(`--${misplaced} is not a flag of ${name}.`)
      selected = run(
        valuesOf(given, args, command.flags, (problem) => parser.error(problem)),
        parser.args
      )
    })
  }
  return Either.match(Either.try(() => root.parse(withHelp(commands, args), { from: "user" })), {
    onLeft: (error) => {
      if (!(error instanceof CommanderError)) return Effect.die(error)
      const isHelp = error.exitCode === 0 || error.code === "commander.help"
      return isHelp ? output.write("stdout", printed.join("")) : usage(sentenceOf(printed.join("")))
    },
    onRight: () => selected
  })
}

/** Rewrites `help COMMAND` as `COMMAND --help`, so that an unknown command is reported in the same way. */
const withHelp = (commands: Commands, args: ReadonlyArray<string>): ReadonlyArray<string> => {
  if (args.length === 0) return ["--help"]
  if (args[0] !== "help") return args
  const words = args.slice(1)
  const known = words.filter((_, index) =>
    Object.hasOwn(commands, words.slice(0, index + 1).join(" "))
  )
  const isUnknown = known.length < words.length && commands[known.join(" ")]?.run === undefined
  return isUnknown ? words.slice(0, known.length + 1) : [...known, "--help"]
}

const exitCodesText = Object.values(exitCodes)
  .reduce(
    (text, { code, text: meaning }) => `${text}\n${String(code).padStart(5)}  ${meaning}`,
    "\nExit codes:"
  )

type Texts = Map<string, ReadonlyArray<string>>

/** Collects each value, before and after the command, so that a repeated flag is noticed. */
const addFlags = (parser: Parser, table: flags.Flags, given: Texts, hidden = false): void => {
  for (const [name, { alias, text, value }] of Object.entries(table)) {
    const term = `${alias === undefined ? "" : `-${alias}, `}--${name}${
      value === undefined ? "" : ` <${value}>`
    }`
    parser.addOption(new Option(term, text).hideHelp(hidden))
    parser.on(
      `option:${name}`,
      (text = "") => given.set(name, [...given.get(name) ?? [], String(text)])
    )
  }
}

/** The values of the flags. Fails as the parser does if one is wrong. */
const valuesOf = (
  given: Texts,
  args: ReadonlyArray<string>,
  table: flags.Flags,
  fail: (problem: string) => never
) =>
  Record.map(table, ({ choices, many, value }, flag): Given[string] => {
    const texts = given.get(flag) ?? []
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
  text.replace(/^error: /, "").replace(/=[^\n]*'/, "'").replace(/^\((.*)\)$/gm, "$1").trim().split(
    "\n"
  )
    .map((line) =>
      `${line.charAt(0).toUpperCase()}${line.slice(1)}${/[.?]$/.test(line) ? "" : "."}`
    )
    .join(" ")
