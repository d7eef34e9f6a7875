/** A user of the command: a folder, variables, and values that no run may print. */
import { mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { assert } from "@effect/vitest"
import { deepStrictEqual } from "@effect/vitest/utils"
import { Emulator, type Fault } from "@store-api/emulator"
import { Effect, Redacted, type Scope } from "effect"
import { leaksIn } from "../../../core/test/support/leaksIn.js"

export const demoSecret = Redacted.value(Emulator.demoClient.clientSecret)

/** Values that only the program may see. */
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

/** An emulator that plays these faults, and its user. */
export const startedWith = (options: Emulator.Options = {}, ...script: ReadonlyArray<Fault.Script>) =>
  Effect.gen(function*() {
    const emulator = yield* Emulator.make(options)
    for (const step of script) yield* emulator.fail(step)
    return { emulator, user: yield* userOf(emulator) }
  })

export const started = startedWith()

/** The number of token requests so far. */
export const tokenRequests = ({ requests }: Emulator.Service): Effect.Effect<number> =>
  Effect.map(requests, (requests) => requests.filter(({ kind }) => kind === "token").length)

/** On a slow machine, the screen also shows what a run waits for. */
export const waitingNotes = /store-api: Waiting for .* Press Ctrl\+C to stop\.\r\n/g

/** Where the profiles of a user are. */
export const profilesOf = ({ cwd }: User): string =>
  process.platform === "win32"
    ? join(cwd, "state", "store-api")
    : process.platform === "darwin"
    ? join(cwd, "Library", "Application Support", "store-api")
    : join(cwd, ".config", "store-api")

/** The same user with more variables. */
export const withEnv = (user: User, env: Readonly<Record<string, string>>): User => ({
  ...user,
  env: { ...user.env, ...env }
})

const proxyVariables = ["HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY"].flatMap((name) => [name, name.toLowerCase()])

/** The same user with more variables. Proxy variables are also set in this process, where the client reads them. */
export const withProxies = (
  user: User,
  env: Readonly<Record<string, string>>
): Effect.Effect<User, never, Scope.Scope> => {
  const set = (env: Readonly<Record<string, string | undefined>>) =>
    Effect.sync(() => {
      const before = Object.fromEntries(proxyVariables.map((name) => [name, process.env[name]]))
      for (const name of proxyVariables) {
        if (env[name] === undefined) Reflect.deleteProperty(process.env, name)
        else process.env[name] = env[name]
      }
      return before
    })
  return Effect.as(Effect.acquireRelease(set(env), set), withEnv(user, env))
}

/** The same user without these. */
export const without = (user: User, ...names: ReadonlyArray<string>): User => ({
  ...user,
  env: Object.fromEntries(Object.entries(user.env).filter(([name]) => !names.includes(name)))
})

/** The variables that `store-api emulator` prints. */
export const variablesIn = (text: string): Readonly<Record<string, string>> =>
  Object.fromEntries([...text.matchAll(/^export (\w+)='(.*)'$/gm)].map(([, name = "", value = ""]) => [name, value]))

export const secretsOf = (emulator: Emulator.Service): Private =>
  Effect.map(emulator.tokens, (tokens) => [demoSecret, ...tokens.map(({ value }) => Redacted.value(value))])

export const lastToken = ({ tokens }: Emulator.Service): Effect.Effect<string> =>
  Effect.map(tokens, (tokens) => {
    assert.isNotEmpty(tokens)
    return tokens.slice(-1).map(({ value }) => Redacted.value(value)).join("")
  })

export const nothingPrivateIn = (user: User, text: string) =>
  Effect.map(user.secrets, (secrets) => deepStrictEqual(leaksIn(text, secrets), [], "printed what is private"))

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
