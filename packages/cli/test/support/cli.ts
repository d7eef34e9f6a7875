/** The command as it is installed, run by a user: the file in bin/, on the build of these sources. */
import { type ChildProcessWithoutNullStreams, spawn, spawnSync } from "node:child_process"
import { mkdtempSync, rmSync } from "node:fs"
import { createRequire } from "node:module"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { fileURLToPath } from "node:url"
import { assert } from "@effect/vitest"
import { deepStrictEqual } from "@effect/vitest/utils"
import { Emulator } from "@store-api/emulator"
import { Deferred, Effect, Redacted, type Scope } from "effect"
import { leaksIn } from "./leaks.js"

const root = fileURLToPath(new URL("../..", import.meta.url))

const bin = join(root, "bin", "store-api.js")

export const build = () => {
  const tsc = createRequire(import.meta.url).resolve("typescript/bin/tsc")
  const built = spawnSync(process.execPath, [tsc, "-b", "tsconfig.src.json"], { cwd: root, encoding: "utf8" })
  assert.strictEqual(built.status, 0, built.stdout)
}

/** A test of processes takes as long as they take to load, on a machine that does much else. */
export const processTimeout = 60_000

export const demoSecret = Redacted.value(Emulator.demoClient.clientSecret)

/** What nobody but the program itself may see. */
export type Private = Effect.Effect<ReadonlyArray<string>>

/** A user: a folder of their own, with their variables. */
export interface User {
  readonly cwd: string
  readonly env: Readonly<Record<string, string>>
  /** Secrets and tokens; no run prints one, unless it says so. */
  readonly secrets: Private
}

export const newUser = (
  env: Readonly<Record<string, string>>,
  secrets: Private = Effect.succeed([])
): Effect.Effect<User, never, Scope.Scope> =>
  Effect.map(
    Effect.acquireRelease(
      Effect.sync(() => mkdtempSync(join(tmpdir(), "store-api-cli-"))),
      (cwd) => Effect.sync(() => rmSync(cwd, { recursive: true, force: true }))
    ),
    (cwd) => ({
      cwd,
      secrets,
      env: {
        PATH: process.env["PATH"] ?? "",
        HOME: cwd,
        XDG_STATE_HOME: join(cwd, "state"),
        LOCALAPPDATA: join(cwd, "state"),
        ...env
      }
    })
  )

/** A user of an emulator, all of whose settings are in the environment. */
export const userOf = (emulator: Emulator.Service, env: Readonly<Record<string, string>> = {}) =>
  newUser(
    {
      STORE_API_AUTH_URL: emulator.url,
      STORE_API_URL: emulator.url,
      STORE_API_CLIENT_ID: Emulator.demoClient.clientId,
      STORE_API_CLIENT_SECRET: demoSecret,
      ...env
    },
    secretsOf(emulator)
  )

export const secretsOf = (emulator: Emulator.Service): Private =>
  Effect.map(emulator.tokens, (tokens) => [demoSecret, ...tokens.map(({ value }) => Redacted.value(value))])

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

export interface Options {
  /** Whether a secret or a token is asked for, on standard output. */
  readonly shows?: boolean
  readonly node?: ReadonlyArray<string>
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

export const nothingPrivateIn = (user: User, text: string) =>
  Effect.map(user.secrets, (secrets) => deepStrictEqual(leaksIn(text, secrets), [], "printed what is private"))

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

/** The terminals are Python's; CI has it, and fails without. */
export const hasTerminals = spawnSync("python3", ["--version"]).status === 0 || process.env["CI"] === "true"

if (!hasTerminals) console.warn("There is no python3: tests on a terminal are skipped.")

export interface Screen {
  readonly code: number
  /** What is to be seen, colours and all. */
  readonly screen: string
  /** Apart from the screen, if it is a pipe. */
  readonly stdout: string
}

/** The command on a terminal, where it is typed what is to be typed once the screen shows something. */
export const onTerminal = (
  user: User,
  args: ReadonlyArray<string>,
  options: Options & {
    readonly stdout?: "terminal" | "pipe"
    readonly typed?: ReadonlyArray<readonly [screen: string, keys: string]>
  } = {}
): Effect.Effect<Screen> =>
  Effect.gen(function*() {
    const told = {
      command: [process.execPath, bin, ...args],
      env: { TERM: "xterm-256color", ...user.env },
      cwd: user.cwd,
      stdout: options.stdout ?? "terminal",
      typed: options.typed ?? []
    }
    const seen = yield* Effect.async<Screen>((resume) => {
      const child = spawn("python3", [join(root, "test", "support", "terminal.py")], {
        stdio: ["pipe", "pipe", "inherit"]
      })
      let output = ""
      child.stdout.on("data", (chunk: Buffer) => (output += chunk.toString()))
      child.on("close", () => resume(Effect.sync(() => JSON.parse(output) as Screen)))
      child.stdin.end(JSON.stringify(told))
      return Effect.sync(() => child.kill())
    })
    yield* nothingPrivateIn(user, options.shows === true ? "" : `${seen.screen}${seen.stdout}`)
    return seen
  })

/** Text without what a terminal makes colours of. */
export const hasColours = (text: string): boolean => text.includes("\u001b[")
