/** Runs the binary as a process, in a pipe or on a real terminal. */
import { type ChildProcessWithoutNullStreams, spawn, spawnSync } from "node:child_process"
import { closeSync } from "node:fs"
import { createRequire } from "node:module"
import { createInterface } from "node:readline"
import { fileURLToPath } from "node:url"
import { assert } from "@effect/vitest"
import { Deferred, Effect, type Scope } from "effect"
import { nothingPrivateIn, type Options, type Outcome, type User, waitingNotes } from "./cli.js"

const root = fileURLToPath(new URL("../..", import.meta.url))

export const bin = fileURLToPath(new URL("../../bin/store-api.js", import.meta.url))

/** The command is run as it is built: the file in bin/, on the build of these sources. */
export const build = () => {
  const tsc = createRequire(import.meta.url).resolve("typescript/bin/tsc")
  const built = spawnSync(process.execPath, [tsc, "-b", "tsconfig.src.json"], { cwd: root, encoding: "utf8" })
  assert.strictEqual(built.status, 0, built.stdout)
}

/** A test of processes takes as long as they take to load, on a machine that does much else. */
export const processTimeout = 60_000

export interface RunningProcess {
  readonly child: ChildProcessWithoutNullStreams
  readonly stdout: () => string
  /** The end, when nothing private was printed. */
  readonly end: Effect.Effect<Outcome>
}

/** The command, started in a pipe. */
export const startProcess = (
  user: User,
  args: ReadonlyArray<string>,
  { node = [], shows }: Options & { readonly node?: ReadonlyArray<string> } = {}
): Effect.Effect<RunningProcess, never, Scope.Scope> =>
  Effect.gen(function*() {
    const done = yield* Deferred.make<number | null>()
    const child = yield* Effect.acquireRelease(
      Effect.sync(() => spawn(process.execPath, [...node, bin, ...args], { cwd: user.cwd, env: user.env })),
      (child) => Effect.sync(() => child.kill("SIGKILL"))
    )
    const [stdout, stderr]: [Array<Buffer>, Array<Buffer>] = [[], []]
    child.stdout.on("data", (chunk: Buffer) => stdout.push(chunk))
    child.stderr.on("data", (chunk: Buffer) => stderr.push(chunk))
    child.stdin.on("error", () => undefined)
    child.on("close", (code) => Deferred.unsafeDone(done, Effect.succeed(code)))
    const textOf = (chunks: ReadonlyArray<Buffer>) => Buffer.concat(chunks).toString("utf8")
    return {
      child,
      stdout: () => textOf(stdout),
      end: Effect.gen(function*() {
        const outcome = { code: yield* Deferred.await(done), stdout: textOf(stdout), stderr: textOf(stderr) }
        yield* nothingPrivateIn(user, `${shows === true ? "" : outcome.stdout}${outcome.stderr}`)
        return outcome
      })
    }
  })

/** The command in a pipe, to its end. */
export const runProcess = (
  user: User,
  args: ReadonlyArray<string>,
  options: Parameters<typeof startProcess>[2] & { readonly stdin?: string } = {}
): Effect.Effect<Outcome> =>
  Effect.gen(function*() {
    const { child, end } = yield* startProcess(user, args, options)
    child.stdin.end(options.stdin ?? "")
    return yield* end
  }).pipe(Effect.scoped)

/** The command to its end, with these streams, as a shell starts it with `<` and `>`. */
export const runWith = (user: User, args: ReadonlyArray<string>, stdio: ReadonlyArray<"ignore" | "pipe" | number>) => {
  const { status, stderr } = spawnSync(process.execPath, [bin, ...args], {
    ...user,
    encoding: "utf8",
    stdio: [...stdio]
  })
  for (const stream of stdio) if (typeof stream === "number") closeSync(stream)
  return Effect.as(nothingPrivateIn(user, stderr), [status, stderr] as const)
}

const python = fileURLToPath(new URL("terminal.py", import.meta.url))

/** The terminals are Python's; CI has it, and fails without. */
export const hasTerminals = spawnSync("python3", ["--version"]).status === 0 || process.env["CI"] === "true"

if (!hasTerminals) console.warn("There is no python3: tests on a terminal are skipped.")

type Told = readonly ["screen" | "stdout", string] | readonly ["end", number]

/** The command, started on a terminal. It ends with the scope. */
export const startOnTerminal = (
  user: User,
  args: ReadonlyArray<string>,
  options: Options & { readonly stdout?: "pipe" } = {}
) =>
  Effect.gen(function*() {
    const done = yield* Deferred.make<number>()
    const child = yield* Effect.acquireRelease(
      Effect.sync(() => spawn("python3", [python], { stdio: ["pipe", "pipe", "inherit"] })),
      // When the input ends, Python ends the command and exits.
      (child) => Effect.sync(() => child.stdin.end())
    )
    child.stdin.on("error", () => undefined)
    const send = (what: unknown) => Effect.sync(() => void child.stdin.write(`${JSON.stringify(what)}\n`))
    const shown = { screen: "", stdout: "" }
    let waiting: ReadonlyArray<() => void> = []
    let ended = false
    createInterface(child.stdout).on("line", (line) => {
      // Python writes nothing else.
      const [kind, what] = JSON.parse(line) as Told
      if (kind === "end") {
        ended = true
        Deferred.unsafeDone(done, Effect.succeed(what))
      } else shown[kind] += what
      for (const look of waiting) look()
    })
    child.on("close", () => Deferred.unsafeDone(done, Effect.dieMessage("the terminal ended before the command")))
    yield* send({
      command: [process.execPath, bin, ...args],
      env: { TERM: "xterm-256color", ...user.env },
      cwd: user.cwd,
      stdout: options.stdout ?? "terminal"
    })
    return {
      screen: () => shown.screen,
      /** Waits until the screen shows it; false if the command ended without. */
      shows: (text: string | RegExp): Effect.Effect<boolean> =>
        Effect.async((resume) => {
          const look = () => {
            const isShown = typeof text === "string" ? shown.screen.includes(text) : text.test(shown.screen)
            if (isShown || ended) resume(Effect.succeed(isShown))
          }
          waiting = [...waiting, look]
          look()
        }),
      type: send,
      /** The end, when nothing private was shown. Standard output is apart from the screen if it is a pipe. */
      end: Effect.gen(function*() {
        const code = yield* Deferred.await(done)
        yield* nothingPrivateIn(user, options.shows === true ? "" : `${shown.screen}${shown.stdout}`)
        return { code, ...shown, screen: shown.screen.replace(waitingNotes, "") }
      })
    }
  })

/** The command on a terminal to its end. The keys are typed at the prompt for the secret. */
export const onTerminal = (
  user: User,
  args: ReadonlyArray<string>,
  { keys, ...options }: Parameters<typeof startOnTerminal>[2] & { readonly keys?: string } = {}
) =>
  Effect.gen(function*() {
    const { end, shows, type } = yield* startOnTerminal(user, args, options)
    if (keys !== undefined && (yield* shows("Client secret"))) yield* type(keys)
    return yield* end
  }).pipe(Effect.scoped)
