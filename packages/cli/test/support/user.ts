/** Who runs the command: a folder, variables, and what no run may print. */
import { mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { fileURLToPath } from "node:url"
import { deepStrictEqual } from "@effect/vitest/utils"
import { Emulator } from "@store-api/emulator"
import { Effect, Redacted, type Scope } from "effect"
import { leaksIn } from "./leaks.js"

export const demoSecret = Redacted.value(Emulator.demoClient.clientSecret)

/** The command. */
export const bin = fileURLToPath(new URL("../../bin/store-api.js", import.meta.url))

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

export const nothingPrivateIn = (user: User, text: string) =>
  Effect.map(user.secrets, (secrets) => deepStrictEqual(leaksIn(text, secrets), [], "printed what is private"))

/** How a run is started. */
export interface Options {
  /** Whether a secret or a token is asked for, on standard output. */
  readonly shows?: boolean
  readonly node?: ReadonlyArray<string>
}
