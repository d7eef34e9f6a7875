/**
 * A user of the command, and the `main` of the binary in this process with the variables, folder and streams of that
 * user. `process.ts` runs the binary.
 */
import { join, resolve } from "node:path"
import { PassThrough, Writable } from "node:stream"
import { assert } from "@effect/vitest"
import { deepStrictEqual } from "@effect/vitest/utils"
import { Emulator, type Fault } from "@store-api/emulator"
import { leaksIn } from "@store-api/testing/leaksIn"
import { newFolder, proxyVariables, useVariables } from "@store-api/testing/loopback"
import { untilPrinted } from "@store-api/testing/network"
import { Clock, ConfigProvider, Effect, Fiber, Redacted, type Scope } from "effect"
import { main } from "../../src/commandLine.js"
import { commands } from "../../src/commands.js"
import { Host } from "../../src/Host.js"

export const demoSecret = Redacted.value(Emulator.demoClient.clientSecret)

/** A user: a folder of their own, with their variables. */
export interface User {
  readonly cwd: string
  readonly env: Readonly<Record<string, string>>
  /** Secrets and tokens; no run prints one, unless it says so. */
  readonly secrets: Effect.Effect<ReadonlyArray<string>>
}

export const newUser = (
  env: Readonly<Record<string, string>>,
  secrets: User["secrets"] = Effect.succeed([])
) =>
  Effect.map(newFolder("store-api-cli"), (cwd): User => {
    const state = join(cwd, "state")
    const own = {
      PATH: process.env["PATH"] ?? "",
      HOME: cwd,
      XDG_STATE_HOME: state,
      LOCALAPPDATA: state
    }
    return { cwd, secrets, env: { ...own, ...env } }
  })

/** A user of an emulator, all of whose settings are in the environment. */
export const userOf = (emulator: Emulator.Service) =>
  newUser(
    {
      STORE_API_AUTH_URL: emulator.url,
      STORE_API_URL: emulator.url,
      STORE_API_CLIENT_ID: Emulator.demoClient.clientId,
      STORE_API_CLIENT_SECRET: demoSecret
    },
    Effect.map(emulator.tokens, (tokens) => [
      demoSecret,
      ...tokens.map(({ value }) => Redacted.value(value))
    ])
  )

/** An emulator that plays these faults, and its user. */
export const startedWith = (
  options: Emulator.Options = {},
  ...script: ReadonlyArray<Fault.Script>
) =>
  Effect.gen(function*() {
    const emulator = yield* Emulator.make(options)
    for (const step of script) yield* emulator.fail(step)
    return { emulator, user: yield* userOf(emulator) }
  })

export const started = startedWith()

/** The number of token requests so far. */
export const tokenRequests = ({ requests }: Emulator.Service): Effect.Effect<number> =>
  Effect.map(requests, (requests) => requests.filter(({ kind }) => kind === "token").length)

export const lastToken = ({ tokens }: Emulator.Service): Effect.Effect<string> =>
  Effect.map(
    tokens,
    (tokens) => Redacted.value(tokens.at(-1)?.value ?? assert.fail("no token was given out"))
  )

/** Where the profiles of a user are. */
export const profilesOf = ({ cwd }: User): string =>
  join(cwd, process.platform === "win32" ? "state" : ".config", "store-api")

/** The same user with more variables. */
export const withEnv = (user: User, env: User["env"]): User => ({
  ...user,
  env: { ...user.env, ...env }
})

/** The same user with more variables. Proxy variables are also set in this process, where the client reads them. */
export const withProxies = (
  user: User,
  env: User["env"]
): Effect.Effect<User, never, Scope.Scope> =>
  Effect.as(
    useVariables(Object.fromEntries(proxyVariables.map((name) => [name, env[name]]))),
    withEnv(user, env)
  )

/** The same user without these. */
export const without = (user: User, ...names: ReadonlyArray<string>): User => ({
  ...user,
  env: Object.fromEntries(Object.entries(user.env).filter(([name]) => !names.includes(name)))
})

/** The variables that `store-api emulator` prints. */
export const variablesIn = (text: string): Readonly<Record<string, string>> =>
  Object.fromEntries(
    [...text.matchAll(/^export (\w+)='(.*)'$/gm)].map((
      [, name = "", value = ""]
    ) => [name, value])
  )

export const nothingPrivateIn = (user: User, text: string) =>
  Effect.map(
    user.secrets,
    (secrets) => deepStrictEqual(leaksIn(text, secrets), [], "printed what is private")
  )

export const hasColours = (text: string): boolean => text.includes("\u001b[")

/** The lines of a screen without colours and without what a slow run waits for. Nothing moves the cursor. */
export const linesOf = (screen: string): ReadonlyArray<string> => {
  const plain = screen.replace(waitingNotes, "").replace(/\u001b\[[\d;]*m/g, "")
  assert.isFalse(hasColours(plain), JSON.stringify(screen))
  return plain.replace(/\r\n$/, "").split("\r\n")
}

/** On a slow machine, the screen also shows what a run waits for. */
export const waitingNotes = /store-api: Waiting for .* Press Ctrl\+C to stop\.\r\n/g

/** How a run is started. */
export interface Options {
  /** Whether a secret or a token is asked for, on standard output. */
  readonly shows?: boolean
}

/** How a run ended, and what it printed. */
export interface Outcome {
  readonly code: number | null
  readonly stdout: string
  readonly stderr: string
}

/** Keeps what is written to it. While it is corked, it acts as a pipe without a reader. */
class Output extends Writable {
  readonly columns?: number
  readonly isTTY: boolean
  private readonly chunks: Array<Buffer> = []
  constructor(columns?: number) {
    super()
    this.isTTY = columns !== undefined
    if (columns !== undefined) this.columns = columns
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
  /** Waits until the command has printed it. */
  readonly shows: (text: RegExp) => Effect.Effect<void>
  /** Waits for the end. Fails if something private was printed. */
  readonly end: Effect.Effect<Outcome>
}

/** A terminal, of which standard output may be a pipe. */
interface Screen {
  readonly stdout?: "pipe"
  /** The lines that are typed, one at each prompt. */
  readonly typed?: string
  readonly columns?: number
}

/** Starts the command in a pipe, or on a screen. */
export const start = (
  user: User,
  args: ReadonlyArray<string>,
  { screen, shows }: Options & { readonly screen?: Screen } = {}
): Effect.Effect<Running, never, Scope.Scope> =>
  Effect.gen(function*() {
    const stdin = Object.assign(new PassThrough(), { isTTY: screen !== undefined })
    const stderr = new Output(screen && (screen.columns ?? 80))
    const stdout = screen?.stdout === "pipe" || screen === undefined ? new Output() : stderr
    // The store finds its default folder by the variables of the real process.
    const env = {
      STORE_API_TOKEN_FOLDER: resolve(user.cwd, "state", "store-api", "tokens"),
      ...user.env
    }
    const typed = (screen?.typed ?? "").split(/(?<=\r)/)
    stderr.on("text", () =>
      /: (\u001b\[\d+G)?$/.test(stderr.text) && stdin.write(typed.shift() ?? ""))
    const fiber = yield* main(commands, args).pipe(
      Effect.provideService(Host, {
        process: { env, stderr, stdin, stdout },
        homedir: () =>
          user.cwd,
        pathOf: (path) => resolve(user.cwd, path)
      }),
      Effect.withConfigProvider(ConfigProvider.fromMap(new Map(Object.entries(env)))),
      Effect.forkScoped
    )
    return {
      stdin,
      stdout,
      stderr,
      shows: (text) =>
        untilPrinted(
          text,
          () => [stdout.text, stderr.text],
          () => fiber.unsafePoll() !== null
        ),
      end: Effect.gen(function*() {
        const code = yield* Fiber.join(fiber)
        if (stderr !== stdout) yield* nothingPrivateIn(user, stderr.text)
        if (shows !== true) yield* nothingPrivateIn(user, stdout.text)
        return { code, stdout: stdout.text, stderr: stderr.text }
      })
    }
  })

/** Runs the command in a pipe to its end. */
export const run = (
  user: User,
  args: ReadonlyArray<string>,
  options: Options & { readonly stdin?: string } = {}
) =>
  Effect.gen(function*() {
    const { end, stdin } = yield* start(user, args, options)
    stdin.end(options.stdin ?? "")
    return yield* end
  }).pipe(Effect.scoped)

/** Runs the command on a terminal to its end. */
export const onTerminal = (
  user: User,
  args: ReadonlyArray<string>,
  { shows = false, ...screen }: Options & Screen = {}
) =>
  Effect.gen(function*() {
    const running = yield* start(user, args, { screen, shows })
    const { code, stderr, stdout } = yield* running.end
    return {
      code,
      screen: stderr.replace(waitingNotes, ""),
      stdout: screen.stdout === "pipe" ? stdout : ""
    }
  }).pipe(Effect.scoped)

/** The arguments, or the whole line, if none of them contains a space. */
type Line = string | ReadonlyArray<string>

const wordsOf = (line: Line) => typeof line === "string" ? line.split(" ") : line

/**
 * Runs a line in a pipe that succeeds without a message, and returns what it prints. Only `token` prints a token; other
 * lines print something private only if they say so.
 */
export const expectSuccess = (
  user: User,
  line: Line,
  options: Options & { readonly stdin?: string } = {}
) =>
  Effect.map(
    run(user, wordsOf(line), { shows: wordsOf(line).includes("token"), ...options }),
    (outcome) => {
      deepStrictEqual([outcome.code, outcome.stderr], [0, ""], String(line))
      return outcome.stdout
    }
  )

/** Runs a line in a pipe that prints nothing but this message on standard error, and returns the message. */
export const expectRefusal = (
  user: User,
  line: Line,
  code: number,
  message: string | RegExp,
  stdin = ""
) =>
  Effect.map(run(user, wordsOf(line), { stdin }), ({ stderr, ...outcome }) => {
    deepStrictEqual(outcome, { code, stdout: "" }, stderr)
    if (typeof message === "string") assert.strictEqual(stderr, `store-api: ${message}\n`)
    else assert.match(stderr, message)
    return stderr
  })

/** Runs at this moment of the wall clock, in milliseconds, however long it takes. */
export const frozenAt = (millis: number) => {
  const clock = Clock.make()
  return Effect.withClock(Object.assign(Object.create(clock) as Clock.Clock, {
    unsafeCurrentTimeMillis: () => millis,
    currentTimeMillis: Effect.succeed(millis),
    unsafeCurrentTimeNanos: () => BigInt(millis) * 1_000_000n,
    currentTimeNanos: Effect.succeed(BigInt(millis) * 1_000_000n)
  }))
}

/** The steps of a check: how each ended, and its message. */
const stepsOf = (text: string) =>
  [...text.matchAll(/^(ok {2}|FAIL) (.{17}) *\d+ ms {3}(.*)\n(?: {5}(\S.*)\n)?/gm)].map(
    ([, word = "", name = "", message = "", remedy]) => ({
      failed: word === "FAIL",
      name: name.trim(),
      message,
      remedy
    })
  )

/** `runs` runs the command in this process, or the binary. */
export const check = (user: User, args: ReadonlyArray<string> = [], runs: typeof run = run) =>
  Effect.gen(function*() {
    const { code, stderr, stdout } = yield* runs(user, ["check", ...args])
    const steps = stepsOf(stdout)
    // Each line is a step or the remedy of one that failed.
    const failed = steps.filter(({ failed }) => failed)
    assert.lengthOf(stdout.trimEnd().split("\n"), steps.length + failed.length, stdout)
    for (const { remedy } of failed) assert.match(remedy ?? "", /^[A-Z].*[.]$/)
    assert.strictEqual(stderr, "")
    return { code, steps, failed }
  })

/** The exit code, the one step that fails, its message and its remedy. */
export type Expected = readonly [code: number, step: string, message: RegExp, remedy: RegExp]

/** Checks that one step fails as expected, and returns all steps. */
export const expectFailedStep = (
  user: User,
  args: ReadonlyArray<string>,
  [code, step, message, remedy]: Expected,
  runs: typeof run = run
) =>
  Effect.gen(function*() {
    const { failed, steps, ...outcome } = yield* check(user, args, runs)
    const [failure] = failed
    deepStrictEqual(
      [outcome.code, failed.map(({ name }) => name)],
      [code, [step]],
      JSON.stringify(steps)
    )
    assert.match(failure?.message ?? "", message)
    assert.match(failure?.remedy ?? "", remedy)
    return steps
  })
