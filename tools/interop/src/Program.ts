/** Runs servers of Debian as child processes in temporary folders. The end of the scope ends and removes both. */
import { spawn, spawnSync } from "node:child_process"
import { mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { Effect, type Scope } from "effect"

export interface Program {
  readonly command: string
  readonly isInstalled: boolean
  /** What to do if it is not installed. */
  readonly missing: string
}

/** Passes nothing of the tests' environment, such as a proxy or another Python. */
export const environment = { env: { PATH: "/usr/sbin:/usr/bin:/sbin:/bin", LANG: "C.UTF-8" } }

/** Finds a program, which must end with success if it gets these parameters. */
export const find = (
  command: string,
  parameters: ReadonlyArray<string>,
  debianPackage: string
): Program => ({
  command,
  isInstalled: spawnSync(command, parameters, environment).status === 0,
  missing:
    `${debianPackage} is not installed: apt-get install --no-install-recommends ${debianPackage}`
})

/** Whether to skip the tests of a missing program, with a message. With `CI=true` they are never skipped, and fail. */
export const isLeftOut = ({ isInstalled, missing }: Program): boolean => {
  if (isInstalled || process.env["CI"] === "true") return false
  console.warn(`Tests are skipped: ${missing}`)
  return true
}

export const folder: Effect.Effect<string, never, Scope.Scope> = Effect.acquireRelease(
  Effect.sync(() => mkdtempSync(join(tmpdir(), "interop-"))),
  (path) => Effect.sync(() => rmSync(path, { recursive: true }))
)

/** Starts a server and waits until it is ready. The end of the scope terminates it. */
export const startServer = (
  { command, isInstalled, missing }: Program,
  parameters: ReadonlyArray<string>,
  isReady: Effect.Effect<boolean>,
  input = ""
): Effect.Effect<void, never, Scope.Scope> =>
  Effect.gen(function*() {
    if (!isInstalled) return yield* Effect.dieMessage(missing)
    let output = ""
    // The kernel kills the child if this process is killed before the scope ends.
    const child = spawn(
      "setpriv",
      ["--pdeathsig", "KILL", command, ...parameters],
      environment
    )
    for (const stream of [child.stdout, child.stderr]) {
      stream.setEncoding("utf8").on("data", (text: string) => (output += text))
    }
    const closed = new Promise<void>((resolve) => child.once("close", () => resolve()))
    child.once("error", (error) => (output += error.message))
    // Its stdin stays open, and a write after its end is an error.
    child.stdin.on("error", () => undefined).write(input)
    yield* Effect.addFinalizer(() =>
      Effect.promise(() => {
        child.kill("SIGTERM")
        const killing = setTimeout(() => child.kill("SIGKILL"), 5000)
        return closed.finally(() => clearTimeout(killing))
      })
    )
    const ended = Effect.promise(() => closed)
    yield* Effect.interruptible(Effect.raceFirst(
      eventually(isReady, (ready) => ready),
      Effect.flatMap(ended, () => Effect.dieMessage(`${command} ended at once: ${output}`))
    ))
  }).pipe(Effect.uninterruptible)

/** Whether a server responds at this URL, with any status. */
export const responds = (url: string): Effect.Effect<boolean> =>
  Effect.promise(() =>
    fetch(url).then((response) => response.text()).then(() => true, () => false)
  )

/** Repeats `look` until its result is the wanted one, without a limit: the caller has a time limit. */
const eventually = <A, E>(
  look: Effect.Effect<A, E>,
  wanted: (seen: A) => boolean
): Effect.Effect<A, E> =>
  Effect.repeat(Effect.zipLeft(look, Effect.sleep("10 millis")), { until: wanted })
