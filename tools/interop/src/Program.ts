/** Runs programs of Debian as child processes in temporary folders. The end of the scope ends and removes both. */
import { spawn, spawnSync } from "node:child_process"
import { chownSync, mkdtempSync, rmSync } from "node:fs"
import { createServer } from "node:net"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { Effect, Random, type Scope } from "effect"

export interface Program {
  readonly command: string
  /** The version that the program reports, or `undefined` if it is not installed. */
  readonly version: string | undefined
  /** What to do if it is not installed. */
  readonly missing: string
}

/** Passes nothing of the tests' environment, such as a proxy or another Python. */
const environment = { PATH: "/usr/sbin:/usr/bin:/sbin:/bin", LANG: "C.UTF-8" }

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

const isRoot = process.getuid?.() === 0

/** The unprivileged user of Debian, which runs the servers if root runs the tests. */
const nobody = { uid: 65_534, gid: 65_534 }

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
  /** The output so far, errors included. */
  readonly output: () => string
  /** Completes when the process has exited, with its output. */
  readonly ended: Effect.Effect<string>
}

/** Starts a program, unprivileged. The end of the scope terminates it, and waits until it has exited. */
export const run = (
  program: Program,
  parameters: ReadonlyArray<string>,
  input = ""
): Effect.Effect<Running, never, Scope.Scope> =>
  Effect.gen(function*() {
    if (program.version === undefined) return yield* Effect.dieMessage(program.missing)
    let output = ""
    const child = spawn(
      "setpriv",
      // The kernel kills the child if this process is killed before the scope ends.
      ["--pdeathsig", "KILL", program.command, ...parameters],
      { ...(isRoot && nobody), env: environment }
    )
    for (const stream of [child.stdout, child.stderr]) {
      stream.setEncoding("utf8").on("data", (text: string) => (output += text))
    }
    const closed = new Promise<void>((resolve) => child.once("close", () => resolve()))
    child.once("error", (error) => (output += error.message))
    // Its stdin stays open, and a write after its end is an error.
    child.stdin.on("error", () => undefined).write(input)
    const ended = Effect.map(Effect.promise(() => closed), () => output)
    yield* Effect.addFinalizer(() =>
      Effect.suspend(() => {
        child.kill("SIGTERM")
        const killing = setTimeout(() => child.kill("SIGKILL"), 5000)
        return Effect.ensuring(ended, Effect.sync(() => clearTimeout(killing)))
      })
    )
    return { output: () => output, ended }
  }).pipe(Effect.uninterruptible)

/** Starts a server, and waits until it is ready. It must not end before. */
export const startServer = (
  program: Program,
  parameters: ReadonlyArray<string>,
  isReady: Effect.Effect<boolean>,
  input?: string
): Effect.Effect<Running, never, Scope.Scope> =>
  Effect.tap(run(program, parameters, input), ({ ended }) =>
    Effect.raceFirst(
      eventually(isReady, (ready) => ready),
      Effect.flatMap(ended, (output) => Effect.dieMessage(`${program.command} ended at once: ${output}`))
    ))

/** Whether a server responds at this URL, with any status. */
export const responds = (url: string): Effect.Effect<boolean> =>
  Effect.promise(() => fetch(url).then((response) => response.text()).then(() => true, () => false))

/**
 * A port without a listener, for programs that do not support port 0. It is below the ports that a system assigns to
 * outgoing connections and to port 0, so none of these takes it in between.
 */
export const freePort: Effect.Effect<number> = Effect.flatMap(
  Random.nextIntBetween(20_000, 32_000),
  (port) =>
    Effect.async<number, Error>((resume) => {
      const server = createServer().once("error", (error) => resume(Effect.fail(error)))
      server.listen(port, "127.0.0.1", () => server.close(() => resume(Effect.succeed(port))))
    })
).pipe(Effect.eventually)

/** Repeats `look` until its result is the wanted one, without a limit: the caller has a time limit. */
export const eventually = <A, E>(look: Effect.Effect<A, E>, wanted: (seen: A) => boolean): Effect.Effect<A, E> =>
  Effect.repeat(Effect.zipLeft(look, Effect.sleep("10 millis")), { until: wanted })
