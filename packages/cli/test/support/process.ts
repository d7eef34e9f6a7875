/** Runs the binary as a process, in a pipe or on a real terminal. */
import { spawn, spawnSync } from "node:child_process"
import { once } from "node:events"
import { closeSync } from "node:fs"
import { createRequire } from "node:module"
import { fileURLToPath } from "node:url"
import { assert } from "@effect/vitest"
import { untilPrinted } from "@store-api/testing/network"
import { Effect } from "effect"
import {
  nothingPrivateIn,
  type Options,
  type Outcome,
  type User,
  waitingNotes
} from "./cli.js"

const root = fileURLToPath(new URL("../..", import.meta.url))

export const bin = fileURLToPath(new URL("../../bin/store-api.js", import.meta.url))

/** `store-api-emulator`, whose bundle is in the package of the emulator. */
export const alias = fileURLToPath(
  new URL("../../../emulator/bin/store-api-emulator.js", import.meta.url)
)

/** The command is run as it is published: the file in bin/, on the bundle of these sources. */
export const build = () => {
  const tsc = createRequire(import.meta.url).resolve("typescript/bin/tsc")
  for (
    const args of [[tsc, "-b", "tsconfig.src.json"], ["../../tools/workspace/bundle.mjs", "."]]
  ) {
    const built = spawnSync(process.execPath, args, { cwd: root, encoding: "utf8" })
    assert.strictEqual(built.status, 0, built.stdout + built.stderr)
  }
}

/** The terminals are those of util-linux; CI has it, and fails without. */
export const hasTerminals = process.platform === "linux" &&
  (spawnSync("script", ["--version"]).status === 0 || process.env["CI"] === "true")

if (!hasTerminals) {
  console.warn("There is no command script of util-linux: tests on a terminal are skipped.")
}

/** Reads the line from a terminal of its own, whose output is the standard output of the run. */
const onTerminal = (words: ReadonlyArray<string>): ReadonlyArray<string> => {
  const quoted = words.map((word) => /^>/.test(word) ? word : `'${word}'`).join(" ")
  return [
    "script",
    "--quiet",
    "--return",
    "--flush",
    "--command",
    `exec ${quoted}`,
    "/dev/null"
  ]
}

/** Starts the command in a pipe or on a terminal, where an argument such as `>file` redirects its standard output. */
export const startProcess = (
  user: User,
  args: ReadonlyArray<string>,
  { program = bin, shows, terminal = false }: Options & {
    readonly program?: string
    readonly terminal?: boolean
  } = {}
) =>
  Effect.gen(function*() {
    const words = [process.execPath, program, ...args]
    const [command = "", ...others] = terminal ? onTerminal(words) : words
    const env = { TERM: "xterm-256color", SHELL: "/bin/sh", ...user.env }
    const child = yield* Effect.acquireRelease(
      Effect.sync(() => spawn(command, others, { cwd: user.cwd, env })),
      (child) => Effect.sync(() => child.kill("SIGKILL"))
    )
    const [stdout, stderr]: [Array<Buffer>, Array<Buffer>] = [[], []]
    child.stdout.on("data", (chunk: Buffer) => stdout.push(chunk))
    child.stderr.on("data", (chunk: Buffer) => stderr.push(chunk))
    child.stdin.on("error", () => undefined)
    let ended = false
    const closed = once(child, "close").then(([code]) => {
      ended = true
      return code as number | null
    })
    const textOf = (chunks: ReadonlyArray<Buffer>) =>
      Buffer.concat(chunks).toString("utf8").replace(waitingNotes, "")
    return {
      child,
      stdout: () => textOf(stdout),
      /** Waits until the command has printed it. */
      shows: (text: RegExp) =>
        untilPrinted(
          text,
          () => [stdout, stderr].map((chunks) => Buffer.concat(chunks).toString("utf8")),
          () => ended
        ),
      type: (keys: string) => Effect.sync(() => void child.stdin.write(keys)),
      /** The end, when nothing private was printed. */
      end: Effect.gen(function*() {
        const code = yield* Effect.promise(() => closed)
        const outcome: Outcome = { code, stdout: textOf(stdout), stderr: textOf(stderr) }
        yield* nothingPrivateIn(
          user,
          `${shows === true ? "" : outcome.stdout}${outcome.stderr}`
        )
        return outcome
      })
    }
  })

/** The command in a pipe, to its end. */
export const runProcess = (
  user: User,
  args: ReadonlyArray<string>,
  options: Options & { readonly program?: string; readonly stdin?: string } = {}
): Effect.Effect<Outcome> =>
  Effect.gen(function*() {
    const { child, end } = yield* startProcess(user, args, options)
    child.stdin.end(options.stdin ?? "")
    return yield* end
  }).pipe(Effect.scoped)

/** The command to its end, with these streams, as a shell starts it with `<` and `>`. */
export const runWith = (
  user: User,
  args: ReadonlyArray<string>,
  stdio: ReadonlyArray<"ignore" | "pipe" | number>
) => {
  const { cwd, env } = user
  const words = [bin, ...args]
  const { status, stderr } = spawnSync(process.execPath, words, {
    cwd,
    env,
    stdio: [...stdio],
    encoding: "utf8"
  })
  for (const stream of stdio) if (typeof stream === "number") closeSync(stream)
  return Effect.as(nothingPrivateIn(user, stderr), [status, stderr] as const)
}
