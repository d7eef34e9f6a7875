/** The command on a terminal: what is to be seen there, and what is typed. */
import { spawn, spawnSync } from "node:child_process"
import { createInterface } from "node:readline"
import { fileURLToPath } from "node:url"
import { Deferred, Effect, Option, type Scope } from "effect"
import { bin, nothingPrivateIn, type Options, type User } from "./user.js"

const python = fileURLToPath(new URL("terminal.py", import.meta.url))

/** The terminals are Python's; CI has it, and fails without. */
export const hasTerminals = spawnSync("python3", ["--version"]).status === 0 || process.env["CI"] === "true"

if (!hasTerminals) console.warn("There is no python3: tests on a terminal are skipped.")

export interface Screen {
  readonly code: number
  /** All that came to the screen, colours and all. */
  readonly screen: string
  /** Apart from the screen, if it is a pipe. */
  readonly stdout: string
}

export interface OnTerminal extends Options {
  readonly stdout?: "terminal" | "pipe"
}

export interface RunningOnTerminal {
  readonly screen: () => string
  /** Waits until the screen shows it; false if the command ended without. */
  readonly shows: (text: string | RegExp) => Effect.Effect<boolean>
  readonly type: (keys: string) => Effect.Effect<void>
  /** The end, when nothing private was shown. */
  readonly end: Effect.Effect<Screen>
}

type Told = readonly ["screen" | "stdout", string] | readonly ["end", number]

/** The command, started on a terminal. It ends with the scope. */
export const startOnTerminal = (
  user: User,
  args: ReadonlyArray<string>,
  options: OnTerminal = {}
): Effect.Effect<RunningOnTerminal, never, Scope.Scope> =>
  Effect.gen(function*() {
    const done = yield* Deferred.make<number>()
    const child = yield* Effect.acquireRelease(
      Effect.sync(() => spawn("python3", [python], { stdio: ["pipe", "pipe", "inherit"] })),
      // Without anybody to type, Python ends the command, and then itself.
      (child) => Effect.sync(() => child.stdin.end())
    )
    child.stdin.on("error", () => undefined)
    const send = (what: unknown) => Effect.sync(() => child.stdin.write(`${JSON.stringify(what)}\n`))
    const shown = { screen: "", stdout: "" }
    let waiting: ReadonlyArray<() => void> = []
    const wake = () => {
      waiting.forEach((look) => look())
    }
    let ended = false
    createInterface(child.stdout).on("line", (line) => {
      // Python writes nothing else.
      const [kind, what] = JSON.parse(line) as Told
      if (kind === "end") {
        ended = true
        Deferred.unsafeDone(done, Effect.succeed(what))
      } else shown[kind] += what
      wake()
    })
    child.on("close", () => Deferred.unsafeDone(done, Effect.dieMessage("the terminal ended before the command")))
    yield* send({
      command: [process.execPath, ...(options.node ?? []), bin, ...args],
      env: { TERM: "xterm-256color", ...user.env },
      cwd: user.cwd,
      stdout: options.stdout ?? "terminal"
    })
    return {
      screen: () => shown.screen,
      shows: (text) =>
        Effect.async((resume) => {
          const look = () => {
            const isShown = typeof text === "string" ? shown.screen.includes(text) : text.test(shown.screen)
            if (isShown || ended) resume(Effect.succeed(isShown))
          }
          waiting = [...waiting, look]
          look()
        }),
      type: send,
      end: Effect.gen(function*() {
        const code = yield* Deferred.await(done)
        yield* nothingPrivateIn(user, options.shows === true ? "" : `${shown.screen}${shown.stdout}`)
        return { code, ...shown }
      })
    }
  })

/** The command on a terminal to its end, where it is typed what is to be typed once the screen shows something. */
export const onTerminal = (
  user: User,
  args: ReadonlyArray<string>,
  options: OnTerminal & { readonly typed?: ReadonlyArray<readonly [screen: string, keys: string]> } = {}
): Effect.Effect<Screen> =>
  Effect.gen(function*() {
    const { end, shows, type } = yield* startOnTerminal(user, args, options)
    for (const [text, keys] of options.typed ?? []) {
      if (yield* shows(text)) yield* type(keys)
    }
    return yield* end
  }).pipe(Effect.scoped)

/** Text with what a terminal makes colours of, or moves its cursor by. */
export const hasColours = (text: string): boolean => text.includes("\u001b[")

/**
 * What a terminal shows in the end of what came to it: its lines, without what was overwritten or erased. It knows what
 * prompts use of a terminal, and fails at anything else.
 */
export const linesOf = (screen: string): ReadonlyArray<string> => {
  const lines: Array<Array<string>> = [[]]
  let [row, column] = [0, 0]
  const line = () => (lines[row] ??= [])
  const sequences = /\u001b\[(\??[\d;]*)([A-Za-z])|\u0007|[\r\n\b]|[^\u001b\u0007\r\n\b]/gu
  for (const [text, parameter = "", command] of screen.matchAll(sequences)) {
    const count = Math.max(1, Number(parameter))
    if (text === "\r") column = 0
    else if (text === "\n") row++
    else if (text === "\b") column = Math.max(0, column - 1)
    else if (text === "\u0007") continue
    else if (command === undefined) line()[column++] = text
    else if (command === "A") row = Math.max(0, row - count)
    else if (command === "B") row += count
    else if (command === "C") column += count
    else if (command === "D") column = Math.max(0, column - count)
    else if (command === "G") column = count - 1
    else if (command === "K") line().splice(parameter === "2" ? 0 : column)
    else if (command === "J") lines.splice(row, Infinity, line().slice(0, column))
    else if (!["m", "h", "l"].includes(command)) {
      throw new Error(`a terminal is asked for what it does not know: ${text.slice(1)}`)
    }
  }
  // Where nothing was written there is nothing in the arrays either.
  const shown = Array.from(
    lines,
    (cells: ReadonlyArray<string | undefined> | undefined) =>
      Array.from(cells ?? [], (cell) => cell ?? " ").join("").trimEnd()
  )
  return Option.getOrElse(Option.liftPredicate(shown, (lines) => lines.at(-1) !== ""), () => shown.slice(0, -1))
}
