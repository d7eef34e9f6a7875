/** The command with a file or a folder for its standard input, as a shell gives it: `< path`. */
import { spawnSync } from "node:child_process"
import { closeSync, openSync } from "node:fs"
import { Effect } from "effect"
import type { Outcome } from "./cli.js"
import { bin, nothingPrivateIn, type User } from "./user.js"

export const withStdin = (user: User, args: ReadonlyArray<string>, path: string): Effect.Effect<Outcome> =>
  Effect.acquireUseRelease(
    Effect.sync(() => openSync(path, "r")),
    (stdin) =>
      Effect.sync(() => {
        const { cwd, env } = user
        const { status, stderr, stdout } = spawnSync(process.execPath, [bin, ...args], {
          cwd,
          env,
          encoding: "utf8",
          stdio: [stdin, "pipe", "pipe"]
        })
        return { code: status, stdout, stderr }
      }),
    (stdin) => Effect.sync(() => closeSync(stdin))
  ).pipe(Effect.tap(({ stderr, stdout }) => nothingPrivateIn(user, `${stdout}${stderr}`)))
