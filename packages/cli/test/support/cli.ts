/** The command as it is installed, run by a user in a pipe; `terminal.ts` has it on a terminal. */
import { type ChildProcessWithoutNullStreams, spawn, spawnSync } from "node:child_process"
import { createRequire } from "node:module"
import { fileURLToPath } from "node:url"
import { assert } from "@effect/vitest"
import { Deferred, Effect, type Scope } from "effect"
import { bin, nothingPrivateIn, type Options, type User } from "./user.js"

export { hasColours, hasTerminals, onTerminal } from "./terminal.js"
export { demoSecret, newUser, type Private, secretsOf, type User, userOf } from "./user.js"

const root = fileURLToPath(new URL("../..", import.meta.url))

/** The command is run as it is built: the file in bin/, on the build of these sources. */
export const build = () => {
  const tsc = createRequire(import.meta.url).resolve("typescript/bin/tsc")
  const built = spawnSync(process.execPath, [tsc, "-b", "tsconfig.src.json"], { cwd: root, encoding: "utf8" })
  assert.strictEqual(built.status, 0, built.stdout)
}

/** A test of processes takes as long as they take to load, on a machine that does much else. */
export const processTimeout = 60_000

export interface Outcome {
  readonly code: number | null
  readonly stdout: string
  readonly stderr: string
}

export interface Running {
  readonly child: ChildProcessWithoutNullStreams
  readonly stdout: () => string
  readonly stderr: () => string
  /** The end, when nothing private was printed. */
  readonly end: Effect.Effect<Outcome>
}

/** The command, started in a pipe. */
export const start = (
  user: User,
  args: ReadonlyArray<string>,
  options: Options = {}
): Effect.Effect<Running, never, Scope.Scope> =>
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
      stderr: () => textOf(stderr),
      end: Effect.gen(function*() {
        const outcome = { code: yield* Deferred.await(done), stdout: textOf(stdout), stderr: textOf(stderr) }
        yield* nothingPrivateIn(user, `${options.shows === true ? "" : outcome.stdout}${outcome.stderr}`)
        return outcome
      })
    }
  })

/** The command in a pipe, to its end. */
export const run = (
  user: User,
  args: ReadonlyArray<string>,
  options: Options & { readonly stdin?: string } = {}
): Effect.Effect<Outcome> =>
  Effect.gen(function*() {
    const { child, end } = yield* start(user, args, options)
    child.stdin.end(options.stdin ?? "")
    return yield* end
  }).pipe(Effect.scoped)
