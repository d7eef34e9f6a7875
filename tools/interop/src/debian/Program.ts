/** Runs programs of Debian as child processes in temporary folders. The end of the scope ends and removes both. */
import { type ChildProcess, spawn, spawnSync } from "node:child_process"
import { chownSync, mkdtempSync, rmSync } from "node:fs"
import * as Net from "node:net"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { Data, Effect, Schedule, type Scope } from "effect"

export interface Program {
  readonly command: string
  /** The version that the program reports, or `undefined` if it is not installed. */
  readonly version: string | undefined
  /** What to do if it is not installed. */
  readonly missing: string
}

/** Finds a program and its version, which is the first group of the pattern. */
export const find = (options: {
  readonly command: string
  readonly parameters: ReadonlyArray<string>
  readonly pattern: RegExp
  readonly debianPackage: string
}): Program => {
  const { stderr, stdout } = spawnSync(options.command, options.parameters, { encoding: "utf8", env: environment })
  return {
    command: options.command,
    version: options.pattern.exec(`${stdout}${stderr}`)?.[1], // both are null without the command
    missing: `${options.debianPackage} is not installed: ` +
      `apt-get install --no-install-recommends ${options.debianPackage}`
  }
}

/**
 * Whether to skip the tests of a missing program, with a message. With `CI=true` they are never skipped, and fail.
 */
export const isLeftOut = ({ missing, version }: Program): boolean => {
  if (version !== undefined || process.env["CI"] === "true") return false
  console.warn(`Tests are skipped: ${missing}`)
  return true
}

export const isRoot = process.getuid?.() === 0

/** The unprivileged user of Debian, which runs the servers if root runs the tests. */
const nobody = { uid: 65_534, gid: 65_534 }

/** Passes nothing of the tests' environment, such as a proxy or another Python. */
const environment = { PATH: "/usr/sbin:/usr/bin:/sbin:/bin", LANG: "C.UTF-8" }

/** A new folder that a server started here may write to. */
export const folder: Effect.Effect<string, never, Scope.Scope> = Effect.acquireRelease(
  Effect.sync(() => {
    const path = mkdtempSync(join(tmpdir(), "interop-"))
    if (isRoot) chownSync(path, nobody.uid, nobody.gid)
    return path
  }),
  (path) => Effect.sync(() => rmSync(path, { recursive: true }))
)

export interface Running {
  readonly child: ChildProcess
  /** The output so far. */
  readonly output: () => string
  readonly errors: () => string
  /** Completes when the process has exited, with its stderr. */
  readonly ended: Effect.Effect<string>
}

/** Starts a program, unprivileged. The end of the scope terminates it, and waits until it has exited. */
export const run = (
  program: Program,
  parameters: ReadonlyArray<string>,
  input?: string
): Effect.Effect<Running, never, Scope.Scope> =>
  Effect.gen(function*() {
    if (program.version === undefined) return yield* Effect.dieMessage(program.missing)
    return yield* Effect.acquireRelease(
      Effect.sync(() => {
        // The kernel kills the child if this process is killed before the scope ends.
        const child = spawn("setpriv", ["--pdeathsig", "KILL", program.command, ...parameters], {
          ...(isRoot && nobody),
          env: environment
        })
        let output = ""
        let errors = ""
        child.stdout.setEncoding("utf8").on("data", (chunk: string) => (output += chunk))
        child.stderr.setEncoding("utf8").on("data", (chunk: string) => (errors += chunk))
        const closed = new Promise<void>((resolve) => child.once("close", () => resolve()))
        child.once("error", (error) => (errors += error.message))
        // Its stdin stays open, and a write after its end is an error.
        child.stdin.on("error", () => undefined)
        if (input !== undefined) child.stdin.write(input)
        return {
          child,
          output: () => output,
          errors: () => errors,
          ended: Effect.map(Effect.promise(() => closed), () => errors)
        }
      }),
      ({ child, ended }) =>
        Effect.suspend(() => {
          child.kill("SIGTERM")
          const killing = setTimeout(() => child.kill("SIGKILL"), 5000)
          return Effect.ensuring(ended, Effect.sync(() => clearTimeout(killing)))
        })
    )
  })

export class PortTaken extends Data.TaggedError("PortTaken") {}

/** For programs that do not support port 0. Tries another port if the free one was taken in between. */
export const onFreePort = <A, R>(start: (port: number) => Effect.Effect<A, PortTaken, R>): Effect.Effect<A, never, R> =>
  Effect.flatMap(freePort, start).pipe(Effect.retry({ times: 5 }), Effect.orDie)

const freePort: Effect.Effect<number> = Effect.async((resume) => {
  const server = Net.createServer()
  server.listen(0, "127.0.0.1", () => {
    const { port } = server.address() as Net.AddressInfo // it listens on a port, not on a path
    server.close(() => resume(Effect.succeed(port)))
  })
})

class NotYet extends Data.TaggedError("NotYet") {}

/** Repeats `look` until its result is the wanted one. */
export const eventually = <A, E>(look: Effect.Effect<A, E>, wanted: (seen: A) => boolean): Effect.Effect<A, E> =>
  Effect.filterOrFail(look, wanted, () => new NotYet()).pipe(
    Effect.retry({ while: (error) => error instanceof NotYet, schedule: Schedule.spaced("10 millis") }),
    Effect.catchIf((error) => error instanceof NotYet, Effect.die) // retries without a limit: the caller has a time limit
  )
