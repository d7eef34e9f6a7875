/**
 * Runs the `main` of the binary in this process, with the variables, folder, streams and keyboard of a user.
 * `process.ts` runs the binary.
 */
import { resolve } from "node:path"
import { PassThrough, Writable } from "node:stream"
import { Terminal } from "@effect/platform"
import { assert } from "@effect/vitest"
import { deepStrictEqual } from "@effect/vitest/utils"
import { Clock, ConfigProvider, Effect, Fiber, Layer, Mailbox, Option, type Scope } from "effect"
import { Host } from "../../src/Host.js"
import { main } from "../../src/main.js"
import { nothingPrivateIn, type Options, type Outcome, type User, waitingNotes } from "./user.js"

export * from "./user.js"

/** Keeps what is written to it. While it is corked, it acts as a pipe without a reader. */
class Output extends Writable {
  readonly columns?: number
  readonly rows = 24
  readonly isTTY: boolean
  private readonly chunks: Array<Buffer> = []
  constructor(isTTY: boolean, columns = 80) {
    super()
    this.isTTY = isTTY
    if (isTTY) this.columns = columns
  }
  override _write(chunk: Buffer, _encoding: string, done: () => void) {
    this.chunks.push(chunk)
    done()
    this.emit("text")
  }
  /** A terminal shows each line from its first column. */
  get text(): string {
    const text = Buffer.concat(this.chunks).toString("utf8")
    return this.isTTY ? text.replaceAll("\n", "\r\n") : text
  }
}

export interface Running {
  readonly stdin: PassThrough
  readonly stdout: Output
  readonly stderr: Output
  /** Waits until standard output contains it; false if the command ends first. */
  readonly shows: (text: string | RegExp) => Effect.Effect<boolean>
  /** Waits for the end. Fails if something private was printed. */
  readonly end: Effect.Effect<Outcome>
}

interface Place {
  readonly stdin: PassThrough & { readonly isTTY?: boolean }
  readonly stdout: Output
  readonly stderr: Output
  /** The text typed at the prompt. */
  readonly typed?: string | undefined
}

const startIn = (
  { stderr, stdin, stdout, typed = "" }: Place,
  user: User,
  args: ReadonlyArray<string>,
  { shows }: Options
): Effect.Effect<Running, never, Scope.Scope> =>
  Effect.gen(function*() {
    // The store finds its default folder by the variables of the real process.
    const env = { STORE_API_TOKEN_FOLDER: resolve(user.cwd, "state", "store-api", "tokens"), ...user.env }
    const fiber = yield* main(args).pipe(
      Effect.provideService(Host, {
        process: { env, stderr, stdin, stdout },
        homedir: () => user.cwd,
        pathOf: (path) => resolve(user.cwd, path),
        terminal: keyboard(typed)
      }),
      Effect.withConfigProvider(ConfigProvider.fromMap(new Map(Object.entries(env)))),
      Effect.forkScoped
    )
    fiber.addObserver(() => stdout.emit("text"))
    return {
      stdin,
      stdout,
      stderr,
      shows: (text) =>
        Effect.async((resume) => {
          const look = () => {
            const isShown = typeof text === "string" ? stdout.text.includes(text) : text.test(stdout.text)
            if (isShown || fiber.unsafePoll() !== null) resume(Effect.succeed(isShown))
          }
          stdout.on("text", look)
          look()
          return Effect.sync(() => stdout.off("text", look))
        }),
      end: Effect.gen(function*() {
        const code = yield* Fiber.join(fiber)
        const searched = new Set(shows === true ? [stderr].filter((output) => output !== stdout) : [stdout, stderr])
        yield* nothingPrivateIn(user, [...searched].map(({ text }) => text).join(""))
        return { code, stdout: stdout.text, stderr: stderr.text }
      })
    }
  })

const names: Readonly<Record<string, string>> = { "\r": "return", "\b": "backspace", "\u0015": "u" }

/** Reports keys as a terminal does. */
const keyboard = (typed: string): Layer.Layer<Terminal.Terminal> =>
  Layer.succeed(Terminal.Terminal, {
    columns: Effect.succeed(80),
    rows: Effect.succeed(24),
    isTTY: Effect.succeed(true),
    readLine: Effect.dieMessage("no line is asked for"),
    display: () => Effect.dieMessage("what is asked goes to standard error"),
    readInput: Effect.tap(Mailbox.make<Terminal.UserInput>(), (keys) =>
      keys.offerAll([...typed].map((key) => ({
        input: Option.some(key),
        key: { name: names[key] ?? key, ctrl: key === "\u0015", meta: false, shift: false }
      }))))
  })

/** Starts the command in a pipe. */
export const start = (user: User, args: ReadonlyArray<string>, options: Options = {}) =>
  startIn({ stdin: new PassThrough(), stdout: new Output(false), stderr: new Output(false) }, user, args, options)

/** Runs the command in a pipe to its end. */
export const run = (
  user: User,
  args: ReadonlyArray<string>,
  options: Options & { readonly stdin?: string } = {}
): Effect.Effect<Outcome> =>
  Effect.gen(function*() {
    const { end, stdin } = yield* start(user, args, options)
    stdin.end(options.stdin ?? "")
    return yield* end
  }).pipe(Effect.scoped)

/** The arguments, or the whole line, if none of them contains a space. */
type Line = string | ReadonlyArray<string>

const wordsOf = (line: Line) => typeof line === "string" ? line.split(" ") : line

/**
 * Runs a line in a pipe that succeeds without a message, and returns what it prints. Only `token` prints a token; other
 * lines print something private only if they say so.
 */
export const prints = (
  user: User,
  line: Line,
  options: Options & { readonly stdin?: string } = {}
): Effect.Effect<string> =>
  Effect.map(run(user, wordsOf(line), { shows: wordsOf(line).includes("token"), ...options }), (outcome) => {
    deepStrictEqual([outcome.code, outcome.stderr], [0, ""], String(line))
    return outcome.stdout
  })

/** Runs a line in a pipe that prints nothing but this message on standard error, and returns the message. */
export const refuses = (
  user: User,
  line: Line,
  code: number,
  message: string | RegExp,
  stdin = ""
): Effect.Effect<string> =>
  Effect.map(run(user, wordsOf(line), { stdin }), ({ stderr, ...outcome }) => {
    deepStrictEqual(outcome, { code, stdout: "" }, stderr)
    if (typeof message === "string") assert.strictEqual(stderr, `store-api: ${message}\n`)
    else assert.match(stderr, message)
    return stderr
  })

/** Starts the command on a terminal. */
export const startOnTerminal = (user: User, args: ReadonlyArray<string>, options: Options = {}) =>
  Effect.suspend(() => {
    const screen = new Output(true)
    const stdin = Object.assign(new PassThrough(), { isTTY: true })
    return startIn({ stdin, stdout: screen, stderr: screen }, user, args, options)
  })

/** Runs the command on a terminal to its end. Standard output is the screen, or a pipe. */
export const onTerminal = (
  user: User,
  args: ReadonlyArray<string>,
  options: Options & { readonly stdout?: "pipe"; readonly typed?: string; readonly columns?: number } = {}
) =>
  Effect.gen(function*() {
    const screen = new Output(true, options.columns)
    const stdout = options.stdout === "pipe" ? new Output(false) : screen
    const stdin = Object.assign(new PassThrough(), { isTTY: true })
    const { end } = yield* startIn({ stdin, stdout, stderr: screen, typed: options.typed }, user, args, options)
    const { code } = yield* end
    return { code, screen: screen.text.replace(waitingNotes, ""), stdout: stdout === screen ? "" : stdout.text }
  }).pipe(Effect.scoped)

/** Runs at this moment of the wall clock, in milliseconds, however long it takes. */
export const frozenAt = (millis: number) => {
  const clock = Clock.make()
  return Effect.withClock(Object.assign(Object.create(clock) as Clock.Clock, {
    unsafeCurrentTimeMillis: () => millis,
    currentTimeMillis: Effect.succeed(millis)
  }))
}
