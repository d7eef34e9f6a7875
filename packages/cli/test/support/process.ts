/** Runs the binary as a process in a pipe; `terminal.ts` runs it on a terminal. */
import { type ChildProcessWithoutNullStreams, spawn, spawnSync } from "node:child_process"
import { closeSync, openSync } from "node:fs"
import { createRequire } from "node:module"
import { fileURLToPath } from "node:url"
import { assert } from "@effect/vitest"
import { Deferred, Effect, type Scope } from "effect"
import { nothingPrivateIn, type Options, type Outcome, type User } from "./user.js"

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

interface ProcessOptions extends Options {
  readonly node?: ReadonlyArray<string>
}

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
  options: ProcessOptions = {}
): Effect.Effect<RunningProcess, never, Scope.Scope> =>
  Effect.gen(function*() {
    const done = yield* Deferred.make<number | null>()
    const child = yield* Effect.acquireRelease(
      Effect.sync(() =>
        spawn(process.execPath, [...(options.node ?? []), bin, ...args], { cwd: user.cwd, env: user.env })
      ),
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
        yield* nothingPrivateIn(user, `${options.shows === true ? "" : outcome.stdout}${outcome.stderr}`)
        return outcome
      })
    }
  })

/** The command in a pipe, to its end. */
export const runProcess = (
  user: User,
  args: ReadonlyArray<string>,
  options: ProcessOptions & { readonly stdin?: string } = {}
): Effect.Effect<Outcome> =>
  Effect.gen(function*() {
    const { child, end } = yield* startProcess(user, args, options)
    child.stdin.end(options.stdin ?? "")
    return yield* end
  }).pipe(Effect.scoped)

/** Runs the binary with a file or a folder as standard input, as a shell does with `< path`. */
export const runWithInput = (user: User, args: ReadonlyArray<string>, path: string): Effect.Effect<Outcome> =>
  Effect.sync(() => {
    const { cwd, env } = user
    const stdin = openSync(path, "r")
    const { status, stderr, stdout } = spawnSync(process.execPath, [bin, ...args], {
      cwd,
      env,
      encoding: "utf8",
      stdio: [stdin, "pipe", "pipe"]
    })
    closeSync(stdin)
    return { code: status, stdout, stderr }
  }).pipe(Effect.tap(({ stderr, stdout }) => nothingPrivateIn(user, `${stdout}${stderr}`)))
