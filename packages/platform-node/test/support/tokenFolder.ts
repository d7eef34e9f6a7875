import { mkdtempSync, readdirSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { Effect } from "effect"

/** A folder that is not there yet, in one that goes with the scope. */
export const newFolder = Effect.map(
  Effect.acquireRelease(
    Effect.sync(() => mkdtempSync(join(tmpdir(), "tokens-"))),
    (folder) => Effect.sync(() => rmSync(folder, { recursive: true, force: true }))
  ),
  (folder) => join(folder, "tokens")
)

/** The paths of all that is in a folder, itself included. */
export const pathsIn = (folder: string): ReadonlyArray<string> => [
  folder,
  ...readdirSync(folder, { recursive: true, encoding: "utf8" }).map((name) => join(folder, name))
]
